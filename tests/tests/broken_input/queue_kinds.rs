//! Queues that are not plain: their extension switched on and off and damaged between kills, and every request with every odd
//! number on each kind.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use protocol::{Command, request_code as code};
use rocketmq_tests::requests::{Send, batch_body, drain, drain_tag, make_topic};
use rocketmq_tests::wire::Wire;
use rustix::process::Signal;

use crate::rig::{Rig, random};

const TOPIC: &str = "Extended";

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// What may become of an extension's folder.
fn damage(random: &mut fastrand::Rng, dir: &Path) -> Result<&'static str> {
    let files = files(dir);
    let Some(one) = random.choice(&files) else { return Ok("nothing there") };
    let cut = |to: u64| fs::OpenOptions::new().write(true).open(one)?.set_len(to);
    Ok(match random.u8(..7) {
        0 => {
            fs::remove_dir_all(dir)?;
            "the folder is gone"
        }
        1 => {
            fs::remove_file(one)?;
            "a file is gone"
        }
        2 => {
            cut(random.u64(..1000))?;
            "a file is cut"
        }
        3 => {
            cut(0)?;
            "a file is empty"
        }
        4 => {
            let len = fs::metadata(one)?.len() as usize;
            fs::write(one, vec![if random.bool() { 0 } else { 0xFF }; len])?;
            "a file is overwritten"
        }
        _ => "nothing",
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_that_comes_and_goes() -> Result<()> {
    let mut random = random();
    let config = |on: bool| {
        format!("enableConsumeQueueExt={on}\nmappedFileSizeConsumeQueueExt=1000\nflushIntervalConsumeQueue=20")
    };
    let mut rig = Rig::start(&config(true)).await?;
    let mut wire = Wire::connect(rig.broker.address)?;
    make_topic(&mut wire, TOPIC, "")?;
    let mut sent = [Vec::new(), Vec::new()];
    for round in 0..24 {
        for at in 0..random.i32(1..300) {
            let which = random.usize(..2);
            let body = format!("{round} {at}").into_bytes();
            let tags = format!("TAGS\x01{}\x02", ["A", "B"][which]);
            let offset = Send::new(TOPIC, &tags, &body).sent(&mut wire)?;
            sent[which].push((offset, body));
        }
        tokio::time::sleep(Duration::from_millis(random.u64(..60))).await;
        let signal = if random.u8(..4) == 0 { Signal::TERM } else { Signal::KILL };
        rig.broker.signal(signal)?;
        rig.broker.wait(Duration::from_secs(20))?;
        let what = damage(&mut random, &rig.plan.store().join("consumequeue_ext").join(TOPIC).join("0"))?;
        let on = random.bool();
        rig.plan.extra = config(on);
        let context = format!("round {round}, {what}, {signal:?}, then {on}");
        rig.broker = rig.plan.start().with_context(|| context.clone())?;
        wire = Wire::connect(rig.broker.address)?;
        for (tag, sent) in ["A", "B"].iter().zip(&sent) {
            let found = drain_tag(&mut wire, TOPIC, 0, tag)?;
            ensure!(
                found == *sent,
                "{context}: {} of {} with tag {tag}: {}",
                found.len(),
                sent.len(),
                rig.log("mqbroker")?
            );
        }
    }
    rig.unharmed(150, 150).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_numbers_on_every_kind() -> Result<()> {
    let config = "enableLmq=true\nenableMultiDispatch=true\nenableConsumeQueueExt=true";
    let mut rig = Rig::start(config).await?;
    let mut wire = Wire::connect(rig.broker.address)?;
    make_topic(&mut wire, TOPIC, "")?;
    make_topic(&mut wire, "Batches", "+queue.type=BatchCQ")?;
    make_topic(&mut wire, "Table", "+cleanup.policy=COMPACTION")?;
    make_topic(&mut wire, "Both", "+cleanup.policy=COMPACTION,+queue.type=BatchCQ")?;
    make_topic(&mut wire, "EmptyBatches", "+queue.type=BatchCQ")?;
    make_topic(&mut wire, "EmptyTable", "+cleanup.policy=COMPACTION")?;
    let batch = batch_body([(&b"x"[..], "KEYS\x01k\x02"), (b"y", "KEYS\x01k\x02")])?;
    for at in 0..20 {
        let properties = format!("KEYS\x01k{}\x02INNER_MULTI_DISPATCH\x01%LMQ%a\x02", at % 3);
        for topic in [TOPIC, "Batches", "Table", "Both"] {
            Send::new(topic, &properties, b"one").sent(&mut wire)?;
        }
        for topic in ["Batches", "Both"] {
            Send::batch(topic, "UNIQ_KEY\x01u\x02KEYS\x01k\x02", &batch).sent(&mut wire)?;
        }
    }
    let topics = [TOPIC, "Batches", "Table", "Both", "EmptyBatches", "EmptyTable", "%LMQ%a", "%LMQ%none"];
    let before = topics.iter().map(|topic| drain(&mut wire, topic, 0)).collect::<Result<Vec<_>>>()?;
    ensure!(
        before.iter().map(Vec::len).eq([20, 40, 20, 40, 0, 0, 80, 0]),
        "{:?}",
        before.iter().map(Vec::len).collect::<Vec<_>>()
    );
    let numbers = [
        "0",
        "-1",
        "1",
        "19",
        "20",
        "21",
        "60",
        "2147483647",
        "-2147483648",
        "9223372036854775807",
        "-9223372036854775808",
    ];
    let codes = [
        code::PULL_MESSAGE,
        code::LITE_PULL_MESSAGE,
        code::QUERY_CONSUMER_OFFSET,
        code::UPDATE_CONSUMER_OFFSET,
        code::SEARCH_OFFSET_BY_TIMESTAMP,
        code::GET_MAX_OFFSET,
        code::GET_MIN_OFFSET,
        code::GET_EARLIEST_MSG_STORETIME,
        code::QUERY_CONSUME_QUEUE,
        code::VIEW_MESSAGE_BY_ID,
        code::QUERY_MESSAGE,
        code::GET_TOPIC_STATS_INFO,
        code::CONSUMER_SEND_MSG_BACK,
    ];
    for topic in topics {
        for queue in ["0", "1", "-1", "2147483647"] {
            for number in numbers {
                for boundary in ["LOWER", "UPPER"] {
                    let requests: Vec<Command> =
                        codes.iter().map(|code| request(*code, topic, queue, number, boundary)).collect();
                    for _ in wire.send_all(&requests)? {
                        wire.read().with_context(|| format!("{topic}/{queue} {number}"))?;
                    }
                }
            }
        }
    }
    let after = topics.iter().map(|topic| drain(&mut wire, topic, 0)).collect::<Result<Vec<_>>>()?;
    ensure!(before == after, "other messages than before");
    rig.unharmed(200, 600).await
}

fn request(code: i32, topic: &str, queue: &str, number: &str, boundary: &str) -> Command {
    let mut request = Command::request(code)
        .with_field("topic", topic)
        .with_field("queueId", queue)
        .with_field("consumerGroup", "R")
        .with_field("group", "R")
        .with_field("sysFlag", "4")
        .with_field("commitOffset", number)
        .with_field("suspendTimeoutMillis", "0")
        .with_field("subscription", "*")
        .with_field("subVersion", "0")
        .with_field("boundaryType", boundary)
        .with_field("key", "k")
        .with_field("delayLevel", "0");
    for field in ["queueOffset", "offset", "timestamp", "index", "beginTimestamp", "endTimestamp"] {
        request = request.with_field(field, number);
    }
    for field in ["maxMsgNums", "maxNum", "count"] {
        request = request.with_field(field, if boundary == "LOWER" { number } else { "32" });
    }
    request
}
