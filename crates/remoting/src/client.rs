//! The asking side: one connection per address, made when it is needed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use parking_lot::Mutex;
use protocol::{Command, response_code};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::pump::{Pump, Side};
use crate::server::Limits;
use crate::tls::ClientTls;
use crate::{CallError, CloseReason, Connection, Reply, Service, TlsSettings};

/// Handles what servers ask of this client.
pub trait ServerRequestHandler: Send + Sync + 'static {
    /// Like [`Service::call`]: never blocks.
    fn call(&self, conn: &Connection, request: Command, reply: Reply);

    fn disconnected(&self, conn: &Connection, why: CloseReason) {
        let _ = (conn, why);
    }
}

/// How a client connects.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    pub connect_timeout: Duration,
    pub limits: Limits,
    /// `None` connects in plain text.
    pub tls: Option<TlsSettings>,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self { connect_timeout: Duration::from_secs(3), limits: Limits::default(), tls: None }
    }
}

/// Requests to any number of addresses. Cheap to clone; the connections close with the last clone.
///
/// A request that times out leaves its connection alone: the late response is dropped when it comes. (Java's client
/// closes the socket in most such cases, which fails every other request on it too.)
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Client with {} addresses", self.inner.slots.lock().len())
    }
}

struct Inner {
    config: ClientConfig,
    dialer: Dialer,
    handler: Option<Arc<dyn ServerRequestHandler>>,
    slots: Mutex<HashMap<String, Arc<Slot>>>,
}

/// One address.
#[derive(Default)]
struct Slot {
    current: Mutex<Option<Connection>>,
    /// Held while connecting, so that many askers make one connection.
    connecting: tokio::sync::Mutex<()>,
}

impl Slot {
    fn open(&self) -> Option<Connection> {
        self.current.lock().as_ref().filter(|conn| conn.is_open()).cloned()
    }
}

impl Client {
    pub fn new(config: ClientConfig, handler: Option<Arc<dyn ServerRequestHandler>>) -> Self {
        let dialer = Dialer::new(&config);
        Self { inner: Arc::new(Inner { config, dialer, handler, slots: Mutex::new(HashMap::new()) }) }
    }

    /// Asks `addr` (`host:port`) and waits for the response, connecting first if need be. A server that answers
    /// GO_AWAY is asked once more over a new connection.
    pub async fn request(&self, addr: &str, request: Command, timeout: Duration) -> Result<Command, CallError> {
        self.request_connecting(addr, request, timeout, timeout).await
    }

    /// As [`Client::request`], but with its own bound for connecting.
    pub(crate) async fn request_connecting(
        &self,
        addr: &str,
        request: Command,
        connect: Duration,
        timeout: Duration,
    ) -> Result<Command, CallError> {
        let deadline = Instant::now() + timeout;
        let conn = self.connection_within(addr, connect).await?;
        let left = deadline.saturating_duration_since(Instant::now());
        let response = conn.request(request.clone(), left).await?;
        if response.code != response_code::GO_AWAY {
            return Ok(response);
        }
        self.forget(addr, &conn);
        let left = deadline.saturating_duration_since(Instant::now());
        let conn = self.connection_within(addr, left).await?;
        conn.request(request, deadline.saturating_duration_since(Instant::now())).await
    }

    /// Sends a request that wants no answer.
    pub async fn oneway(&self, addr: &str, request: Command) -> Result<(), CallError> {
        let conn = self.connection(addr).await?;
        if conn.send_oneway(request) {
            Ok(())
        } else {
            Err(CallError::Closed { addr: addr.to_owned(), why: CloseReason::PeerClosed })
        }
    }

    /// The connection to `addr`, made if there is none.
    pub async fn connection(&self, addr: &str) -> Result<Connection, CallError> {
        self.connection_within(addr, self.inner.config.connect_timeout).await
    }

    /// The connection to `addr` if it is there already.
    pub fn existing(&self, addr: &str) -> Option<Connection> {
        self.inner.slots.lock().get(addr).and_then(|slot| slot.open())
    }

    /// Closes the connection to `addr`, if there is one.
    pub fn disconnect(&self, addr: &str) {
        let slot = self.inner.slots.lock().remove(addr);
        if let Some(conn) = slot.and_then(|slot| slot.current.lock().take()) {
            conn.close(CloseReason::Local("not needed any more"));
        }
    }

    /// Closes all connections; later requests connect again.
    pub fn close(&self) {
        self.inner.close();
    }

    async fn connection_within(&self, addr: &str, within: Duration) -> Result<Connection, CallError> {
        let slot = self.slot(addr);
        if let Some(conn) = slot.open() {
            return Ok(conn);
        }
        let limit = within.min(self.inner.config.connect_timeout);
        let attempt = async {
            let _one_at_a_time = slot.connecting.lock().await;
            if let Some(conn) = slot.open() {
                return Ok(conn);
            }
            let handling = Arc::new(Handling { handler: self.inner.handler.clone() });
            let conn = self.inner.dialer.open(addr, handling).await?;
            *slot.current.lock() = Some(conn.clone());
            Ok(conn)
        };
        match tokio::time::timeout(limit, attempt).await {
            Ok(result) => result,
            Err(_) => Err(CallError::Connect {
                addr: addr.to_owned(),
                why: format!("no connection within {} ms", limit.as_millis()),
            }),
        }
    }

    fn slot(&self, addr: &str) -> Arc<Slot> {
        let mut slots = self.inner.slots.lock();
        match slots.get(addr) {
            Some(slot) => slot.clone(),
            None => slots.entry(addr.to_owned()).or_default().clone(),
        }
    }

    /// Lets `conn` run out and makes the next request connect anew.
    fn forget(&self, addr: &str, conn: &Connection) {
        let slot = self.slot(addr);
        let mut current = slot.current.lock();
        if current.as_ref() == Some(conn) {
            *current = None;
        }
    }
}

impl Inner {
    fn close(&self) {
        for (_, slot) in self.slots.lock().drain() {
            if let Some(conn) = slot.current.lock().take() {
                conn.close(CloseReason::Local("client closed"));
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

/// Opens one connection with a service of the caller's for what comes in; for callers that keep their own tables.
pub async fn connect<S: Service>(addr: &str, config: &ClientConfig, service: Arc<S>) -> Result<Connection, CallError> {
    match tokio::time::timeout(config.connect_timeout, Dialer::new(config).open(addr, service)).await {
        Ok(result) => result,
        Err(_) => Err(CallError::Connect {
            addr: addr.to_owned(),
            why: format!("no connection within {} ms", config.connect_timeout.as_millis()),
        }),
    }
}

/// Makes connections.
struct Dialer {
    limits: Arc<Limits>,
    /// The error is told to everyone who wants to connect.
    tls: Option<Result<ClientTls, String>>,
}

impl Dialer {
    fn new(config: &ClientConfig) -> Self {
        let tls = config.tls.as_ref().map(|settings| ClientTls::new(settings).map_err(|error| error.to_string()));
        Self { limits: Arc::new(config.limits.clone()), tls }
    }

    async fn open<S: Service>(&self, addr: &str, service: Arc<S>) -> Result<Connection, CallError> {
        let failed = |why: String| CallError::Connect { addr: addr.to_owned(), why };
        let failed_io = |error: std::io::Error| failed(error.to_string());
        let stream = TcpStream::connect(addr).await.map_err(failed_io)?;
        let _ = stream.set_nodelay(true);
        let remote = stream.peer_addr().map_err(failed_io)?;
        let local = stream.local_addr().map_err(failed_io)?;
        let conn = Connection::new(remote, local, self.limits.clone());
        match &self.tls {
            None => start(conn.clone(), service, stream),
            Some(Ok(tls)) => {
                let host = addr.rsplit_once(':').map_or(addr, |(host, _)| host);
                let stream = tls.connect(host, stream).await.map_err(|error| failed(format!("TLS: {error}")))?;
                start(conn.clone(), service, stream);
            }
            Some(Err(why)) => return Err(failed(why.clone())),
        }
        Ok(conn)
    }
}

/// Runs the connection's loop in a task of its own.
fn start<S: Service, IO>(conn: Connection, service: Arc<S>, io: IO)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    service.connected(&conn);
    let pump = Pump::new(conn.clone(), service.clone(), io, Arc::new(Side::new(usize::MAX)), BytesMut::new());
    tokio::spawn(async move {
        let why = pump.run().await;
        tracing::debug!(peer = %conn.remote_addr(), %why, "connection closed");
        service.disconnected(&conn, why);
    });
}

/// What a client does with what servers ask.
struct Handling {
    handler: Option<Arc<dyn ServerRequestHandler>>,
}

impl Service for Handling {
    type Batch = ();

    fn call(&self, conn: &Connection, _batch: &mut (), request: Command, reply: Reply) {
        match &self.handler {
            Some(handler) => handler.call(conn, request, reply),
            None => reply.not_supported(),
        }
    }

    fn disconnected(&self, conn: &Connection, why: CloseReason) {
        if let Some(handler) = &self.handler {
            handler.disconnected(conn, why);
        }
    }
}
