//! Files that were changed behind the broker's back.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use client::{Message, Producer, PullConsumer, PullOptions};
use rustix::process::Signal;

use crate::rig::{Rig, TOPIC};

async fn stop(rig: &mut Rig, signal: Signal) -> Result<()> {
    rig.broker.signal(signal)?;
    rig.broker.wait(Duration::from_secs(20))?;
    Ok(())
}

/// The tables have a copy beside them from the save before; a table that is lost altogether is a start without it, said loudly,
/// or a refusal to start that names the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_that_are_no_json() -> Result<()> {
    for name in ["topics.json", "consumerOffset.json", "subscriptionGroup.json", "delayOffset.json"] {
        for content in
            ["", "{", "\0\0\0\0", "[1,2]", "{\"topicConfigTable\":5,\"offsetTable\":7,\"subscriptionGroupTable\":9}"]
        {
            let mut rig = Rig::start("").await?;
            rig.round_trip().await?;
            let consumer = PullConsumer::new(rig.cluster.clone(), "Committed");
            consumer.pull(&Rig::queue(), 0, &PullOptions::default()).await?;
            consumer.commit(&Rig::queue(), 1).await?;
            stop(&mut rig, Signal::TERM).await?;
            // Twice, so that there is a copy.
            rig.broker = rig.plan.start()?;
            consumer.commit(&Rig::queue(), 1).await?;
            stop(&mut rig, Signal::TERM).await?;
            let path = rig.plan.store().join("config").join(name);
            let has_copy = path.with_file_name(format!("{name}.bak")).exists();
            fs::write(&path, content)?;
            match rig.plan.start() {
                Ok(broker) => {
                    rig.broker = broker;
                    let log = rig.log("mqbroker")?;
                    ensure!(log.contains(name), "{name} = {content:?} is not mentioned: {log}");
                    if has_copy || name != "topics.json" {
                        rig.unharmed(150, 60).await.with_context(|| format!("{name} = {content:?}"))?;
                    }
                }
                Err(_) => {
                    let output = rig.plan.start_in_vain()?;
                    let text = String::from_utf8_lossy(&output.stderr);
                    ensure!(text.contains(name) && !text.contains("panic"), "{name} = {content:?}: {text}");
                }
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_log_damaged_in_the_middle() -> Result<()> {
    const MESSAGES: i64 = 100;
    for signal in [Signal::TERM, Signal::KILL] {
        let mut rig = Rig::start("").await?;
        let producer = Producer::new(rig.cluster.clone(), "P");
        let mut middle = 0;
        for at in 0..MESSAGES {
            let sent = producer.send(&Message::new(TOPIC, format!("{at} {}", "x".repeat(500)))).await?;
            if at == MESSAGES / 2 {
                // The offset id ends with the place in the log, in hexadecimal.
                let id = &sent.offset_id;
                middle = u64::from_str_radix(&id[id.len() - 16..], 16)?;
            }
        }
        stop(&mut rig, signal).await?;
        let log = rig.plan.store().join("commitlog").join("00000000000000000000");
        OpenOptions::new().write(true).open(&log)?.write_all_at(&[0xAB; 300], middle + 2)?;
        // Everything is read again.
        fs::remove_dir_all(rig.plan.store().join("consumequeue"))?;
        rig.broker = rig.plan.start()?;
        let text = rig.log("mqbroker")?;
        ensure!(text.contains("00000000000000000000"), "the damaged file is not named: {text}");
        let consumer = PullConsumer::new(client::Cluster::connect(&rig.names.address.to_string()), "R");
        let mut found = 0;
        let (mut offset, end) = (0, consumer.max_offset(&Rig::queue()).await?);
        while offset < end {
            let pulled = consumer.pull(&Rig::queue(), offset, &PullOptions::default()).await?;
            found += pulled.messages.len() as i64;
            ensure!(pulled.next_offset > offset, "{:?} at {offset} of {end}", pulled.status);
            offset = pulled.next_offset;
        }
        // Killed before its next checkpoint, the log may end at the damage; what comes before is there.
        let expected = if signal == Signal::TERM { MESSAGES - 2 } else { MESSAGES / 2 };
        ensure!(found >= expected, "{signal:?}: {found} of {MESSAGES} messages are left");
        rig.unharmed(150, 60).await?;
    }
    Ok(())
}

/// The log is not read at a clean start: the damage meets a reader.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_record_does_not_stop_a_consumer() -> Result<()> {
    let mut rig = Rig::start("").await?;
    let producer = Producer::new(rig.cluster.clone(), "P");
    let mut places = Vec::new();
    for at in 0..20 {
        let id = producer.send(&Message::new(TOPIC, format!("{at}"))).await?.offset_id;
        places.push(u64::from_str_radix(&id[id.len() - 16..], 16)?);
    }
    stop(&mut rig, Signal::TERM).await?;
    let log = rig.plan.store().join("commitlog").join("00000000000000000000");
    let file = OpenOptions::new().write(true).open(&log)?;
    file.write_all_at(&[0xFF; 8], places[5])?;
    file.write_all_at(&[0; 4], places[10])?;
    rig.broker = rig.plan.start()?;
    let mut wire = rocketmq_tests::wire::Wire::connect(rig.broker.address)?;
    for code in [protocol::request_code::VIEW_MESSAGE_BY_ID, protocol::request_code::QUERY_CONSUME_QUEUE] {
        for place in &places {
            let request = protocol::Command::request(code)
                .with_field("offset", place.to_string())
                .with_field("topic", TOPIC)
                .with_field("queueId", "0")
                .with_field("index", "0")
                .with_field("count", "100");
            wire.ask(&request)?;
        }
    }
    for offset in 0..20i64 {
        let pull = protocol::Command::request(protocol::request_code::PULL_MESSAGE)
            .with_field("consumerGroup", "R")
            .with_field("topic", TOPIC)
            .with_field("queueId", "0")
            .with_field("queueOffset", offset.to_string())
            .with_field("maxMsgNums", "32")
            .with_field("sysFlag", "4")
            .with_field("commitOffset", "0")
            .with_field("suspendTimeoutMillis", "0")
            .with_field("subscription", "*")
            .with_field("subVersion", "0");
        let answer = wire.ask(&pull)?;
        println!("pull at {offset}: {} {:?} {} bytes", answer.code, answer.remark, answer.body.len());
    }
    rig.unharmed(150, 60).await
}
