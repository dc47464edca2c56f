//! What the connection loop costs: a service that does nothing, asked over loopback with many frames in flight.
//!
//! `cargo run --release --example echo_bench -- serve|drive [connections] [in flight] [seconds]`; without a mode both
//! ends run in one process. The figures are CPU time of the process divided by requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use protocol::frame::{Head, encode_parts};
use protocol::{Command, Language, SerializeType};
use remoting::{ClientConfig, Connection, FieldWriter, NoFields, Reply, Server, ServerConfig, Service};

/// Answers at once.
struct Nothing;

impl Service for Nothing {
    type Batch = ();

    fn call(&self, _conn: &Connection, _batch: &mut (), _request: Command, reply: Reply) {
        let fields = |out: &mut FieldWriter<'_>| {
            out.pair("msgId", "7F00000100002A9F0000000000000000");
            out.pair("queueId", "0");
            out.pair("queueOffset", "123456");
        };
        reply.send_parts(0, None, &fields, ());
    }
}

/// Sends the next request for each answer.
struct Driver {
    answered: AtomicU64,
    body: Bytes,
}

impl Service for Driver {
    type Batch = i32;

    fn call(&self, _conn: &Connection, _batch: &mut i32, _request: Command, reply: Reply) {
        reply.send_parts(0, None, &NoFields, ());
    }

    fn unmatched(&self, _conn: &Connection, batch: &mut i32, _response: Command) {
        *batch += 1;
    }

    fn end_batch(&self, conn: &Connection, batch: &mut i32) {
        self.answered.fetch_add(*batch as u64, Ordering::Relaxed);
        ask(conn, &self.body, *batch);
    }
}

fn ask(conn: &Connection, body: &Bytes, count: i32) {
    conn.send_encoded(|out: &mut BytesMut| {
        for _ in 0..count {
            let head = Head {
                code: 310,
                language: Language::RUST,
                version: 493,
                opaque: 1,
                flag: 0,
                remark: None,
                serialize: SerializeType::Json,
            };
            encode_parts(
                out,
                &head,
                &mut |sink| {
                    for (key, value) in [("a", "PID_BENCH"), ("b", "BenchTopic"), ("c", "TBW102"), ("d", "8")] {
                        sink.pair(key, value);
                    }
                    for (key, value) in [("e", "3"), ("f", "0"), ("g", "1700000000000"), ("h", "0")] {
                        sink.pair(key, value);
                    }
                    sink.pair("i", "UNIQ_KEY\u{1}7F00000100002A9F0000000000000000\u{2}WAIT\u{1}true");
                    sink.pair("j", "0");
                },
                body.len(),
            );
            out.extend_from_slice(body);
        }
    });
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
    (ticks(11) + ticks(12)) / 100.0
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1).peekable();
    let mode = args.next().unwrap_or_else(|| "both".to_owned());
    let mut number = |default: u64| args.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (connections, in_flight, seconds, port) = (number(4), number(16), number(5), number(22999));
    let addr = std::net::SocketAddr::from(([127, 0, 0, 1], port as u16));
    if mode == "serve" {
        let _server = Server::bind(ServerConfig::new(addr), Arc::new(Nothing))?;
        tokio::signal::ctrl_c().await?;
        return Ok(());
    }
    let _server = if mode == "both" { Some(Server::bind(ServerConfig::new(addr), Arc::new(Nothing))?) } else { None };
    let driver = Arc::new(Driver { answered: AtomicU64::new(0), body: Bytes::from(vec![b'x'; 1024]) });
    for _ in 0..connections {
        let conn = remoting::connect(&addr.to_string(), &ClientConfig::default(), driver.clone()).await?;
        ask(&conn, &driver.body, in_flight as i32);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (count, cpu, start) = (driver.answered.load(Ordering::Relaxed), cpu_seconds(), Instant::now());
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let (count, cpu) = (driver.answered.load(Ordering::Relaxed) - count, cpu_seconds() - cpu);
    println!(
        "{connections} connections x {in_flight} in flight: {:.0} requests/s, {:.2} us CPU of this process per request",
        count as f64 / start.elapsed().as_secs_f64(),
        cpu * 1e6 / count.max(1) as f64,
    );
    std::process::exit(0);
}
