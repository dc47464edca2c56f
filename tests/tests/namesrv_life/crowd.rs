//! Peers that are many, that do not read, or that lie. A broker and a client beside them must not notice.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::process::Command as Process;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::BytesMut;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use protocol::{Command, request_code as code};
use rocketmq_tests::process::{Server, binary};
use rocketmq_tests::wire::Wire;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::rig::{LIMIT, MIB, Plan, ask_ok, has, registration, route};

const CROWD: usize = 10_000;

/// Asks for more open files; false when so many are not allowed.
fn may_open(files: u64) -> bool {
    let limit = getrlimit(Resource::Nofile);
    let enough = limit.maximum.is_none_or(|most| most >= files);
    if enough && limit.current.is_some_and(|current| current < files) {
        return setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum: limit.maximum }).is_ok();
    }
    enough
}

/// The slowest of some route queries by a client that behaves, on a connection of its own.
fn slowest_query(address: SocketAddr, topic: &str) -> Result<Duration> {
    let mut wire = Wire::connect(address)?;
    let mut slowest = Duration::ZERO;
    for _ in 0..200 {
        let begin = Instant::now();
        ask_ok(&mut wire, &route(topic))?;
        slowest = slowest.max(begin.elapsed());
    }
    Ok(slowest)
}

/// Started where a process may open 1,024 files, as on most systems; its hard limit is higher.
#[test]
fn ten_thousand_connections_that_say_nothing() -> Result<()> {
    if !may_open(CROWD as u64 + 2_000) {
        println!("skipped: the hard limit of open files is too low");
        return Ok(());
    }
    let plan = Plan::new("")?;
    let mut command = Process::new("sh");
    command.args(["-c", "ulimit -Sn 1024 && exec \"$0\" -c \"$1\""]).arg(binary("mqnamesrv")?).arg(plan.file());
    let mut server = Server::spawn(command, plan.address(), plan.home.path())?;
    let mut broker = Wire::connect(server.address)?;
    let hello = registration("calm", "127.0.0.1:10911", &["CalmA".to_owned(), "CalmB".to_owned()]);
    ask_ok(&mut broker, &hello)?;
    let before = server.resident_bytes()?;
    let mut crowd = Vec::with_capacity(CROWD);
    for at in 0..CROWD {
        crowd.push(TcpStream::connect(server.address).with_context(|| format!("connection {at}"))?);
    }
    let slowest = slowest_query(server.address, "CalmA")?;
    ask_ok(&mut broker, &hello)?;
    let grown = server.resident_bytes()?.saturating_sub(before);
    println!("{CROWD} silent connections: {} KiB, slowest route query {slowest:?}", grown / 1024);
    ensure!(grown < 64 * MIB, "{CROWD} silent connections cost {} MiB", grown / MIB);
    drop(crowd);
    ensure!(has(&mut broker, "CalmA", "calm")? && server.is_alive());
    let lines = plan.home.path().join("sh.stderr");
    let lines = std::fs::read_to_string(lines)?.lines().count();
    ensure!(lines < 20, "{lines} lines of log about connections that only came and went");
    Ok(())
}

#[test]
fn a_quarter_million_topics_asked_for_and_not_read() -> Result<()> {
    const BROKERS: usize = 25;
    const TOPICS: usize = 10_000;
    const ASKERS: usize = 60;
    let plan = Plan::new("")?;
    let mut server = plan.start()?;
    let mut brokers = Vec::new();
    for at in 0..BROKERS {
        let topics: Vec<_> = (0..TOPICS).map(|topic| format!("ATopicOfSomeLength-{at}-{topic}")).collect();
        let mut wire = Wire::connect(server.address)?;
        ask_ok(&mut wire, &registration(&format!("b{at}"), &format!("10.0.0.{at}:10911"), &topics))?;
        brokers.push(wire);
    }
    let all = Command::request(code::GET_ALL_TOPIC_LIST_FROM_NAMESERVER);
    let list = ask_ok(&mut brokers[0], &all)?.body.len() as u64;
    ensure!(list > 5 * MIB, "the list has {list} bytes");
    let before = server.resident_bytes()?;
    let lines_before = plan.log()?.lines().count();
    let mut many = BytesMut::new();
    for opaque in 0..50 {
        let mut request = all.clone();
        request.opaque = opaque;
        request.encode(&mut many);
    }
    let mut askers = Vec::new();
    for _ in 0..ASKERS {
        let mut stream = TcpStream::connect(server.address)?;
        stream.write_all(&many)?;
        askers.push(stream);
    }
    // Each has had its first answer begun: the requests of one connection are answered in order.
    let mut peak = 0;
    let begin = Instant::now();
    rocketmq_tests::wait_until("somebody's answer is not read", LIMIT, || {
        peak = peak.max(server.resident_bytes().unwrap_or(u64::MAX));
        begin.elapsed() > Duration::from_secs(2)
    });
    let slowest = slowest_query(server.address, "ATopicOfSomeLength-0-7")?;
    let asked = ASKERS as u64 * 50 * list;
    println!(
        "{} MiB asked for and not read: {} MiB more at most; slowest route query {slowest:?}",
        asked / MIB,
        peak.saturating_sub(before) / MIB
    );
    ensure!(peak.saturating_sub(before) < 150 * MIB, "grew from {} to {} MiB", before / MIB, peak / MIB);
    ensure!(ask_ok(&mut brokers[1], &all)?.body.len() as u64 == list, "a reader gets the whole list");
    let lines = plan.log()?.lines().count() - lines_before;
    ensure!(lines <= ASKERS, "{lines} lines of log about {ASKERS} peers");
    ensure!(server.is_alive());
    Ok(())
}

fn sized(text: &[u8]) -> Vec<u8> {
    let mut out = (text.len() as i32).to_be_bytes().to_vec();
    out.extend_from_slice(text);
    out
}

fn zlib(begin: &[u8], repeated: &[u8], times: usize) -> Result<Vec<u8>> {
    let mut out = ZlibEncoder::new(Vec::new(), Compression::fast());
    out.write_all(begin)?;
    for _ in 0..times {
        out.write_all(repeated)?;
    }
    Ok(out.finish()?)
}

/// What `broken_input` throws at the server many times over costs one line each, with the broker and the reason.
#[test]
fn each_lie_is_one_line_of_log() -> Result<()> {
    let plan = Plan::new("")?;
    let server = plan.start()?;
    let mut wire = Wire::connect(server.address)?;
    let good = registration("honest", "127.0.0.1:10911", &["LieA".to_owned(), "LieB".to_owned()]);
    ask_ok(&mut wire, &good)?;
    let mut begin = sized(b"{}");
    begin.extend_from_slice(&500i32.to_be_bytes());
    let bomb = zlib(&begin, &sized(&vec![b'x'; 1024 * 1024]), 200)?;
    // Letters that do not compress: the half of the stream is about the half of the line.
    let mut random = fastrand::Rng::with_seed(7);
    let line: Vec<u8> = (0..4_000).map(|_| random.alphanumeric() as u8).collect();
    let whole = zlib(&begin, &sized(&line), 1)?;
    let truncated = whole[..whole.len() / 2].to_vec();
    for (what, request, words) in [
        ("a wrong CRC", good.clone().with_field("bodyCrc32", "7"), "crc32 not match"),
        ("a truncated stream", good.clone().with_field("compressed", "true").with_body(truncated), "zlib stream"),
        ("a bomb", good.clone().with_field("compressed", "true").with_body(bomb), "inflates to more than"),
    ] {
        let before = plan.log()?.lines().count();
        let answer = wire.ask(&request)?;
        ensure!(answer.code == 1 && answer.remark.is_some(), "{what}: {answer:?}");
        let log = plan.log()?;
        let news: Vec<_> = log.lines().skip(before).collect();
        let [line] = news[..] else { anyhow::bail!("{what}: {news:#?}") };
        ensure!(line.contains("honest") && line.contains(words), "{what}: {line}");
        ensure!(has(&mut wire, "LieA", "honest")?, "{what} took an honest broker's topics");
    }
    Ok(())
}
