//! A day of retention in minutes: files are made and removed all the time, and the broker does not grow by them.
//!
//! Small files, and a hand that makes closed ones look old: what took days takes seconds. `RETENTION_SECONDS` asks for a longer
//! run than the 20 seconds of the normal tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use client::{Admin, Cluster, Message, Producer, PullConsumer, PullOptions, PullStatus};
use protocol::body::MessageQueue;
use rocketmq_tests::process::{BrokerPlan, Server, name_server};
use tokio::task::JoinSet;
use tokio::time::{Instant as Tick, interval_at};

const TOPIC: &str = "RetentionDay";
const QUEUES: i32 = 8;
/// Each queue gets a message that often: 2000 a second together, 8 MB.
const SEND_EVERY: Duration = Duration::from_millis(4);
const BODY_BYTES: usize = 4096;
/// A file that has not been written for so long is made to look as if it were two hours old.
const KEEP: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(250);
const MIB: u64 = 1 << 20;

fn seconds() -> u64 {
    std::env::var("RETENTION_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20)
}

const CONFIG: &str = "mappedFileSizeCommitLog=1048576\nmappedFileSizeConsumeQueue=20000\nmaxHashSlotNum=1000\n\
    maxIndexNum=4000\nfileReservedTime=1\n\
    deleteWhen=00;01;02;03;04;05;06;07;08;09;10;11;12;13;14;15;16;17;18;19;20;21;22;23\n\
    cleanResourceInterval=200\ndeleteCommitLogFilesInterval=5\ndeleteFileBatchMax=50\ndiskMaxUsedSpaceRatio=95\n\
    cleanFileForciblyEnable=false";

/// What a process holds, by name.
type Sample = BTreeMap<&'static str, u64>;

fn sample(broker: &Server, store: &Path) -> Result<Sample> {
    let proc = format!("/proc/{}", broker.pid());
    let links = fs::read_dir(format!("{proc}/fd"))?.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    let links: Vec<_> = links.collect();
    let is_gone = |text: &str| text.ends_with("(deleted)");
    let maps = fs::read_to_string(format!("{proc}/maps"))?;
    let status = fs::read_to_string(format!("{proc}/status"))?;
    let kib = |name: &str| -> Result<u64> {
        let line = status.lines().find(|line| line.starts_with(name)).context("not in the status")?;
        Ok(line.split_whitespace().nth(1).context("no number")?.parse()?)
    };
    Ok(BTreeMap::from([
        ("commit log files", count_files(&store.join("commitlog"))),
        ("consume queue files", count_files(&store.join("consumequeue").join(TOPIC))),
        ("index files", count_files(&store.join("index"))),
        ("descriptors", links.len() as u64),
        ("descriptors of removed files", links.iter().filter(|l| is_gone(&l.to_string_lossy())).count() as u64),
        ("mappings", maps.lines().count() as u64),
        ("mappings of removed files", maps.lines().filter(|line| is_gone(line)).count() as u64),
        ("anonymous KiB", kib("RssAnon:")?),
        ("file-backed KiB", kib("RssFile:")?),
    ]))
}

fn count_files(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    entries.flatten().map(|entry| if entry.path().is_dir() { count_files(&entry.path()) } else { 1 }).sum()
}

/// How much a figure may be above its earlier maximum without being growth.
fn slack(name: &str, before: u64) -> u64 {
    let fixed = match name {
        "anonymous KiB" => 6 * 1024,
        "file-backed KiB" => 16 * 1024,
        _ => 16,
    };
    before / 4 + fixed
}

/// Time passes for the closed files of the commit log.
fn age_files(store: &Path) -> Result<()> {
    let mut files: Vec<_> = fs::read_dir(store.join("commitlog"))?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    // The last two are being written and prepared.
    for path in files.iter().rev().skip(2) {
        let Ok(file) = fs::File::options().write(true).open(path) else { continue };
        let age = file.metadata()?.modified()?.elapsed().unwrap_or_default();
        if age > KEEP && age < Duration::from_secs(3600) {
            file.set_modified(SystemTime::now() - Duration::from_secs(7200))?;
        }
    }
    Ok(())
}

/// Sends to one queue by the clock, one after the other. Returns for each message how long the broker took, and how long after its
/// time it was answered, which on a busy machine also counts the wait behind others; both in microseconds.
async fn produce(producer: Producer, queue: MessageQueue, stop: Arc<AtomicBool>) -> Result<Vec<(u32, u32)>> {
    let mut took = Vec::new();
    let mut clock = interval_at(Tick::now(), SEND_EVERY);
    let filler = "x".repeat(BODY_BYTES);
    for number in 0_u64.. {
        let due = clock.tick().await;
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let keys = format!("{}-{number}", queue.queue_id);
        let message = Message::new(TOPIC, format!("{number} {filler}")).with_tag("T").with_keys(&keys);
        let begin = Instant::now();
        producer.send_to(&queue, &message).await?;
        took.push((begin.elapsed().as_micros() as u32, due.elapsed().as_micros() as u32));
    }
    Ok(took)
}

/// How late this machine wakes a sleeper, in microseconds: what any program has to bear here, whatever the broker does.
async fn measure_wakes(stop: Arc<AtomicBool>) -> Vec<u32> {
    let mut late = Vec::new();
    let mut clock = interval_at(Tick::now(), SEND_EVERY);
    while !stop.load(Ordering::Relaxed) {
        late.push(clock.tick().await.elapsed().as_micros() as u32);
    }
    late
}

/// Reads one queue from its beginning, as it grows. Returns the number of messages.
async fn consume(consumer: PullConsumer, queue: MessageQueue, until: Arc<AtomicU64>) -> Result<u64> {
    let mut offset = 0;
    let options = PullOptions { suspend: Duration::from_millis(500), ..PullOptions::default() };
    loop {
        let pulled = consumer.pull(&queue, offset, &options).await?;
        match pulled.status {
            PullStatus::Found => {
                for message in &pulled.messages {
                    ensure!(message.queue_offset == offset, "{queue:?}: {} follows {offset}", message.queue_offset);
                    let text = format!("{offset} ");
                    ensure!(message.body.starts_with(text.as_bytes()), "{queue:?}: another message at {offset}");
                    offset += 1;
                }
            }
            _ if offset as u64 >= until.load(Ordering::Acquire) => return Ok(offset as u64),
            PullStatus::NotFound => {}
            other => anyhow::bail!("{queue:?}: {other:?} at {offset}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_come_and_go_and_the_broker_does_not_grow() -> Result<()> {
    let home = tempfile::tempdir()?;
    let names = name_server(home.path())?;
    let plan = BrokerPlan::new(home.path(), names.address, CONFIG)?;
    let mut broker = plan.start()?;
    Admin::new(Cluster::connect(&names.address.to_string())).create_topic_everywhere(TOPIC, QUEUES).await?;

    let stop = Arc::new(AtomicBool::new(false));
    let (mut producers, mut consumers) = (JoinSet::new(), JoinSet::new());
    let mut ends = Vec::new();
    for id in 0..QUEUES {
        let queue = MessageQueue::new(TOPIC, "broker-a", id);
        let end = Arc::new(AtomicU64::new(u64::MAX));
        let consumer = PullConsumer::new(Cluster::connect(&names.address.to_string()), "readers");
        consumers.spawn(consume(consumer, queue.clone(), end.clone()));
        ends.push(end);
        let producer = Producer::new(Cluster::connect(&names.address.to_string()), "producers");
        let stop = stop.clone();
        producers.spawn(async move { (id, produce(producer, queue, stop).await) });
    }
    let wakes = tokio::spawn(measure_wakes(stop.clone()));
    let mut samples = Vec::new();
    let begin = Instant::now();
    let mut clock = interval_at(Tick::now() + LOOK_EVERY, LOOK_EVERY);
    while begin.elapsed() < Duration::from_secs(seconds()) {
        clock.tick().await;
        ensure!(broker.is_alive(), "the broker died");
        ensure!(consumers.try_join_next().is_none(), "a reader ended");
        age_files(&plan.store())?;
        samples.push(sample(&broker, &plan.store())?);
    }
    stop.store(true, Ordering::Relaxed);
    let mut took = Vec::new();
    while let Some(done) = producers.join_next().await {
        let (id, some) = done?;
        let some = some?;
        ends[id as usize].store(some.len() as u64, Ordering::Release);
        took.extend(some);
    }
    let mut read = 0;
    while let Some(done) = consumers.join_next().await {
        read += done??;
    }
    ensure!(read == took.len() as u64, "{} sent, {read} read", took.len());

    let wakes = quantiles("wakes of this machine", wakes.await?);
    let made = took.len() as u64 * BODY_BYTES as u64 / MIB;
    let left = samples.last().and_then(|last| last.get("commit log files").copied()).unwrap_or(0);
    println!("{} s, about {made} commit log files made, {left} left", seconds());
    ensure!(left * 2 < made, "hardly a file was removed: {left} of {made} are left");
    check_steady(&samples)?;
    let (sends, late): (Vec<u32>, Vec<u32>) = took.into_iter().unzip();
    quantiles("answers after their time", late);
    let sends = quantiles("sends", sends);
    // A starved machine makes everybody wait.
    let limit = 500_000 + 50 * wakes;
    ensure!(sends < limit, "writers stalled: p99.9 is {sends} us, and {wakes} us for being woken");
    broker.stop(Duration::from_secs(20))?;
    Ok(())
}

/// Prints some quantiles and returns the 99.9th percentile.
fn quantiles(what: &str, mut took: Vec<u32>) -> u32 {
    took.sort_unstable();
    let at = |share: f64| took.get((took.len().saturating_sub(1) as f64 * share) as usize).copied().unwrap_or(0);
    println!(
        "{} {what}: p50 {} us, p99 {} us, p99.9 {} us, max {} us",
        took.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    at(0.999)
}

/// The first third is for warming up; the last one must not be above the middle one.
fn check_steady(samples: &[Sample]) -> Result<()> {
    let third = samples.len() / 3;
    let most = |range: &[Sample], name: &str| range.iter().map(|sample| sample[name]).max().unwrap_or(0);
    let mut grown = Vec::new();
    for name in samples[0].keys() {
        let (middle, last) = (most(&samples[third..2 * third], name), most(&samples[2 * third..], name));
        println!("{name}: at most {middle} in the middle, {last} at the end");
        if last > middle + slack(name, middle) {
            grown.push(*name);
        }
    }
    ensure!(grown.is_empty(), "these grow: {grown:?}");
    for name in ["descriptors of removed files", "mappings of removed files"] {
        ensure!(most(samples, name) <= 64, "{name}: {}", most(samples, name));
    }
    Ok(())
}
