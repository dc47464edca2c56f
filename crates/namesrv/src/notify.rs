//! NOTIFY_MIN_BROKER_ID_CHANGE: tells the brokers of a group who now has its smallest id.

use std::sync::Arc;
use std::time::Duration;

use protocol::headers::NotifyMinBrokerIdChangeRequest;
use protocol::{Command, request_code};
use remoting::{Client, Lane};
use tokio::runtime::Handle;

use crate::metrics::Metrics;
use crate::route_table::MinBrokerIdChange;

/// How long connecting and sending may take, together.
const TIMEOUT: Duration = Duration::from_millis(300);
/// Notices under way; brokers that miss one read their group every second anyway.
const UNDER_WAY: usize = 10_000;

#[derive(Clone)]
pub(crate) struct Notifier {
    runtime: Handle,
    client: Client,
    lane: Lane,
    metrics: Arc<Metrics>,
}

impl Notifier {
    pub(crate) fn new(runtime: Handle, client: Client, metrics: Arc<Metrics>) -> Self {
        Self { runtime, client, lane: Lane::new("notify", UNDER_WAY), metrics }
    }

    /// Sends in the background, from any thread.
    pub(crate) fn send(&self, change: MinBrokerIdChange) {
        tracing::info!(min_id = change.min_broker_id, min_addr = %change.min_broker_addr, offline = ?change.offline_addr,
            recipients = ?change.recipients, "smallest broker id changed");
        let text = |addr: &Arc<str>| addr.to_string();
        let header = NotifyMinBrokerIdChangeRequest {
            min_broker_id: Some(change.min_broker_id),
            broker_name: None,
            min_broker_addr: Some(text(&change.min_broker_addr)),
            offline_broker_addr: change.offline_addr.as_ref().map(text),
            ha_broker_addr: change.ha_addr.as_ref().map(text),
        };
        let request = Command::request(request_code::NOTIFY_MIN_BROKER_ID_CHANGE).with_header(&header);
        for addr in change.recipients {
            let Some(permit) = self.lane.try_enter() else {
                tracing::warn!(%addr, "notice dropped: too many are under way");
                continue;
            };
            let (client, request, metrics) = (self.client.clone(), request.clone(), self.metrics.clone());
            self.runtime.spawn(async move {
                let _permit = permit;
                match tokio::time::timeout(TIMEOUT, client.oneway(&addr, request)).await {
                    Ok(Ok(())) => metrics.notified(true),
                    Ok(Err(error)) => {
                        metrics.notified(false);
                        tracing::warn!(%addr, %error, "notice of the smallest broker id not sent");
                    }
                    Err(_) => {
                        metrics.notified(false);
                        tracing::warn!(%addr, "notice of the smallest broker id not sent in time");
                    }
                }
            });
        }
    }
}
