//! The broker is killed with -9 under load, again and again; nothing acknowledged is lost and no queue loses its order.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use client::{Admin, Cluster, Message, Producer, PullConsumer, PullOptions, PullStatus};
use protocol::body::MessageQueue;
use rocketmq_tests::process::{BrokerPlan, name_server};
use tokio::task::JoinSet;

const TOPIC: &str = "KillNine";
const PRODUCERS: i32 = 8;

/// `KILL_ROUNDS` in the environment asks for more.
fn rounds() -> u32 {
    std::env::var("KILL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

/// Sends to one queue, one number after the other, until told to stop. Returns the acknowledged ones with their offsets.
async fn produce(
    producer: Producer,
    queue: MessageQueue,
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
) -> Vec<(i64, u64)> {
    let mut acknowledged = Vec::new();
    let filler = "x".repeat(1000);
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let message = Message::new(TOPIC, format!("{number} {filler}")).with_tag("T").with_keys("k");
        match producer.send_to(&queue, &message).await {
            Ok(sent) => {
                acknowledged.push((sent.queue_offset, number));
                count.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    acknowledged
}

/// Everything in a queue, in its order.
async fn drain(consumer: &PullConsumer, queue: &MessageQueue) -> Result<Vec<(i64, u64)>> {
    let mut found = Vec::new();
    let mut offset = consumer.min_offset(queue).await?;
    let end = consumer.max_offset(queue).await?;
    while offset < end {
        let pulled = consumer.pull(queue, offset, &PullOptions::default()).await?;
        ensure!(pulled.status == PullStatus::Found, "queue {queue:?}: {:?} at {offset} of {end}", pulled.status);
        for message in pulled.messages {
            let text = std::str::from_utf8(&message.body)?;
            let number = text.split(' ').next().context("empty body")?.parse()?;
            found.push((message.queue_offset, number));
        }
        offset = pulled.next_offset;
    }
    Ok(found)
}

/// The connection to the broker that was killed may be noticed only by the first request.
async fn max_offset_soon(consumer: &PullConsumer, queue: &MessageQueue) -> Result<i64> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match consumer.max_offset(queue).await {
            Ok(end) => return Ok(end),
            Err(error) if Instant::now() > deadline => return Err(error.into()),
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

async fn campaign(extra: &str) -> Result<()> {
    let home = tempfile::tempdir()?;
    let names = name_server(home.path())?;
    let plan = BrokerPlan::new(home.path(), names.address, extra)?;
    let mut broker = plan.start()?;
    let cluster = Cluster::connect(&names.address.to_string());
    Admin::new(cluster.clone()).create_topic_everywhere(TOPIC, PRODUCERS).await?;

    let stop = Arc::new(AtomicBool::new(false));
    let count = Arc::new(AtomicU64::new(0));
    let mut producers = JoinSet::new();
    for id in 0..PRODUCERS {
        // A connection of its own, as separate programs have.
        let mut producer = Producer::new(Cluster::connect(&names.address.to_string()), "producers");
        producer.timeout = Duration::from_secs(1);
        let queue = MessageQueue::new(TOPIC, "broker-a", id);
        let (stop, count) = (stop.clone(), count.clone());
        producers.spawn(async move { (id, produce(producer, queue, stop, count).await) });
    }
    let consumer = PullConsumer::new(cluster, "readers");
    let mut seen = vec![0; PRODUCERS as usize];
    let mut slowest = Duration::ZERO;
    for round in 0..rounds() {
        let enough = count.load(Ordering::Relaxed) + 200 + fastrand::u64(..2000);
        let deadline = Instant::now() + Duration::from_secs(60);
        while count.load(Ordering::Relaxed) < enough {
            ensure!(Instant::now() < deadline, "round {round}: producers do not get on");
            ensure!(broker.is_alive(), "round {round}: the broker died by itself");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        for (id, seen) in (0..).zip(&mut seen) {
            *seen = consumer.max_offset(&MessageQueue::new(TOPIC, "broker-a", id)).await?;
        }
        broker.kill_nine()?;
        let begin = Instant::now();
        broker = plan.start().with_context(|| format!("restart {round}"))?;
        slowest = slowest.max(begin.elapsed());
        for (id, seen) in (0..).zip(&seen) {
            let end = max_offset_soon(&consumer, &MessageQueue::new(TOPIC, "broker-a", id)).await?;
            ensure!(end >= *seen, "round {round}, queue {id}: the end went back from {seen} to {end}");
        }
    }
    stop.store(true, Ordering::Relaxed);
    let mut acknowledged = HashMap::new();
    while let Some(done) = producers.join_next().await {
        let (id, numbers) = done?;
        acknowledged.insert(id, numbers);
    }
    let mut total = 0;
    for id in 0..PRODUCERS {
        let queue = MessageQueue::new(TOPIC, "broker-a", id);
        let found = drain(&consumer, &queue).await?;
        for pair in found.windows(2) {
            ensure!(pair[0].0 + 1 == pair[1].0, "queue {id}: offset {} follows {}", pair[1].0, pair[0].0);
            // So none is there twice.
            ensure!(pair[0].1 < pair[1].1, "queue {id}: number {} follows {}", pair[1].1, pair[0].1);
        }
        // At the offset that was acknowledged, so no offset was given twice either.
        let stored: BTreeSet<(i64, u64)> = found.iter().copied().collect();
        let sent = &acknowledged[&id];
        let lost: Vec<_> = sent.iter().filter(|message| !stored.contains(message)).collect();
        ensure!(
            lost.is_empty(),
            "queue {id}: {} of {} acknowledged messages are lost: {lost:?}",
            lost.len(),
            sent.len()
        );
        total += sent.len();
    }
    println!("{} kills, {total} acknowledged messages, slowest restart {slowest:?}", rounds());
    broker.stop(Duration::from_secs(20))?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asynchronous_flush_loses_nothing_to_kill_nine() -> Result<()> {
    campaign("").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn synchronous_flush_loses_nothing_to_kill_nine() -> Result<()> {
    campaign("flushDiskType=SYNC_FLUSH").await
}
