//! kill -9 again and again under producers of everything that is not a plain message: light queues, inner batches, compacted
//! topics, with the extension of consume queues switched on and off between the starts. Nothing acknowledged is lost, nothing
//! is there twice.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use protocol::record::batch_items;
use rocketmq_tests::process::{BrokerPlan, name_server};
use rocketmq_tests::requests::{Send, batch_body, drain, ends, make_topic};
use rocketmq_tests::wire::Wire;

const LIGHT: &str = "WithLight";
const BATCHES: &str = "Batches";
const TABLE: &str = "Table";
const KEYS: u64 = 400;
const CONFIG: &str = "enableLmq=true\nenableMultiDispatch=true\nmappedFileSizeCommitLog=4194304\nmappedFileSizeConsumeQueue=20000\n\
                      mappedFileSizeConsumeQueueExt=20000\nmapperFileSizeBatchConsumeQueue=4600\ncompactionMappedFileSize=100000\n\
                      compactionCqMappedFileSize=9200\ncompactionScheduleInternal=100\nflushIntervalCommitLog=100\n";

/// `KILL_ROUNDS` in the environment asks for more.
fn rounds() -> u32 {
    std::env::var("KILL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

/// An acknowledged message, or the first of a batch of so many.
#[derive(Clone, Copy)]
struct Acknowledged {
    offset: i64,
    number: u64,
    messages: u64,
}

fn items_of(number: u64) -> u64 {
    1 + number % 4
}

fn send(wire: &mut Wire, topic: &str, number: u64) -> Result<Acknowledged> {
    let body = format!("{number} {}", "x".repeat(300));
    let (offset, messages) = match topic {
        LIGHT => {
            let names = "TAGS\x01T\x02INNER_MULTI_DISPATCH\x01%LMQ%a,%LMQ%b\x02";
            (Send::new(LIGHT, names, body.as_bytes()).sent(wire)?, 1)
        }
        TABLE => (Send::new(TABLE, &format!("KEYS\x01{}\x02", number % KEYS), body.as_bytes()).sent(wire)?, 1),
        _ => {
            let items = batch_body((0..items_of(number)).map(|_| (body.as_bytes(), "a\x01b\x02")))?;
            (Send::batch(BATCHES, "UNIQ_KEY\x01u\x02", &items).sent(wire)?, items_of(number))
        }
    };
    Ok(Acknowledged { offset, number, messages })
}

/// One number after the other, none twice, until told to stop.
fn produce(address: SocketAddr, topic: &str, stop: &AtomicBool, count: &AtomicU64) -> Vec<Acknowledged> {
    let mut acknowledged = Vec::new();
    let mut wire = None;
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let sent = wire.take().map_or_else(|| Wire::connect(address), Ok).and_then(|mut connected| {
            let sent = send(&mut connected, topic, number)?;
            wire = Some(connected);
            Ok(sent)
        });
        match sent {
            Ok(sent) => {
                acknowledged.push(sent);
                count.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
    acknowledged
}

fn number_of(body: &[u8]) -> Result<u64> {
    Ok(std::str::from_utf8(body)?.split(' ').next().context("an empty body")?.parse()?)
}

/// Queue offset and number of each record; `messages` says how many a record holds.
fn stored(wire: &mut Wire, topic: &str) -> Result<Vec<(i64, u64, u64)>> {
    let records = drain(wire, topic, 0)?.into_iter().map(|(offset, body)| {
        let in_batch = topic == BATCHES;
        let items = if in_batch { batch_items(&body).collect::<Result<Vec<_>, _>>()? } else { Vec::new() };
        let number = number_of(items.first().map_or(&body, |item| item.body))?;
        ensure!(!in_batch || items.len() as u64 == items_of(number), "{number} has {} messages", items.len());
        Ok((offset, number, if in_batch { items_of(number) } else { 1 }))
    });
    records.collect()
}

/// Offsets follow each other, numbers rise, and what was acknowledged is at its place.
fn check_whole(wire: &mut Wire, topic: &str, sent: &[Acknowledged]) -> Result<()> {
    let found = stored(wire, topic)?;
    for pair in found.windows(2) {
        let ((offset, number, messages), next) = (pair[0], pair[1]);
        ensure!(offset + messages as i64 == next.0, "{topic}: offset {} follows {offset}", next.0);
        ensure!(number < next.1, "{topic}: number {} follows {number}", next.1);
    }
    let by_number: HashMap<u64, (i64, u64)> = found.iter().map(|(at, number, many)| (*number, (*at, *many))).collect();
    for one in sent {
        let there = by_number.get(&one.number);
        // A light queue has the messages at places of its own.
        let same = there.is_some_and(|there| topic.starts_with("%LMQ%") || *there == (one.offset, one.messages));
        ensure!(same, "{topic}: {} was acknowledged at {}, now it is {there:?}", one.number, one.offset);
    }
    Ok(())
}

/// The last acknowledged message of each key is there, unless a newer one is.
fn check_table(wire: &mut Wire, sent: &[Acknowledged]) -> Result<()> {
    let found = stored(wire, TABLE)?;
    for pair in found.windows(2) {
        ensure!(pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1, "{:?} follows {:?}", pair[1], pair[0]);
    }
    let last: HashMap<u64, u64> = found.iter().map(|(_, number, _)| (number % KEYS, *number)).collect();
    for one in sent {
        let there = last.get(&(one.number % KEYS));
        ensure!(
            there >= Some(&one.number),
            "key {}: {} was acknowledged, {there:?} is there",
            one.number % KEYS,
            one.number
        );
    }
    Ok(())
}

fn campaign(extra: &str) -> Result<()> {
    let home = tempfile::tempdir()?;
    let names = name_server(home.path())?;
    let mut plan = BrokerPlan::new(home.path(), names.address, "")?;
    let config = |ext: bool| format!("{CONFIG}{extra}\nenableConsumeQueueExt={ext}\n");
    plan.extra = config(false);
    let mut broker = plan.start()?;
    let mut wire = Wire::connect(broker.address)?;
    for (topic, attributes) in [(LIGHT, ""), (BATCHES, "+queue.type=BatchCQ"), (TABLE, "+cleanup.policy=COMPACTION")] {
        let (code, remark) = make_topic(&mut wire, topic, attributes)?;
        ensure!(code == 0, "{topic}: {remark}");
    }
    let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let producers: Vec<_> = [LIGHT, BATCHES, TABLE]
        .into_iter()
        .map(|topic| {
            let (stop, count, address) = (stop.clone(), count.clone(), broker.address);
            thread::spawn(move || produce(address, topic, &stop, &count))
        })
        .collect();
    for round in 0..rounds() {
        let enough = count.load(Ordering::Relaxed) + 200 + fastrand::u64(..4000);
        let deadline = Instant::now() + Duration::from_secs(60);
        while count.load(Ordering::Relaxed) < enough {
            ensure!(Instant::now() < deadline, "round {round}: producers do not get on");
            ensure!(broker.is_alive(), "round {round}: the broker died by itself");
            thread::sleep(Duration::from_millis(2));
        }
        broker.kill_nine()?;
        plan.extra = config(fastrand::bool());
        broker = plan.start().with_context(|| format!("restart {round}"))?;
    }
    stop.store(true, Ordering::Relaxed);
    let sent: Vec<Vec<Acknowledged>> = producers.into_iter().filter_map(|producer| producer.join().ok()).collect();
    ensure!(sent.len() == 3, "a producer failed");
    let total: usize = sent.iter().map(Vec::len).sum();
    for last in [false, true] {
        wire = Wire::connect(broker.address)?;
        for topic in [LIGHT, "%LMQ%a", "%LMQ%b"] {
            check_whole(&mut wire, topic, &sent[0])?;
        }
        ensure!(ends(&mut wire, "%LMQ%a", 0)? == ends(&mut wire, LIGHT, 0)?, "the light queue has other messages");
        check_whole(&mut wire, BATCHES, &sent[1])?;
        check_table(&mut wire, &sent[2])?;
        if !last {
            // The same once more from what an ordered stop leaves.
            broker.stop(Duration::from_secs(20))?;
            broker = plan.start()?;
        }
    }
    println!("{} kills, {total} acknowledged sends", rounds());
    broker.stop(Duration::from_secs(20))?;
    Ok(())
}

#[test]
fn asynchronous_flush_loses_nothing_of_any_kind() -> Result<()> {
    campaign("")
}

#[test]
fn synchronous_flush_loses_nothing_of_any_kind() -> Result<()> {
    campaign("flushDiskType=SYNC_FLUSH")
}
