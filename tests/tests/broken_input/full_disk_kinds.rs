//! A disk that fills up under light queues, batch queues and a compacted topic: nothing that was acknowledged is lost.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use protocol::record::batch_items;
use rocketmq_tests::requests::{Send, batch_body, drain, ends, make_topic};
use rocketmq_tests::wire::Wire;
use rustix::process::Signal;

use crate::full_disk::{SmallDisk, settings, to_the_last_byte};
use crate::rig::Rig;

const LIGHT: &str = "WithLight";
const BATCHES: &str = "Batches";
const TABLE: &str = "Table";
const KINDS: [&str; 3] = [LIGHT, BATCHES, TABLE];
const LIGHT_QUEUES: [&str; 2] = ["%LMQ%a", "%LMQ%b"];
const KEYS: usize = 7;
/// Messages of each batch.
const ITEMS: usize = 3;
/// So many messages fit at least.
const LEAST: usize = 100;
const EXTRA: &str = "enableLmq=true\nenableMultiDispatch=true\nmapperFileSizeBatchConsumeQueue=4600\ncompactionMappedFileSize=1000000\n\
                     compactionCqMappedFileSize=9200\ncompactionScheduleInternal=1000\n";

/// Number and queue offset of every message that was acknowledged, by topic; of a batch, the first.
type Acknowledged = HashMap<&'static str, Vec<(usize, i64)>>;

/// Code and queue offset of the answer.
fn send(wire: &mut Wire, topic: &str, number: usize) -> Result<(i32, i64)> {
    let body = format!("{number} {}", "x".repeat(10_000));
    let answer = match topic {
        LIGHT => {
            let names = format!("INNER_MULTI_DISPATCH\x01{}\x02", LIGHT_QUEUES.join(","));
            wire.ask(&Send::new(LIGHT, &names, body.as_bytes()).command())?
        }
        BATCHES => {
            let items = batch_body([(body.as_bytes(), "a\x01b\x02"); ITEMS])?;
            wire.ask(&Send::batch(BATCHES, "UNIQ_KEY\x01u\x02", &items).command())?
        }
        _ => wire.ask(&Send::new(TABLE, &format!("KEYS\x01{}\x02", number % KEYS), body.as_bytes()).command())?,
    };
    Ok((answer.code, rocketmq_tests::requests::number(&answer, "queueOffset")))
}

/// Sends to all in turn until one is refused; returns the code of the refusal.
fn fill(wire: &mut Wire, sent: &mut Acknowledged) -> Result<i32> {
    for number in 0..10_000 {
        for topic in KINDS {
            match send(wire, topic, number)? {
                (0, offset) => sent.entry(topic).or_default().push((number, offset)),
                (code, _) => return Ok(code),
            }
        }
    }
    bail!("the disk does not get full")
}

/// Number and queue offset of each record.
fn stored(wire: &mut Wire, topic: &str) -> Result<Vec<(usize, i64)>> {
    let number = |body: &[u8]| anyhow::Ok(std::str::from_utf8(body)?.split(' ').next().context("empty")?.parse()?);
    let records = drain(wire, topic, 0)?.into_iter().map(|(offset, body)| {
        if topic != BATCHES {
            return Ok((number(&body)?, offset));
        }
        let items = batch_items(&body).collect::<Result<Vec<_>, _>>()?;
        ensure!(items.len() == ITEMS, "a batch of {} messages", items.len());
        Ok((number(items[0].body)?, offset))
    });
    records.collect()
}

fn check(wire: &mut Wire, sent: &Acknowledged) -> Result<()> {
    for topic in [LIGHT, BATCHES] {
        ensure!(
            stored(wire, topic)? == sent[topic],
            "{topic}: {:?} instead of {:?}",
            stored(wire, topic)?,
            sent[topic]
        );
    }
    for queue in LIGHT_QUEUES {
        ensure!(stored(wire, queue)? == sent[LIGHT], "{queue}: {:?}", stored(wire, queue)?);
    }
    Ok(())
}

/// A compacted log that cannot be written keeps its readers waiting, so this is for a disk with room.
fn check_table(wire: &mut Wire, sent: &Acknowledged) -> Result<()> {
    let end = sent[TABLE].len() as i64;
    ensure!(ends(wire, TABLE, 0)?.1 == end, "{TABLE}: the end is {:?} instead of {end}", ends(wire, TABLE, 0)?);
    let last = |of: &[(usize, i64)]| of.iter().map(|(n, at)| (n % KEYS, (*n, *at))).collect::<HashMap<_, _>>();
    let found = last(&stored(wire, TABLE)?);
    ensure!(found == last(&sent[TABLE]), "{TABLE}: {found:?} instead of {:?}", last(&sent[TABLE]));
    Ok(())
}

async fn filled_killed_and_freed(store: &Path) -> Result<()> {
    let mut rig = Rig::start(&format!("{}\n{EXTRA}", settings(store))).await?;
    let mut wire = Wire::connect(rig.broker.address)?;
    for (topic, attributes) in KINDS.into_iter().zip(["", "+queue.type=BatchCQ", "+cleanup.policy=COMPACTION"]) {
        let (code, remark) = make_topic(&mut wire, topic, attributes)?;
        ensure!(code == 0, "{topic}: {remark}");
    }
    let ballast = store.join("ballast");
    std::fs::write(&ballast, vec![0; 20 * 1024 * 1024])?;
    let mut sent = Acknowledged::new();
    let code = fill(&mut wire, &mut sent)?;
    println!("{} messages of each kind fit", sent[TABLE].len());
    ensure!(code == 14, "refused with code {code}, expected 14");
    ensure!(sent[TABLE].len() > LEAST, "only {} messages fit", sent[TABLE].len());
    check(&mut wire, &sent).context("while the disk is full")?;
    rig.broker.signal(Signal::KILL)?;
    rig.broker.wait(Duration::from_secs(10))?;
    to_the_last_byte(&ballast)?;
    rig.broker = rig.plan.start().context("a start with a full disk")?;
    wire = Wire::connect(rig.broker.address)?;
    check(&mut wire, &sent).context("after a start with a full disk")?;
    std::fs::remove_file(&ballast)?;
    let deadline = Instant::now() + Duration::from_secs(20);
    for topic in KINDS {
        let number = sent[topic].len();
        let offset = loop {
            match send(&mut wire, topic, number)? {
                (0, offset) => break offset,
                (code, _) => ensure!(Instant::now() < deadline, "{topic}: no send with room on the disk: {code}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        sent.entry(topic).or_default().push((number, offset));
    }
    check(&mut wire, &sent).context("with room again")?;
    check_table(&mut wire, &sent).context("with room again")?;
    rig.broker.signal(Signal::TERM)?;
    let status = rig.broker.wait(Duration::from_secs(20))?;
    ensure!(status.code() == Some(0), "ended with {status}");
    rig.broker = rig.plan.start()?;
    wire = Wire::connect(rig.broker.address)?;
    check(&mut wire, &sent).context("after a stop and a start")?;
    check_table(&mut wire, &sent).context("after a stop and a start")?;
    rig.unharmed(150, 150).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_loses_nothing_of_any_kind() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let store = folder.path().join("store");
    std::fs::create_dir(&store)?;
    let Some(disk) = SmallDisk::ext4(&store, &folder.path().join("image"), 64) else { return Ok(()) };
    filled_killed_and_freed(&store).await?;
    drop(disk);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_memory_disk_loses_nothing_of_any_kind() -> Result<()> {
    let store = tempfile::tempdir()?;
    let Some(disk) = SmallDisk::tmpfs(store.path(), 56) else { return Ok(()) };
    filled_killed_and_freed(store.path()).await?;
    drop(disk);
    Ok(())
}
