//! Clients that ask and do not read the answers.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bytes::BytesMut;
use client::{Message, Producer};
use protocol::{Command, request_code, response_code};
use rocketmq_tests::wire::Wire;

use crate::rig::{Rig, TOPIC};

/// Writes the request again and again until the server takes no more or ends the connection.
fn ask_without_reading(address: SocketAddr, request: &Command, times: usize) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_write_timeout(Some(Duration::from_millis(500)))?;
    let mut out = BytesMut::new();
    for opaque in 0..times {
        let mut request = request.clone();
        request.opaque = opaque as i32;
        request.encode(&mut out);
        if out.len() > 16 * 1024 || opaque + 1 == times {
            match stream.write_all(&out) {
                Ok(()) => out.clear(),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
                Err(_) => break,
            }
        }
    }
    Ok(stream)
}

fn pull(offset: &str) -> Command {
    Command::request(request_code::PULL_MESSAGE)
        .with_field("consumerGroup", "Slow")
        .with_field("topic", TOPIC)
        .with_field("queueId", "0")
        .with_field("queueOffset", offset)
        .with_field("maxMsgNums", "32")
        .with_field("sysFlag", "6")
        .with_field("commitOffset", "0")
        .with_field("suspendTimeoutMillis", "600000")
        .with_field("subscription", "*")
        .with_field("subVersion", "0")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pulls_that_nobody_reads() -> Result<()> {
    let mut rig = Rig::start("").await?;
    let producer = Producer::new(rig.cluster.clone(), "P");
    for _ in 0..40 {
        producer.send(&Message::new(TOPIC, vec![b'x'; 100_000])).await?;
    }
    let mut slow = Vec::new();
    for _ in 0..20 {
        slow.push(ask_without_reading(rig.broker.address, &pull("0"), 3_000)?);
    }
    // And some that wait for messages which then come.
    for _ in 0..4 {
        slow.push(ask_without_reading(rig.broker.address, &pull("40"), 20_000)?);
    }
    rig.unharmed(350, 60).await?;
    drop(slow);
    rig.unharmed(350, 60).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_lists_that_nobody_reads() -> Result<()> {
    let mut rig = Rig::start("").await?;
    // 20,000 topics on both servers, as operators have them.
    let list: Vec<String> = (0..20_000)
        .map(|at| format!("{{\"topicName\":\"ATopicWithANameOfSomeLength{at}\",\"readQueueNums\":4,\"writeQueueNums\":4,\"perm\":6}}"))
        .collect();
    let body = format!("{{\"topicConfigList\":[{}]}}", list.join(","));
    let create = Command::request(request_code::UPDATE_AND_CREATE_TOPIC_LIST).with_body(body.into_bytes());
    let mut wire = Wire::connect(rig.broker.address)?;
    let answer = wire.ask(&create)?;
    ensure!(answer.code == 0, "{} {:?}", answer.code, answer.remark);
    let mut slow = Vec::new();
    for _ in 0..10 {
        for (address, code) in [
            (rig.broker.address, request_code::GET_ALL_TOPIC_CONFIG),
            (rig.names.address, request_code::GET_ALL_TOPIC_LIST_FROM_NAMESERVER),
        ] {
            slow.push(ask_without_reading(address, &Command::request(code), 2_000)?);
        }
    }
    rig.unharmed(500, 200).await?;
    drop(slow);
    // A client that reads gets the list, however long it is.
    let deadline = Instant::now() + Duration::from_secs(20);
    let answer = loop {
        let answer = wire.ask(&Command::request(request_code::GET_ALL_TOPIC_CONFIG))?;
        if answer.code != response_code::SYSTEM_BUSY || Instant::now() > deadline {
            break answer;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    ensure!(answer.code == 0 && answer.body.len() > 1_000_000, "{} {} bytes", answer.code, answer.body.len());
    rig.unharmed(500, 200).await
}
