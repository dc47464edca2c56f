//! Inner batches: forged counts and marks, torn bodies, topics that are no place for them, topics that change their kind.

use std::time::Duration;

use anyhow::{Result, ensure};
use protocol::record::sys_flag::{INNER_BATCH, NEED_UNWRAP};
use rocketmq_tests::wire::Wire;
use rustix::process::Signal;

use crate::rig::{Rig, TOPIC};
use rocketmq_tests::requests::{Send, batch_body, delete_topic, drain, ends, make_topic, pull};

const BATCHES: &str = "Batches";
const KEY: &str = "UNIQ_KEY\x01u\x02";

fn killed(rig: &mut Rig, without_queues: bool) -> Result<Wire> {
    rig.broker.signal(Signal::KILL)?;
    rig.broker.wait(Duration::from_secs(20))?;
    if without_queues {
        for folder in ["consumequeue", "batchconsumequeue"] {
            let _ = std::fs::remove_dir_all(rig.plan.store().join(folder));
        }
    }
    rig.broker = rig.plan.start()?;
    Wire::connect(rig.broker.address)
}

async fn rig() -> Result<(Rig, Wire)> {
    let rig = Rig::start("").await?;
    let mut wire = Wire::connect(rig.broker.address)?;
    let (code, remark) = make_topic(&mut wire, BATCHES, "+queue.type=BatchCQ")?;
    ensure!(code == 0, "{remark}");
    Ok((rig, wire))
}

/// Only the broker says how many messages a record has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_counts() -> Result<()> {
    let (mut rig, mut wire) = rig().await?;
    let forged = "INNER_NUM\x011000\x02INNER_BASE\x01999999\x02";
    let items = batch_body([(&b"a"[..], forged), (b"b", "INNER_BASE\x017\x02")])?;
    let mut taken = 0;
    for topic in [TOPIC, BATCHES] {
        for sys_flag in [0, INNER_BATCH, NEED_UNWRAP, INNER_BATCH | NEED_UNWRAP] {
            for properties in ["", forged, "INNER_BASE\x01999999\x02", "INNER_NUM\x01-1\x02", "INNER_NUM\x01x\x02"] {
                let one = Send { sys_flag, ..Send::new(topic, properties, b"one") };
                let count = i64::from(one.ask(&mut wire)?.0 == 0);
                ensure!(
                    count == 0 || sys_flag & INNER_BATCH == 0 && !properties.contains("NUM"),
                    "{properties:?} {sys_flag}"
                );
                let mut many = 0;
                for key in ["", KEY] {
                    let properties = format!("{key}{properties}");
                    let batch = Send { sys_flag, ..Send::batch(topic, &properties, &items) };
                    many += 2 * i64::from(batch.ask(&mut wire)?.0 == 0);
                }
                if topic == BATCHES {
                    taken += count + many;
                }
            }
        }
    }
    ensure!(ends(&mut wire, BATCHES, 0)? == (0, taken), "{:?}, {taken} taken", ends(&mut wire, BATCHES, 0)?);
    let before = [drain(&mut wire, BATCHES, 0)?, drain(&mut wire, TOPIC, 0)?];
    for without_queues in [false, true] {
        wire = killed(&mut rig, without_queues)?;
        ensure!(ends(&mut wire, BATCHES, 0)? == (0, taken), "{:?} after a kill", ends(&mut wire, BATCHES, 0)?);
        ensure!(before == [drain(&mut wire, BATCHES, 0)?, drain(&mut wire, TOPIC, 0)?], "other messages after a kill");
    }
    rig.unharmed(150, 150).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_torn_and_too_large() -> Result<()> {
    let (mut rig, mut wire) = rig().await?;
    let mut ends_of_items = Vec::new();
    let mut body = Vec::new();
    for _ in 0..3 {
        body.extend(batch_body([(&b"body"[..], "KEYS\x01k\x02")])?);
        ends_of_items.push(body.len());
    }
    for cut in 0..=body.len() {
        let (code, remark) = Send::batch(BATCHES, KEY, &body[..cut]).ask(&mut wire)?;
        ensure!((code == 0) == ends_of_items.contains(&cut), "cut at {cut}: {code} {remark}");
    }
    for at in 0..body.len() {
        for value in [0x7F, 0x80, 0xFF] {
            let mut torn = body.clone();
            torn[at] = value;
            Send::batch(BATCHES, KEY, &torn).ask(&mut wire)?;
        }
    }
    let items = |count: usize| batch_body((0..count).map(|_| (&b""[..], "")));
    for (count, fits) in [(1, true), (32_767, true), (32_768, false), (40_000, false), (65_537, false), (0, false)] {
        let before = ends(&mut wire, BATCHES, 0)?.1;
        let (code, remark) = Send::batch(BATCHES, KEY, &items(count)?).ask(&mut wire)?;
        ensure!((code == 0) == fits, "{count} messages: {code} {remark}");
        let after = ends(&mut wire, BATCHES, 0)?.1;
        ensure!(after - before == if fits { count as i64 } else { 0 }, "{count} messages take {before} to {after}");
    }
    let large = vec![b'x'; 5 << 20];
    ensure!(Send::batch(BATCHES, KEY, &batch_body([(&large[..], "")])?).ask(&mut wire)?.0 != 0, "5 MiB are taken");
    let long = "k".repeat(32_767);
    for key in ["\u{fffd}\u{202e}", "\0", "%00", "\"}{", " ", &"k".repeat(32_700), &long] {
        let (code, _) = Send::batch(BATCHES, &format!("UNIQ_KEY\x01{key}\x02"), &body).ask(&mut wire)?;
        ensure!(code == 0 || key.len() > 32_000, "UNIQ_KEY {key:?}: {code}");
    }
    let before = (ends(&mut wire, BATCHES, 0)?, drain(&mut wire, BATCHES, 0)?);
    for offset in [-1, i64::MIN, 1, 100, 10_000, i64::MAX, before.0.1 + 1] {
        let pulled = pull(&mut wire, BATCHES, 0, offset)?;
        ensure!((0..=before.0.1).contains(&pulled.next), "a pull at {offset} goes on at {}", pulled.next);
    }
    let mut wire = killed(&mut rig, true)?;
    ensure!(before == (ends(&mut wire, BATCHES, 0)?, drain(&mut wire, BATCHES, 0)?), "other messages after a kill");
    rig.unharmed(150, 150).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn places_that_are_none() -> Result<()> {
    let (mut rig, mut wire) = rig().await?;
    let body = batch_body([(&b"x"[..], ""), (b"y", "")])?;
    let delayed = format!("{KEY}DELAY\x013\x02");
    for (topic, properties) in [
        ("%RETRY%g", KEY),
        ("%DLQ%g", KEY),
        ("SCHEDULE_TOPIC_XXXX", KEY),
        ("RMQ_SYS_TRANS_HALF_TOPIC", KEY),
        (BATCHES, delayed.as_str()),
        (BATCHES, &format!("{KEY}DELAY\x01x\x02")),
        (BATCHES, &format!("{KEY}TRAN_MSG\x01true\x02")),
        (BATCHES, &format!("{KEY}TIMER_DELAY_SEC\x015\x02")),
    ] {
        let (code, remark) = Send::batch(topic, properties, &body).ask(&mut wire)?;
        let refused = code != 0 || topic.starts_with("%DLQ%");
        ensure!(refused, "{topic} with {properties:?}: {code} {remark}");
    }
    for queue in [1, 1 << 20, i32::MAX, i32::MIN] {
        let send = Send { queue, ..Send::batch(BATCHES, KEY, &body) };
        let (code, _) = send.ask(&mut wire)?;
        ensure!((code == 0) == (queue < 0), "queue {queue}: {code}");
        let _ = pull(&mut wire, BATCHES, queue, 0)?;
        let _ = ends(&mut wire, BATCHES, queue)?;
    }
    rig.unharmed(150, 150).await
}

/// Another kind by an update is refused; deleted and made anew it is another queue, also after a kill and when queues are built
/// again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_changes_its_kind() -> Result<()> {
    let (mut rig, mut wire) = rig().await?;
    let body = batch_body([(&b"x"[..], "KEYS\x01k\x02"), (b"y", "KEYS\x01l\x02")])?;
    for attributes in ["+queue.type=SimpleCQ", "-queue.type", "+cleanup.policy=COMPACTION", "+queue.type=Nonsense"] {
        ensure!(make_topic(&mut wire, BATCHES, attributes)?.0 != 0, "{attributes} is taken");
    }
    let kinds = [
        "+queue.type=SimpleCQ",
        "+queue.type=BatchCQ",
        "+cleanup.policy=COMPACTION",
        "+queue.type=BatchCQ,+cleanup.policy=COMPACTION",
        "",
        "+cleanup.policy=COMPACTION,+queue.type=SimpleCQ",
    ];
    for round in 0..12 {
        let attributes = kinds[round % kinds.len()];
        ensure!(delete_topic(&mut wire, BATCHES)? == 0, "round {round}: not deleted");
        if round % 3 == 2 {
            wire = killed(&mut rig, false)?;
        }
        let (code, remark) = make_topic(&mut wire, BATCHES, attributes)?;
        ensure!(code == 0, "round {round}, {attributes:?}: {remark}");
        if round % 4 == 3 {
            wire = killed(&mut rig, round > 6)?;
        }
        let (first, begin) = ends(&mut wire, BATCHES, 0)?;
        // Recovery finds the messages of the last moments in the commit log, as Java's does.
        let may_be_back = round % 3 == 2 || round % 4 == 3;
        ensure!(first == begin || may_be_back, "round {round}, {attributes:?}: earlier messages, {first} to {begin}");
        let mut sent = Vec::new();
        for at in 0..3 {
            let text = format!("{round} {at}");
            let one = Send::new(BATCHES, &format!("KEYS\x01k{at}\x02"), text.as_bytes()).sent(&mut wire)?;
            Send::batch(BATCHES, &format!("{KEY}KEYS\x01b{at}\x02"), &body).sent(&mut wire)?;
            sent.push((one, text.into_bytes()));
        }
        let all = ends(&mut wire, BATCHES, 0)?.1;
        ensure!(all - sent[0].0 == 9, "round {round}, {attributes:?}: {} to {all}", sent[0].0);
        for without_queues in [None, Some(false)] {
            if let Some(without_queues) = without_queues.filter(|_| round % 2 == 0) {
                wire = killed(&mut rig, without_queues)?;
            }
            let found = drain(&mut wire, BATCHES, 0)?;
            ensure!(sent.iter().all(|one| found.contains(one)), "round {round}, {attributes:?}: {found:?}");
        }
    }
    rig.unharmed(150, 400).await
}
