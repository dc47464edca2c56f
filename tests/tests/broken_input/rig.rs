//! A name server, a broker, and a well-behaved client that must go on working beside every attack.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use client::{Admin, Cluster, Message, Producer, PullConsumer, PullOptions};
use protocol::body::MessageQueue;
use rocketmq_tests::process::{BrokerPlan, Server, name_server};
use tempfile::TempDir;

pub(crate) const TOPIC: &str = "Unharmed";
const MIB: u64 = 1024 * 1024;

pub(crate) struct Rig {
    pub(crate) names: Server,
    pub(crate) broker: Server,
    pub(crate) plan: BrokerPlan,
    pub(crate) home: TempDir,
    pub(crate) cluster: Cluster,
    sent: u32,
}

impl Rig {
    pub(crate) async fn start(extra: &str) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let names = name_server(home.path())?;
        let plan = BrokerPlan::new(home.path(), names.address, extra)?;
        let broker = plan.start()?;
        let cluster = Cluster::connect(&names.address.to_string());
        Admin::new(cluster.clone()).create_topic_everywhere(TOPIC, 1).await?;
        Ok(Self { names, broker, plan, home, cluster, sent: 0 })
    }

    /// Both servers, for attacks that fit both.
    pub(crate) fn addresses(&self) -> [SocketAddr; 2] {
        [self.names.address, self.broker.address]
    }

    pub(crate) fn queue() -> MessageQueue {
        MessageQueue::new(TOPIC, "broker-a", 0)
    }

    /// Sends one message and gets it back.
    pub(crate) async fn round_trip(&mut self) -> Result<()> {
        self.sent += 1;
        let body = format!("message {}", self.sent);
        let producer = Producer::new(self.cluster.clone(), "Unharmed-producers");
        let sent = producer.send(&Message::new(TOPIC, body.clone())).await.context("a well-behaved send")?;
        let consumer = PullConsumer::new(self.cluster.clone(), "Unharmed-readers");
        let pulled = consumer.pull(&sent.queue, sent.queue_offset, &PullOptions::default()).await?;
        let first = pulled.messages.first().context("the message is not there")?;
        ensure!(first.body == body.as_bytes(), "got {:?}, expected {body:?}", first.body);
        Ok(())
    }

    /// What must hold after every attack: each server below `mib` MiB and with at most `lines` lines of log.
    pub(crate) async fn unharmed(&mut self, mib: u64, lines: usize) -> Result<()> {
        for (name, server) in [("mqnamesrv", &mut self.names), ("mqbroker", &mut self.broker)] {
            ensure!(server.is_alive(), "{name} died: {}", tail(&self.home, name));
            let resident = server.resident_bytes()?;
            ensure!(resident < mib * MIB, "{name} holds {} MiB, expected less than {mib}", resident / MIB);
        }
        for name in ["mqnamesrv", "mqbroker"] {
            let log = self.log(name)?;
            ensure!(!log.contains("panic"), "{name} panicked: {}", tail(&self.home, name));
            let count = log.lines().count();
            ensure!(count <= lines, "{name} wrote {count} lines, expected at most {lines}; the last:{}", {
                tail(&self.home, name)
            });
        }
        // A cluster of its own: no connection or route from before the attack.
        self.cluster = Cluster::connect(&self.names.address.to_string());
        self.round_trip().await
    }

    pub(crate) fn log(&self, name: &str) -> Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(self.home.path().join(format!("{name}.stderr")))?).into_owned())
    }
}

fn tail(home: &TempDir, name: &str) -> String {
    let log = fs::read(home.path().join(format!("{name}.stderr"))).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().collect();
    format!("\n{}", lines[lines.len().saturating_sub(8)..].join("\n"))
}

/// Writes `bytes` to a connection of their own; a server that closes it early is right to do so.
pub(crate) fn throw(address: SocketAddr, bytes: &[u8]) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    let _ = stream.write_all(bytes);
    Ok(stream)
}

/// Whether the server closes the connection; what it sends before is passed over.
pub(crate) fn is_closed(mut stream: &TcpStream, limit: Duration) -> Result<bool> {
    use std::io::{ErrorKind, Read};
    let deadline = Instant::now() + limit;
    let mut chunk = [0; 4096];
    stream.set_read_timeout(Some(limit))?;
    while Instant::now() < deadline {
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(true),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(false),
            Err(_) => return Ok(true),
        }
    }
    Ok(false)
}

/// A generator whose seed is in the test's output.
pub(crate) fn random() -> fastrand::Rng {
    let seed = std::env::var("SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("SEED={seed}");
    fastrand::Rng::with_seed(seed)
}
