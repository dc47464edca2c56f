//! Stopping while messages come in.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use client::{Cluster, Message, Producer, PullConsumer, PullOptions};
use rustix::process::Signal;

use crate::rig::{Rig, TOPIC};

async fn produce(cluster: Cluster, stop: Arc<AtomicBool>, count: Arc<AtomicU64>, id: u64) -> Vec<String> {
    let mut producer = Producer::new(cluster, "P");
    producer.timeout = Duration::from_secs(2);
    producer.retries = 0;
    let mut acknowledged = Vec::new();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let body = format!("{id}-{number}");
        match producer.send(&Message::new(TOPIC, body.clone())).await {
            Ok(_) => {
                acknowledged.push(body);
                count.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_under_load_loses_nothing() -> Result<()> {
    for extra in ["", "flushDiskType=SYNC_FLUSH", "enableShutdownGracefully=true\nshutdownWaitTimeSeconds=2"] {
        let mut rig = Rig::start(extra).await?;
        let stop = Arc::new(AtomicBool::new(false));
        let count = Arc::new(AtomicU64::new(0));
        let producers: Vec<_> = (0..8)
            .map(|id| {
                let cluster = Cluster::connect(&rig.names.address.to_string());
                tokio::spawn(produce(cluster, stop.clone(), count.clone(), id))
            })
            .collect();
        let deadline = Instant::now() + Duration::from_secs(30);
        while count.load(Ordering::Relaxed) < 300 {
            ensure!(Instant::now() < deadline, "producers do not get on");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        rig.broker.signal(Signal::TERM)?;
        let status = rig.broker.wait(Duration::from_secs(20)).context("SIGTERM")?;
        ensure!(status.code() == Some(0), "ended with {status}: {}", rig.log("mqbroker")?);
        ensure!(!rig.plan.store().join("abort").exists(), "the abort file is left");
        stop.store(true, Ordering::Relaxed);
        let mut acknowledged = Vec::new();
        for producer in producers {
            acknowledged.extend(producer.await?);
        }
        rig.broker = rig.plan.start()?;
        let consumer = PullConsumer::new(Cluster::connect(&rig.names.address.to_string()), "R");
        let (mut offset, end) = (0, consumer.max_offset(&Rig::queue()).await?);
        let mut stored = BTreeSet::new();
        while offset < end {
            let pulled = consumer.pull(&Rig::queue(), offset, &PullOptions::default()).await?;
            stored.extend(pulled.messages.iter().map(|message| String::from_utf8_lossy(&message.body).into_owned()));
            ensure!(pulled.next_offset > offset, "{:?} at {offset} of {end}", pulled.status);
            offset = pulled.next_offset;
        }
        let lost: Vec<_> = acknowledged.iter().filter(|body| !stored.contains(*body)).collect();
        ensure!(lost.is_empty(), "{extra:?}: {} of {} are lost: {lost:?}", lost.len(), acknowledged.len());
        println!("{extra:?}: {} acknowledged", acknowledged.len());
        rig.unharmed(150, 60).await?;
    }
    Ok(())
}

/// While the first stop waits for a client that never answers, the second signal ends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_at_once() -> Result<()> {
    let mut rig = Rig::start("enableShutdownGracefully=true\nshutdownWaitTimeSeconds=30").await?;
    rig.round_trip().await?;
    let stop = Arc::new(AtomicBool::new(false));
    let busy = tokio::spawn(produce(rig.cluster.clone(), stop.clone(), Arc::default(), 0));
    rig.broker.signal(Signal::TERM)?;
    rocketmq_tests::wait_until("the first signal is seen", Duration::from_secs(10), || {
        rig.log("mqbroker").is_ok_and(|log| log.contains("stopping"))
    });
    let begin = Instant::now();
    if rig.broker.is_alive() {
        rig.broker.signal(Signal::INT)?;
        let status = rig.broker.wait(Duration::from_secs(20))?;
        ensure!(begin.elapsed() < Duration::from_secs(3), "took {:?}", begin.elapsed());
        ensure!(matches!(status.code(), Some(0 | 130)), "ended with {status}");
    }
    stop.store(true, Ordering::Relaxed);
    busy.await?;
    rig.broker = rig.plan.start()?;
    rig.unharmed(150, 60).await
}
