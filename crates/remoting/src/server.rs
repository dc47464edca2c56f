//! The listening side.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use parking_lot::Mutex;
use protocol::frame::MAX_FRAME_LENGTH;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::first_bytes::{Kind, Start, read_start};
use crate::pump::{Pump, Side};
use crate::rate::RateLimited;
use crate::tls::{Prefixed, ServerTls};
use crate::{CloseReason, Connection, Service, TlsSettings};

/// What one connection may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The longest frame accepted, its length field included.
    pub frame_bytes: usize,
    /// Reading from a peer pauses when more than this waits to be read by it...
    pub out_high_bytes: usize,
    /// ...and goes on when no more than this is left.
    pub out_low_bytes: usize,
    /// A peer for which more than this waits is closed.
    pub out_max_bytes: usize,
    /// A peer that has answers waiting and reads nothing at all for this long is closed.
    pub write_stall: Duration,
    /// A connection on which nothing is read or written for this long is closed.
    pub idle: Duration,
    /// Requests of one peer under way at once; more are answered with SYSTEM_BUSY.
    pub unanswered: usize,
    /// Requests to one peer under way at once; more fail.
    pub pending_requests: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_bytes: MAX_FRAME_LENGTH,
            out_high_bytes: 1024 * 1024,
            out_low_bytes: 256 * 1024,
            out_max_bytes: 64 * 1024 * 1024,
            write_stall: Duration::from_secs(60),
            idle: Duration::from_secs(120),
            unanswered: 65_535,
            pending_requests: 65_535,
        }
    }
}

/// How a server listens.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Port 0 takes a free one.
    pub listen: SocketAddr,
    pub backlog: i32,
    /// Connections beyond it are closed at once.
    pub max_connections: usize,
    /// When more than this waits for peers that do not read, those are closed after a second and not after
    /// [`Limits::write_stall`].
    pub out_total_bytes: usize,
    pub limits: Limits,
    pub tls: TlsSettings,
    /// Whether peers may begin with a PROXY header. Nobody is asked whether he is a proxy.
    pub proxy_protocol: bool,
}

impl ServerConfig {
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            backlog: 1024,
            max_connections: 100_000,
            out_total_bytes: 256 * 1024 * 1024,
            limits: Limits::default(),
            tls: TlsSettings::default(),
            proxy_protocol: true,
        }
    }
}

/// A listening server. Dropping it stops at once; [`Server::shutdown`] is the gentle way.
pub struct Server {
    shared: Arc<Shared>,
    local: SocketAddr,
    stop: watch::Sender<bool>,
    acceptor: JoinHandle<()>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Server on {}", self.local)
    }
}

struct Shared {
    config: ServerConfig,
    tls: Option<ServerTls>,
    limits: Arc<Limits>,
    side: Arc<Side>,
    connections: Mutex<HashMap<u64, Connection>>,
    sockets: AtomicUsize,
}

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a server must have nothing to do before a gentle stop counts it as drained.
const QUIET: Duration = Duration::from_millis(100);

impl Server {
    /// Starts listening. To be called within a tokio runtime, which then runs the connections.
    pub fn bind<S: Service>(config: ServerConfig, service: Arc<S>) -> io::Result<Self> {
        let listener = listen(&config)?;
        let local = listener.local_addr()?;
        let shared = Arc::new(Shared {
            limits: Arc::new(config.limits.clone()),
            tls: ServerTls::new(&config.tls)?,
            side: Arc::new(Side::new(config.out_total_bytes)),
            config,
            connections: Mutex::new(HashMap::new()),
            sockets: AtomicUsize::new(0),
        });
        let (stop, stopped) = watch::channel(false);
        let acceptor = tokio::spawn(accept(listener, shared.clone(), service, stopped));
        Ok(Self { shared, local, stop, acceptor })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The connections that have spoken and are not over.
    pub fn connections(&self) -> Vec<Connection> {
        self.shared.connections.lock().values().cloned().collect()
    }

    /// Stops: no new connections; for at most `grace` clients newer than V5_3_1 are told to go away while older ones are
    /// still served; ends early when all are answered and quiet; then all connections are closed.
    pub async fn shutdown(self, grace: Duration) {
        self.shared.side.draining.store(true, Ordering::Relaxed);
        self.acceptor.abort();
        let deadline = Instant::now() + grace;
        let mut quiet_since = Instant::now();
        while Instant::now() < deadline {
            let busy = self.connections().iter().any(|conn| conn.unanswered() > 0 || conn.queued_bytes() > 0);
            if busy {
                quiet_since = Instant::now();
            } else if quiet_since.elapsed() >= QUIET {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.close_all();
        let deadline = Instant::now() + Duration::from_secs(1);
        while self.shared.sockets.load(Ordering::Acquire) > 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn close_all(&self) {
        self.stop.send_replace(true);
        for conn in self.connections() {
            conn.close(CloseReason::Shutdown);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.acceptor.abort();
        self.close_all();
    }
}

fn listen(config: &ServerConfig) -> io::Result<TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(config.listen), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if config.listen.is_ipv6() {
        // Like Java's, a wildcard listener serves both families.
        socket.set_only_v6(false)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&config.listen.into())?;
    socket.listen(config.backlog)?;
    TcpListener::from_std(socket.into())
}

async fn accept<S: Service>(
    listener: TcpListener,
    shared: Arc<Shared>,
    service: Arc<S>,
    stopped: watch::Receiver<bool>,
) {
    static FULL: RateLimited = RateLimited::new();
    static FAILED: RateLimited = RateLimited::new();
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                if let Some(skipped) = FAILED.allow() {
                    tracing::warn!(%error, skipped, "cannot accept a connection");
                }
                // Out of file descriptors, most likely: trying again at once would only burn the processor.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        if shared.sockets.load(Ordering::Relaxed) >= shared.config.max_connections {
            if let Some(skipped) = FULL.allow() {
                tracing::warn!(%peer, skipped, limit = shared.config.max_connections, "connection refused: too many");
            }
            continue;
        }
        let socket = SocketCount::new(shared.clone());
        tokio::spawn(serve(socket, service.clone(), stream, peer, stopped.clone()));
    }
}

/// Counts a socket for as long as it lives.
struct SocketCount {
    shared: Arc<Shared>,
}

impl SocketCount {
    fn new(shared: Arc<Shared>) -> Self {
        shared.sockets.fetch_add(1, Ordering::AcqRel);
        Self { shared }
    }
}

impl Drop for SocketCount {
    fn drop(&mut self) {
        self.shared.sockets.fetch_sub(1, Ordering::AcqRel);
    }
}

async fn serve<S: Service>(
    socket: SocketCount,
    service: Arc<S>,
    stream: TcpStream,
    peer: SocketAddr,
    mut stopped: watch::Receiver<bool>,
) {
    let shared = &socket.shared;
    let Ok(local) = stream.local_addr() else {
        return;
    };
    // Answers are written whole, so there is nothing to gain from waiting for more.
    let _ = stream.set_nodelay(true);
    let start = read_start(&stream, shared.config.tls.mode, shared.config.proxy_protocol);
    let start = tokio::select! {
        start = tokio::time::timeout(shared.config.limits.idle, start) => start.unwrap_or(Err(CloseReason::Idle)),
        _ = stopped.wait_for(|stopped| *stopped) => return,
    };
    let Start { kind, input, proxy } = match start {
        Ok(start) => start,
        Err(why) => return log_closed(peer, &why),
    };
    let (peer, local) = proxy.as_ref().and_then(|proxy| proxy.addresses).unwrap_or((peer, local));
    let conn = Connection::new(peer, local, shared.limits.clone());
    if let Some(proxy) = proxy {
        conn.set(proxy);
    }
    match (kind, &shared.tls) {
        (Kind::Plain, _) => run(&socket, &stopped, conn, service, stream, input).await,
        (Kind::Tls, Some(tls)) => {
            // Boxed, so that plain connections do not carry room for it.
            Box::pin(async {
                let handshake = tls.acceptor().accept(Prefixed::new(input, stream));
                match tokio::time::timeout(HANDSHAKE, handshake).await {
                    Ok(Ok(stream)) => run(&socket, &stopped, conn, service, stream, BytesMut::new()).await,
                    Ok(Err(error)) => log_closed(peer, &CloseReason::Tls(error.to_string())),
                    Err(_) => log_closed(peer, &CloseReason::Tls("the handshake takes too long".to_owned())),
                }
            })
            .await;
        }
        (Kind::Tls, None) => log_closed(peer, &CloseReason::BadStart("TLS is disabled")),
    }
}

async fn run<S: Service, IO: AsyncRead + AsyncWrite + Unpin>(
    socket: &SocketCount,
    stopped: &watch::Receiver<bool>,
    conn: Connection,
    service: Arc<S>,
    io: IO,
    input: BytesMut,
) {
    let shared = &socket.shared;
    shared.connections.lock().insert(conn.id(), conn.clone());
    if *stopped.borrow() {
        conn.close(CloseReason::Shutdown);
    }
    let pump = Pump::new(conn.clone(), service.clone(), io, shared.side.clone(), input);
    service.connected(&conn);
    let mut ending = Ending { shared, conn, service, why: CloseReason::Local("a handler panicked") };
    ending.why = pump.run().await;
}

/// What is due when a connection ends, in whatever way.
struct Ending<'a, S: Service> {
    shared: &'a Shared,
    conn: Connection,
    service: Arc<S>,
    why: CloseReason,
}

impl<S: Service> Drop for Ending<'_, S> {
    fn drop(&mut self) {
        self.conn.finish(&self.why);
        self.shared.connections.lock().remove(&self.conn.id());
        log_closed(self.conn.remote_addr(), &self.why);
        self.service.disconnected(&self.conn, self.why.clone());
    }
}

fn log_closed(peer: SocketAddr, why: &CloseReason) {
    static WRONG: RateLimited = RateLimited::new();
    match why {
        CloseReason::PeerClosed | CloseReason::Idle | CloseReason::Shutdown | CloseReason::Local(_) => {
            tracing::debug!(%peer, %why, "connection closed");
        }
        // Whoever connects a thousand times a second with rubbish must not fill the log with it.
        _ => match WRONG.allow() {
            Some(skipped) => tracing::warn!(%peer, %why, skipped, "connection closed"),
            None => tracing::debug!(%peer, %why, "connection closed"),
        },
    }
}
