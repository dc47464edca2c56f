//! A running name server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::Command;
use remoting::{Client, CloseReason, Connection, Reply, Server, Service};
use service::config::Live;
use service::http::Pages;
use service::keys::NamesrvSettings;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::kv_config::KvConfig;
use crate::metrics::Metrics;
use crate::network::{client_config, server_config};
use crate::notify::Notifier;
use crate::removals::{Removals, Worker};
use crate::requests::{self, Lane, Place};
use crate::route_table::RouteTable;
use crate::shared::Shared;
use crate::workers::Workers;

/// The first scan for silent brokers comes this long after the start, as in Java.
const FIRST_SCAN: Duration = Duration::from_secs(5);

/// Why a name server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("bindAddress {address}: {error}")]
    Address { address: String, error: std::io::Error },
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error("{0}")]
    Tls(String),
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// A name server in this process.
pub struct Namesrv {
    server: Server,
    shared: Arc<Shared>,
    scan: JoinHandle<()>,
    client: Client,
}

impl std::fmt::Debug for Namesrv {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Namesrv on {}", self.local_addr())
    }
}

impl Namesrv {
    /// Starts listening. To be called within a tokio runtime, which then runs the server. `listenPort` 0 takes a free
    /// port.
    pub fn start(settings: Live<NamesrvSettings>) -> Result<Self, StartError> {
        let config = settings.snapshot();
        let table = Arc::new(RouteTable::default());
        let metrics = Arc::new(Metrics::new());
        metrics.watch(table.clone());
        let kv = KvConfig::load(PathBuf::from(&config.namesrv.kv_config_path));
        let client = Client::new(client_config(&config)?, None);
        let notifier = Notifier::new(Handle::current(), client.clone(), metrics.clone());
        let worker = Worker {
            table: table.clone(),
            settings: settings.clone(),
            notifier: notifier.clone(),
            metrics: metrics.clone(),
        };
        let capacity = config.namesrv.un_register_broker_queue_capacity as usize;
        let removals = Removals::start(capacity, worker).map_err(StartError::Thread)?;
        let shared = Arc::new(Shared::new(settings, table, kv, removals, notifier, metrics));
        let requests = Arc::new(Requests::new(shared.clone(), &config).map_err(StartError::Thread)?);
        let server = listen(&config, requests)?;
        let scan = tokio::spawn(scan(
            shared.clone(),
            Duration::from_millis(config.namesrv.scan_not_active_broker_interval.max(1)),
        ));
        Ok(Self { server, shared, scan, client })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// The tables, for a server in the same process and for tests.
    pub fn route_table(&self) -> Arc<RouteTable> {
        self.shared.table.clone()
    }

    /// The metrics and checks of the page server (`httpAddress`). The name server is ready when it answers routes:
    /// not while `needWaitForService` holds them back.
    pub fn pages(&self) -> Pages {
        let shared = self.shared.clone();
        Pages {
            metrics: self.shared.metrics.registry.clone(),
            healthy: Box::new(|| Ok(())),
            ready: Box::new(move || if is_ready(&shared) { Ok(()) } else { Err("name server not ready".to_owned()) }),
        }
    }

    /// Stops: with `enableShutdownGracefully` clients are first sent elsewhere, for `shutdownWaitTimeSeconds` at most.
    pub async fn shutdown(self) {
        let grace = {
            let netty = &self.shared.settings.load().netty;
            let seconds = if netty.enable_shutdown_gracefully { netty.shutdown_wait_time_seconds } else { 0 };
            Duration::from_secs(seconds.into())
        };
        self.scan.abort();
        self.server.shutdown(grace).await;
        self.client.close();
    }
}

fn is_ready(shared: &Shared) -> bool {
    let config = &shared.settings.load().namesrv;
    !config.need_wait_for_service || shared.uptime().as_secs() >= config.wait_seconds_for_service.into()
}

fn listen(config: &NamesrvSettings, requests: Arc<Requests>) -> Result<Server, StartError> {
    let config = server_config(config)?;
    let address = config.listen;
    Server::bind(config, requests).map_err(|error| StartError::Listen { address, error })
}

async fn scan(shared: Arc<Shared>, interval: Duration) {
    tokio::time::sleep(FIRST_SCAN).await;
    loop {
        shared.expire();
        tokio::time::sleep(interval).await;
    }
}

/// Hands requests to their handlers.
struct Requests {
    shared: Arc<Shared>,
    workers: Workers,
    client_request: remoting::Lane,
    default: remoting::Lane,
}

impl Requests {
    fn new(shared: Arc<Shared>, config: &NamesrvSettings) -> std::io::Result<Self> {
        let config = &config.namesrv;
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Ok(Self {
            shared,
            workers: Workers::start(cores.clamp(2, 4))?,
            client_request: remoting::Lane::new(
                "clientRequest",
                config.client_request_thread_pool_queue_capacity as usize,
            ),
            default: remoting::Lane::new("default", config.default_thread_pool_queue_capacity as usize),
        })
    }
}

impl Service for Requests {
    type Batch = ();

    fn call(&self, conn: &Connection, (): &mut (), request: Command, mut reply: Reply) {
        let started = Instant::now();
        let Some((at, row)) = requests::find(request.code) else {
            self.shared.metrics.unsupported();
            return reply.not_supported();
        };
        let lane = match row.lane {
            Lane::ClientRequest => &self.client_request,
            Lane::Default => &self.default,
        };
        let Some(permit) = lane.try_enter() else {
            self.shared.metrics.overloaded(at);
            return reply.overloaded();
        };
        reply.hold(permit);
        if row.place == Place::Inline {
            let answer = (row.handler)(&self.shared, conn, &request);
            answer.unwrap_or_else(|refusal| refusal).send(reply);
            self.shared.metrics.answered(at, started.elapsed());
            return;
        }
        let Some(room) = self.workers.room(request.body.len()) else {
            self.shared.metrics.overloaded(at);
            return reply.overloaded();
        };
        let (shared, conn) = (self.shared.clone(), conn.clone());
        self.workers.run(move || {
            let answer = (row.handler)(&shared, &conn, &request);
            drop((request, room));
            answer.unwrap_or_else(|refusal| refusal).send(reply);
            shared.metrics.answered(at, started.elapsed());
        });
    }

    fn disconnected(&self, conn: &Connection, why: CloseReason) {
        tracing::debug!(peer = %conn.remote_addr(), %why, "connection closed");
        self.shared.connection_closed(conn);
    }
}
