//! Many at once: connections that say nothing, connections that come and go, topics without end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command as Process;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::BytesMut;
use protocol::{Command, request_code};
use rocketmq_tests::process::{Server, binary, free_port};
use rocketmq_tests::wire::Wire;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::rig::{Rig, is_closed, throw};

const CROWD: usize = 5_000;

fn may_open(files: u64) -> bool {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    if limit.current.is_some_and(|current| current < files) && most >= files {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum: limit.maximum });
    }
    most >= files
}

/// Ends with a reset and not in order, which also leaves the port to others at once.
fn leave(stream: TcpStream) -> Result<()> {
    Ok(rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections() -> Result<()> {
    // Two crowds, and the other tests of this process.
    if !may_open(2 * CROWD as u64 + 2_000) {
        println!("skipped: the limit of open files is too low");
        return Ok(());
    }
    let mut rig = Rig::start("").await?;
    let mut crowd = Vec::with_capacity(2 * CROWD);
    for address in rig.addresses() {
        let half = Command::request(request_code::GET_BROKER_CLUSTER_INFO);
        let mut begin = BytesMut::new();
        half.encode(&mut begin);
        for at in 0..CROWD {
            let mut stream = TcpStream::connect(address).with_context(|| format!("connection {at}"))?;
            if at % 3 == 0 {
                stream.write_all(&begin[..at % begin.len()])?;
            }
            crowd.push(stream);
        }
    }
    rig.unharmed(150, 20).await?;
    for stream in crowd {
        leave(stream)?;
    }
    rig.unharmed(150, 20).await
}

/// A server started with a low limit of open files takes what its hard limit allows.
#[test]
fn the_limit_of_open_files_is_raised() -> Result<()> {
    let home = tempfile::tempdir()?;
    let port = free_port(0)?;
    let file = home.path().join("namesrv.properties");
    std::fs::write(&file, format!("listenPort={port}\nbindAddress=127.0.0.1\n"))?;
    let mut command = Process::new("sh");
    command.arg("-c").arg("ulimit -Sn 256 && exec \"$0\" -c \"$1\"").arg(binary("mqnamesrv")?).arg(&file);
    let mut server = Server::spawn(command, ([127, 0, 0, 1], port).into(), home.path())?;
    let mut crowd = Vec::new();
    for _ in 0..400 {
        crowd.push(TcpStream::connect(server.address)?);
    }
    let answer = Wire::connect(server.address)?.ask(&Command::request(request_code::GET_BROKER_CLUSTER_INFO))?;
    ensure!(answer.code == 0 && server.is_alive());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_come_and_go() -> Result<()> {
    let mut rig = Rig::start("").await?;
    for address in rig.addresses() {
        for at in 0..2_000 {
            if at % 2 == 0 {
                leave(throw(address, b"")?)?;
            } else {
                let stream = throw(address, b"GET / HTTP/1.1\r\n\r\n")?;
                ensure!(is_closed(&stream, Duration::from_secs(5))?, "HTTP is answered");
            }
        }
    }
    rig.unharmed(150, 60).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_without_end() -> Result<()> {
    const MADE: usize = 200;
    const REFUSED: usize = 3_000;
    let mut rig = Rig::start("").await?;
    let mut wire = Wire::connect(rig.broker.address)?;
    let send = |topic: String| {
        Command::request(request_code::SEND_MESSAGE_V2)
            .with_field("a", "P")
            .with_field("b", topic)
            .with_field("c", "TBW102")
            .with_field("d", "4")
            .with_field("e", "0")
            .with_field("f", "0")
            .with_field("g", "0")
            .with_field("h", "0")
            .with_body(b"x".to_vec())
    };
    for at in 0..MADE {
        let answer = wire.ask(&send(format!("Flood{at}")))?;
        ensure!(answer.code == 0, "topic {at}: {} {:?}", answer.code, answer.remark);
    }
    // Topics that cannot be made are refused without a line for each.
    for at in 0..REFUSED {
        let request = send(format!("Refused{at}")).with_field("c", "NoTemplate");
        let answer = wire.ask(&request)?;
        ensure!(answer.code != 0, "a topic is made without a template");
    }
    // One line for each that was made.
    rig.unharmed(250, MADE + 50).await
}

/// The page has a row for each group of each topic; it must stay quick, and the broker small.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_metrics_page_of_ten_thousand_topics_and_groups() -> Result<()> {
    const MANY: usize = 10_000;
    let page_at = free_port(0)?;
    let mut rig = Rig::start(&format!("httpAddress=127.0.0.1:{page_at}")).await?;
    let mut wire = Wire::connect(rig.broker.address)?;
    let topics: Vec<_> =
        (0..MANY).map(|at| serde_json::json!({"topicName": format!("Topic{at}"), "perm": 6})).collect();
    let body = serde_json::json!({ "topicConfigList": topics }).to_string();
    let answer =
        wire.ask(&Command::request(request_code::UPDATE_AND_CREATE_TOPIC_LIST).with_body(body.into_bytes()))?;
    ensure!(answer.code == 0, "{:?}", answer.remark);
    let groups: Vec<_> = (0..MANY).map(|at| serde_json::json!({"groupName": format!("Group{at}")})).collect();
    let body = serde_json::json!({ "groupConfigList": groups }).to_string();
    let list = Command::request(request_code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST).with_body(body.into_bytes());
    let answer = wire.ask(&list)?;
    ensure!(answer.code == 0, "{:?}", answer.remark);
    for first in (0..MANY).step_by(500) {
        let commits: Vec<Command> = (first..first + 500)
            .map(|at| {
                Command::request(request_code::UPDATE_CONSUMER_OFFSET)
                    .with_field("consumerGroup", format!("Group{at}"))
                    .with_field("topic", format!("Topic{at}"))
                    .with_field("queueId", "0")
                    .with_field("commitOffset", "0")
            })
            .collect();
        for _ in wire.send_all(&commits)? {
            let answer = wire.read()?;
            ensure!(answer.code == 0, "{:?}", answer.remark);
        }
    }
    for _ in 0..3 {
        let begin = Instant::now();
        let mut stream = TcpStream::connect(("127.0.0.1", page_at))?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        let rows = page.matches("rocketmq_consumer_lag_messages{").count();
        println!("{rows} rows of lag, {} bytes in {:?}", page.len(), begin.elapsed());
        ensure!(rows == MANY, "{rows} rows");
        ensure!(begin.elapsed() < Duration::from_secs(3), "the page takes {:?}", begin.elapsed());
        ensure!(page.len() < 500 * MANY, "the page has {} bytes", page.len());
    }
    rig.unharmed(200, 100).await
}
