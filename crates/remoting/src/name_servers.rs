//! A list of name servers, one of which is asked at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use protocol::Command;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::{CallError, Client};

/// Name servers with fail-over: starts at a random one, stays with it while it answers, then goes on to the next.
#[derive(Debug, Clone)]
pub struct NameServers {
    client: Client,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    addresses: RwLock<Vec<String>>,
    current: AtomicUsize,
}

impl NameServers {
    /// `list` is `host:port;host:port`, as everywhere in RocketMQ.
    pub fn new(client: Client, list: &str) -> Self {
        let addresses = parse(list);
        let start = fastrand::usize(..addresses.len().max(1));
        Self { client, inner: Arc::new(Inner { addresses: RwLock::new(addresses), current: AtomicUsize::new(start) }) }
    }

    /// Replaces the list.
    pub fn update(&self, list: &str) {
        *self.inner.addresses.write() = parse(list);
    }

    pub fn addresses(&self) -> Vec<String> {
        self.inner.addresses.read().clone()
    }

    pub fn is_empty(&self) -> bool {
        self.inner.addresses.read().is_empty()
    }

    /// Asks one name server. When it cannot be reached, or is lost before it answers, the next one is asked, until all
    /// were tried or the time is up.
    pub async fn request(&self, request: Command, timeout: Duration) -> Result<Command, CallError> {
        let deadline = Instant::now() + timeout;
        let addresses = self.addresses();
        let first = self.inner.current.load(Ordering::Relaxed);
        let mut last = CallError::NoNameServer;
        for round in 0..addresses.len() {
            let at = (first + round) % addresses.len();
            let left = deadline.saturating_duration_since(Instant::now());
            // An address that swallows packets must not eat the time of those after it.
            let share = left / (addresses.len() - round) as u32;
            match self.client.request_connecting(&addresses[at], request.clone(), share, left).await {
                Ok(response) => {
                    self.inner.current.store(at, Ordering::Relaxed);
                    return Ok(response);
                }
                Err(error) => {
                    tracing::debug!(%error, "name server failed");
                    last = error;
                }
            }
        }
        Err(last)
    }

    /// Asks every name server at once, as brokers do to register. The results stand in the order of the list.
    pub async fn request_all(&self, request: Command, timeout: Duration) -> Vec<(String, Result<Command, CallError>)> {
        let mut calls = JoinSet::new();
        for (at, addr) in self.addresses().into_iter().enumerate() {
            let (client, request) = (self.client.clone(), request.clone());
            calls.spawn(async move {
                let result = client.request(&addr, request, timeout).await;
                (at, addr, result)
            });
        }
        let mut results = calls.join_all().await;
        results.sort_by_key(|(at, _, _)| *at);
        results.into_iter().map(|(_, addr, result)| (addr, result)).collect()
    }
}

fn parse(list: &str) -> Vec<String> {
    list.split([';', ',']).map(str::trim).filter(|addr| !addr.is_empty()).map(str::to_owned).collect()
}
