//! Three name servers, restarted one after the other while clients send.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use client::{Admin, Cluster, Message, Producer};
use protocol::body::TopicConfig;
use rocketmq_tests::process::BrokerPlan;
use rocketmq_tests::wire::Wire;

use crate::rig::{LIMIT, Plan, has};

const TOPIC: &str = "Restarts";
const BROKERS: [&str; 2] = ["broker-a", "broker-b"];

/// Sends until told to stop, and asks a name server for the route before each message.
async fn produce(producer: Producer, stop: Arc<AtomicBool>, sent: Arc<AtomicU64>) -> (BTreeSet<String>, Vec<String>) {
    let mut failures = Vec::new();
    let mut brokers = BTreeSet::new();
    while !stop.load(Ordering::Relaxed) {
        producer.cluster().forget(TOPIC);
        match producer.send(&Message::new(TOPIC, "x")).await {
            Ok(result) => {
                brokers.insert(result.queue.broker_name);
                sent.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => failures.push(error.to_string()),
        }
    }
    (brokers, failures)
}

/// Lets the producers get on by some hundred messages.
async fn get_on(sent: &AtomicU64) -> Result<()> {
    let enough = sent.load(Ordering::Relaxed) + 300;
    let deadline = Instant::now() + LIMIT;
    while sent.load(Ordering::Relaxed) < enough {
        ensure!(Instant::now() < deadline, "producers do not get on");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_send_fails_while_name_servers_are_restarted() -> Result<()> {
    let plans =
        [Plan::new("")?, Plan::new("")?, Plan::new("enableShutdownGracefully=true\nshutdownWaitTimeSeconds=1")?];
    let mut servers = Vec::new();
    for plan in &plans {
        servers.push(Some(plan.start()?));
    }
    let list = plans.each_ref().map(|plan| plan.address().to_string()).join(";");
    let homes = [tempfile::tempdir()?, tempfile::tempdir()?];
    let mut brokers = Vec::new();
    for (home, name) in homes.iter().zip(BROKERS) {
        let extra = format!("brokerName={name}\nnamesrvAddr={list}");
        brokers.push(BrokerPlan::new(home.path(), plans[0].address(), &extra)?);
    }
    let _running = brokers.iter().map(BrokerPlan::start).collect::<Result<Vec<_>>>()?;
    let admin = Admin::new(Cluster::connect(&list));
    let deadline = Instant::now() + LIMIT;
    while admin.masters(None).await?.len() < BROKERS.len() {
        ensure!(Instant::now() < deadline, "a broker does not come to the name servers");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    admin.create_topic_everywhere(TOPIC, 4).await?;

    let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut producers = Vec::new();
    // Each begins at one of the three.
    for at in 0..6 {
        let mut order: Vec<_> = plans.iter().map(|plan| plan.address().to_string()).collect();
        order.rotate_left(at % 3);
        let producer = Producer::new(Cluster::connect(&order.join(";")), "Restarts-producers");
        producers.push(tokio::spawn(produce(producer, stop.clone(), sent.clone())));
    }
    for (at, plan) in plans.iter().enumerate() {
        get_on(&sent).await?;
        let Some(server) = servers[at].take() else { continue };
        if at == 1 {
            server.kill_nine()?;
        } else {
            let status = tokio::task::spawn_blocking(move || server.stop(LIMIT)).await??;
            ensure!(status.code() == Some(0), "ended with {status}");
        }
        get_on(&sent).await?;
        servers[at] = Some(plan.start()?);
        // Brokers register every 30 s, and at once when a topic is made. Until then the server knows nobody.
        for broker in &brokers {
            let config = TopicConfig { topic_name: format!("After{at}"), ..TopicConfig::default() };
            admin.create_topic(&format!("127.0.0.1:{}", broker.port), &config).await?;
        }
        let mut wire = Wire::connect(plan.address())?;
        let deadline = Instant::now() + LIMIT;
        for broker in BROKERS {
            while !has(&mut wire, TOPIC, broker)? {
                ensure!(Instant::now() < deadline, "{broker} does not come to the restarted name server");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
    get_on(&sent).await?;
    stop.store(true, Ordering::Relaxed);
    let mut seen = BTreeSet::new();
    for producer in producers {
        let (brokers, failures) = producer.await?;
        ensure!(failures.is_empty(), "{} sends failed: {:?}", failures.len(), failures.first());
        seen.extend(brokers);
    }
    ensure!(seen.iter().eq(BROKERS), "messages went to {seen:?} only");
    println!(
        "{} messages sent, none failed, while each of three name servers was restarted",
        sent.load(Ordering::Relaxed)
    );
    Ok(())
}

/// A name server that is slow to hear of a broker is no reason to fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_is_made_while_its_broker_is_still_starting() -> Result<()> {
    let plan = Plan::new("")?;
    let _names = plan.start()?;
    let home = tempfile::tempdir()?;
    let broker = BrokerPlan::new(home.path(), plan.address(), "")?;
    let admin = Admin::new(Cluster::connect(&plan.address().to_string()));
    let starting = tokio::task::spawn_blocking(move || broker.start());
    admin.create_topic_everywhere(TOPIC, 4).await?;
    let _running = starting.await??;
    let producer = Producer::new(admin.cluster().clone(), "Restarts-producers");
    producer.send(&Message::new(TOPIC, "x")).await?;
    Ok(())
}

/// Java's broker registers again 10 s after its start and not only 30 s after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_was_there_first_is_known_soon() -> Result<()> {
    let plan = Plan::new("")?;
    let home = tempfile::tempdir()?;
    let _broker = BrokerPlan::new(home.path(), plan.address(), "")?.start()?;
    let _names = plan.start()?;
    let admin = Admin::new(Cluster::connect(&plan.address().to_string()));
    let deadline = Instant::now() + LIMIT;
    while admin.masters(None).await?.is_empty() {
        ensure!(Instant::now() < deadline, "the broker does not come to a name server that was started after it");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
