//! Thousands of idle connections must cost little. Alone in its process, because it measures the process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use protocol::Command;
use support::*;

/// Both ends live in this process, and each connection is two descriptors.
const CONNECTIONS: usize = 5000;

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn connect(addr: std::net::SocketAddr, request: &[u8], answer_bytes: usize) -> TcpStream {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = vec![0; answer_bytes];
    stream.read_exact(&mut answer).unwrap();
    stream
}

#[test]
fn an_idle_connection_costs_less_than_10_kib() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let files = limit.maximum.map_or(usize::MAX, |files| files as usize);
    let connections = CONNECTIONS.min(files.saturating_sub(200) / 2);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (server, service) = runtime.block_on(async { serve(config()) });
    let addr = server.local_addr();
    // A body that fills buffers, so that what is kept by mistake shows.
    let request = encoded(&[Command::request(ECHO).with_body(vec![1u8; 30_000])]);
    let mut answer = bytes::BytesMut::new();
    Command::response(0).with_body(vec![1u8; 30_000]).encode(&mut answer);
    let _warm: Vec<TcpStream> = (0..100).map(|_| connect(addr, &request, answer.len())).collect();
    let before = resident_bytes();
    let idle: Vec<TcpStream> = (0..connections).map(|_| connect(addr, &request, answer.len())).collect();
    let each = resident_bytes().saturating_sub(before) / connections;
    println!("{each} bytes for each of {connections} connections");
    assert!(each < 10 * 1024, "{each} bytes for each of {connections} idle connections");
    assert_eq!(service.closed.lock().len(), 0);
    assert_eq!(server.connections().len(), idle.len() + 100);
}
