//! A small server whose codes do what a test needs, and raw sockets to talk to it.
#![allow(dead_code, unreachable_pub)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use protocol::Command;
use protocol::frame::{self, MAX_FRAME_LENGTH};
use remoting::{CloseReason, Connection, Lane, NoFields, Reply, Server, ServerConfig, Service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Answers with the request's fields and body.
pub const ECHO: i32 = 1001;
/// Answers with as many bytes as the field `bytes` says.
pub const LARGE: i32 = 1002;
/// Keeps its reply until [`TestService::release`].
pub const PARK: i32 = 1003;
/// Goes through a lane of two places and is kept like PARK.
pub const LANE: i32 = 1004;
/// Answered in `end_batch`.
pub const GROUPED: i32 = 1005;
/// Asks the client back (code 2001) and answers with what it said.
pub const ASK_BACK: i32 = 1006;
/// Answers REJECTREQUEST.
pub const REJECT: i32 = 1007;
/// Counted, never answered.
pub const COUNT: i32 = 1008;

pub struct TestService {
    pub parked: Mutex<Vec<Reply>>,
    pub lane: Lane,
    pub batches: Mutex<Vec<usize>>,
    pub connected: Mutex<Vec<Connection>>,
    pub closed: Mutex<Vec<(u64, CloseReason)>>,
    pub counted: std::sync::atomic::AtomicUsize,
}

impl Default for TestService {
    fn default() -> Self {
        Self {
            parked: Mutex::default(),
            lane: Lane::new("test", 2),
            batches: Mutex::default(),
            connected: Mutex::default(),
            closed: Mutex::default(),
            counted: Default::default(),
        }
    }
}

#[derive(Default)]
pub struct Batch {
    grouped: Vec<Reply>,
    calls: usize,
}

impl TestService {
    /// Answers all parked requests.
    pub fn release(&self) -> usize {
        let parked = std::mem::take(&mut *self.parked.lock());
        let count = parked.len();
        parked.into_iter().for_each(|reply| reply.send(Command::response(0)));
        count
    }

    pub fn why_closed(&self) -> Option<CloseReason> {
        self.closed.lock().first().map(|(_, why)| why.clone())
    }
}

impl Service for TestService {
    type Batch = Batch;

    fn call(&self, conn: &Connection, batch: &mut Batch, request: Command, mut reply: Reply) {
        batch.calls += 1;
        match request.code {
            ECHO => {
                let fields = |out: &mut remoting::FieldWriter<'_>| {
                    request.fields.iter().for_each(|(key, value)| out.pair(&key, &value));
                };
                reply.send_parts(0, None, &fields, request.body.clone());
            }
            LARGE => {
                let bytes: usize = request.fields.get("bytes").unwrap().parse().unwrap();
                let body = Bytes::from(vec![7u8; bytes]);
                let half = bytes / 2;
                reply.send_parts(0, None, &NoFields, vec![body.slice(..half), body.slice(half..)]);
            }
            PARK => self.parked.lock().push(reply),
            LANE => match self.lane.try_enter() {
                Some(permit) => {
                    reply.hold(permit);
                    self.parked.lock().push(reply);
                }
                None => reply.overloaded(),
            },
            GROUPED => batch.grouped.push(reply),
            ASK_BACK => {
                let conn = conn.clone();
                tokio::spawn(async move {
                    match conn.request(Command::request(2001), Duration::from_millis(300)).await {
                        Ok(said) => reply.send(Command::response(0).with_body(said.body)),
                        Err(error) => reply.send(Command::response(1).with_remark(error.to_string())),
                    }
                });
            }
            REJECT => reply.rejected(),
            COUNT => {
                self.counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
            _ => reply.not_supported(),
        }
    }

    fn end_batch(&self, _conn: &Connection, batch: &mut Batch) {
        self.batches.lock().push(batch.calls);
        batch.grouped.drain(..).for_each(|reply| reply.send_parts(0, None, &NoFields, ()));
    }

    fn connected(&self, conn: &Connection) {
        self.connected.lock().push(conn.clone());
    }

    fn disconnected(&self, conn: &Connection, why: CloseReason) {
        self.closed.lock().push((conn.id(), why));
    }
}

pub fn config() -> ServerConfig {
    ServerConfig::new("127.0.0.1:0".parse().unwrap())
}

pub fn serve(config: ServerConfig) -> (Server, Arc<TestService>) {
    let service = Arc::new(TestService::default());
    (Server::bind(config, service.clone()).unwrap(), service)
}

pub fn encoded(commands: &[Command]) -> BytesMut {
    let mut out = BytesMut::new();
    for (opaque, command) in commands.iter().enumerate() {
        let mut command = command.clone();
        command.opaque = opaque as i32;
        command.encode(&mut out);
    }
    out
}

/// A socket without any of the client's cleverness.
pub struct Raw<IO = tokio::net::TcpStream> {
    pub io: IO,
    pub input: BytesMut,
}

impl Raw {
    pub async fn to(addr: SocketAddr) -> Self {
        Self { io: tokio::net::TcpStream::connect(addr).await.unwrap(), input: BytesMut::new() }
    }
}

impl<IO: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin> Raw<IO> {
    pub fn over(io: IO) -> Self {
        Self { io, input: BytesMut::new() }
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.io.write_all(bytes).await.unwrap();
        self.io.flush().await.unwrap();
    }

    /// The next frame; `None` when the server has closed.
    pub async fn next(&mut self) -> Option<Command> {
        let work = async {
            loop {
                if let Some(command) = frame::decode(&mut self.input, MAX_FRAME_LENGTH).unwrap() {
                    return Some(command);
                }
                match self.io.read_buf(&mut self.input).await {
                    Ok(0) | Err(_) => return None,
                    Ok(_) => {}
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), work).await.expect("a frame or the end within 10 s")
    }
}

/// Waits for a condition.
pub async fn until(what: &str, mut met: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while !met() {
        assert!(std::time::Instant::now() < deadline, "not within 10 s: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
