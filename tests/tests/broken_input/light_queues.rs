//! Light message queues: names and offsets that a producer forges.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rocketmq_tests::wire::Wire;
use rustix::process::Signal;

use crate::rig::{Rig, TOPIC};
use rocketmq_tests::requests::{Send, batch_body, drain, ends, make_topic, pull};

const LIGHT: &str = "enableLmq=true\nenableMultiDispatch=true\n";

fn naming(names: &str) -> String {
    format!("INNER_MULTI_DISPATCH\x01{names}\x02")
}

fn bodies(found: &[(i64, Vec<u8>)]) -> Vec<(i64, &str)> {
    found.iter().map(|(offset, body)| (*offset, std::str::from_utf8(body).unwrap_or("?"))).collect()
}

/// Killed, without its queues, so that all of them are built from the commit log again.
fn rebuilt_by_a_start(rig: &mut Rig) -> Result<Wire> {
    rig.broker.signal(Signal::KILL)?;
    rig.broker.wait(Duration::from_secs(20))?;
    for folder in ["consumequeue", "batchconsumequeue"] {
        let _ = fs::remove_dir_all(rig.plan.store().join(folder));
    }
    rig.broker = rig.plan.start()?;
    Wire::connect(rig.broker.address)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_are_none() -> Result<()> {
    let mut rig = Rig::start(LIGHT).await?;
    let mut wire = Wire::connect(rig.broker.address)?;
    let long = format!("%LMQ%{}", "x".repeat(200));
    for names in [
        "",
        ",",
        "%LMQ%a,",
        ",%LMQ%a",
        "plain",
        "%LMQ%/../../x",
        "%LMQ%..,../y",
        "%LMQ%a\0b",
        "a,%LMQ%b",
        "..",
        long.as_str(),
        &format!("%LMQ%ok,{long}"),
    ] {
        let (code, _) = Send::new(TOPIC, &naming(names), b"x").ask(&mut wire)?;
        ensure!(code != 0 || names.is_empty(), "names {names:?} are taken");
    }
    ensure!(ends(&mut wire, "%LMQ%ok", 0)?.1 <= 0, "a refused message is in a light queue");
    // Names are sent to as well as named.
    for topic in ["%LMQ%/../x", "%LMQ%", "%LMQ%..", long.as_str(), "%LMQ%a\0", "%LMQ%\u{7f}"] {
        let _ = Send::new(topic, "", b"x").ask(&mut wire)?;
        let _ = pull(&mut wire, topic, 0, 0);
        let _ = pull(&mut wire, topic, i32::MAX, i64::MAX);
    }
    for topic in ["%LMQ%/../x", long.as_str(), "%LMQ%a\0"] {
        ensure!(Send::new(topic, "", b"x").ask(&mut wire)?.0 != 0, "a message to {topic:?} is taken");
    }
    ensure!(
        !rig.plan.store().join("x").exists() && !rig.plan.store().join("consumequeue/x").exists(),
        "left the folder"
    );
    rig.unharmed(150, 150).await
}

/// The light queue has the message once, and the next one follows without a gap, also when the queues are built again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_light_queue_that_names_itself() -> Result<()> {
    let mut rig = Rig::start(LIGHT).await?;
    let mut wire = Wire::connect(rig.broker.address)?;
    for at in 0..3 {
        let body = format!("{at}");
        Send::new("%LMQ%self", &naming("%LMQ%self,%LMQ%other,%LMQ%self"), body.as_bytes()).sent(&mut wire)?;
    }
    for _ in 0..2 {
        let found = drain(&mut wire, "%LMQ%self", 0)?;
        ensure!(bodies(&found).iter().map(|(_, body)| *body).eq(["0", "1", "2"]), "{:?}", bodies(&found));
        ensure!(ends(&mut wire, "%LMQ%self", 0)? == (0, 3), "{:?}", ends(&mut wire, "%LMQ%self", 0)?);
        ensure!(drain(&mut wire, "%LMQ%other", 0)?.len() == 3, "the other light queue");
        let log = rig.log("mqbroker")?;
        ensure!(!log.contains("lost") && !log.contains("does not follow"), "{log}");
        wire = rebuilt_by_a_start(&mut rig)?;
    }
    rig.unharmed(150, 150).await
}

/// What a producer says about places must not count, neither at once nor when the queues are built again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_places() -> Result<()> {
    let mut rig = Rig::start(LIGHT).await?;
    let mut wire = Wire::connect(rig.broker.address)?;
    make_topic(&mut wire, "Batches", "+queue.type=BatchCQ")?;
    let forged = |offset: &str| format!("{}INNER_MULTI_QUEUE_OFFSET\x01{offset}\x02", naming("%LMQ%q"));
    let offsets = ["7000000", "9223372036854775807", "-1", "0,0,0", "x"];
    let mut placed = 0;
    for offset in offsets {
        let properties = forged(offset);
        let one = Send::new(TOPIC, &properties, b"one").ask(&mut wire)?.0;
        placed += i64::from(one == 0);
        let items = batch_body([(&b"item"[..], properties.as_str()), (b"item", "a\x01b\x02")])?;
        for (topic, header) in [(TOPIC, ""), ("Batches", ""), ("Batches", "UNIQ_KEY\x01u\x02")] {
            Send::batch(topic, header, &items).ask(&mut wire)?;
        }
        let with_names = format!("UNIQ_KEY\x01u\x02{properties}");
        Send::batch("Batches", &with_names, &items).ask(&mut wire)?;
        Send::batch(TOPIC, &with_names, &items).ask(&mut wire)?;
    }
    let before = (ends(&mut wire, "%LMQ%q", 0)?, drain(&mut wire, "%LMQ%q", 0)?.len());
    ensure!(before == ((0, placed), placed as usize), "{before:?} with {placed} messages");
    let plain = (ends(&mut wire, TOPIC, 0)?, ends(&mut wire, "Batches", 0)?);
    let mut wire = rebuilt_by_a_start(&mut rig)?;
    let after = (ends(&mut wire, "%LMQ%q", 0)?, drain(&mut wire, "%LMQ%q", 0)?.len());
    ensure!(before == after, "{before:?} before the start, {after:?} after it");
    let plain_after = (ends(&mut wire, TOPIC, 0)?, ends(&mut wire, "Batches", 0)?);
    ensure!(plain == plain_after, "{plain:?} before the start, {plain_after:?} after it");
    rig.unharmed(150, 150).await
}

/// Thousands of names in one message must not keep the others waiting; over the limit they are refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_names() -> Result<()> {
    let mut rig = Rig::start(&format!("{LIGHT}maxLmqConsumeQueueNum=3000")).await?;
    let mut wire = Wire::connect(rig.broker.address)?;
    let names: Vec<String> = (0..2_500).map(|at| format!("%LMQ%{at:04}")).collect();
    let repeated = vec!["%LMQ%"; 4_500].join(",");
    let properties = naming(&names.join(","));
    let mut slowest = Duration::ZERO;
    for round in 0..20 {
        let begin = Instant::now();
        Send::new(TOPIC, &properties, b"x").sent(&mut wire).with_context(|| format!("round {round}"))?;
        slowest = slowest.max(begin.elapsed());
    }
    let begin = Instant::now();
    let (code, remark) = Send::new(TOPIC, &naming(&repeated), b"x").ask(&mut wire)?;
    println!("2,500 names: {slowest:?}; 4,500 times the same: {:?} ({code} {remark})", begin.elapsed());
    ensure!(slowest < Duration::from_secs(1), "a message with 2,500 names took {slowest:?}");
    for name in ["%LMQ%0000", "%LMQ%2499"] {
        ensure!(ends(&mut wire, name, 0)? == (0, 20), "{name}: {:?}", ends(&mut wire, name, 0)?);
    }
    let over: Vec<String> = (0..1_000).map(|at| format!("%LMQ%over{at}")).collect();
    let (code, remark) = Send::new(TOPIC, &naming(&over.join(",")), b"x").ask(&mut wire)?;
    ensure!(code != 0 && remark.contains("LMQ_CONSUME_QUEUE_NUM_EXCEEDED"), "over the limit: {code} {remark}");
    // Sent to directly they count, too.
    let mut taken = 0;
    for at in 0..3_100 {
        taken += u32::from(Send::new(&format!("%LMQ%direct{at}"), "", b"x").ask(&mut wire)?.0 == 0);
    }
    ensure!(taken <= 500, "{taken} light queues more than the limit");
    rig.unharmed(200, 150).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_table_of_light_offsets() -> Result<()> {
    for content in ["", "{", "\0\0", "[1]", "{\"lmqOffsetTable\":[]}", "{\"lmqOffsetTable\":{\"x\":1,\"a@b\":-5}}"] {
        let mut rig = Rig::start(LIGHT).await?;
        rig.round_trip().await?;
        rig.broker.signal(Signal::TERM)?;
        rig.broker.wait(Duration::from_secs(20))?;
        fs::write(rig.plan.store().join("config/lmqConsumerOffset.json"), content)?;
        match rig.plan.start() {
            Ok(broker) => rig.broker = broker,
            Err(_) => {
                let text = String::from_utf8_lossy(&rig.plan.start_in_vain()?.stderr).into_owned();
                ensure!(text.contains("lmqConsumerOffset.json") && !text.contains("panic"), "{content:?}: {text}");
                continue;
            }
        }
        rig.unharmed(150, 60).await.with_context(|| format!("{content:?}"))?;
    }
    Ok(())
}
