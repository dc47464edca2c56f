//! `mqbench`: a load generator for any RocketMQ-compatible broker.

mod args;
mod consume;
mod produce;
mod report;
mod server_process;
mod stats;
mod template;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use args::{Cli, Common, Consume, Mode, Produce};
use clap::Parser;
use client::{Admin, ClientError, Cluster, PullConsumer, Queue};
use report::{Costs, Direction};
use serde_json::json;
use server_process::{Usage, usage};
use stats::{Clock, Stats};
use template::{Target, Template};

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let (common, produce, consume) = match cli.mode {
        Mode::Produce { common, produce } => (common, Some(produce), None),
        Mode::Consume { common, consume } => (common, None, Some(consume)),
        Mode::Both { common, produce, consume } => (common, Some(produce), Some(Consume { follow: true, ..consume })),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(common.threads.max(1))
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(run(common, produce, consume))
}

/// One run, from the topic to the report.
async fn run(common: Common, produce: Option<Produce>, consume: Option<Consume>) -> anyhow::Result<()> {
    let cluster = Cluster::connect(&common.name_servers);
    if let Some(queues) = common.create {
        Admin::new(cluster.clone())
            .create_topic_everywhere(&common.topic, queues)
            .await
            .context("creating the topic")?;
    }
    let route = match cluster.route(&common.topic).await {
        Err(ClientError::NoRoute(topic)) => bail!("there is no topic {topic}; --create makes it"),
        other => other.context("asking for the route")?,
    };
    let clock = Clock::new();
    let consumer = match &consume {
        Some(consume) => {
            Some(Consuming::start(&common, consume, produce.is_some(), &cluster, &route.readable, clock).await?)
        }
        None => None,
    };
    let producer = match &produce {
        Some(produce) => Some(Producing::start(&common, produce, &route.writable, clock)?),
        None => None,
    };
    let ends_by_itself = common.count.is_some() || (producer.is_none() && consume.as_ref().is_some_and(|c| !c.follow));
    let watch = Watch { common: &common, producer: producer.as_ref(), consumer: consumer.as_ref() };
    if !ends_by_itself && common.warmup > 0.0 {
        watch.pass(Duration::from_secs_f64(common.warmup), false).await;
    }
    watch.reset();
    let before = usage(&common.server_pid);
    let own = usage(&[std::process::id()]);
    let started = Instant::now();
    watch.pass(Duration::from_secs_f64(common.seconds), ends_by_itself).await;
    // What is still under way is waited for, and is part of the measurement when the count was given.
    if let Some(producer) = &producer {
        producer.drain().await;
    }
    let elapsed = started.elapsed();
    let server = before.zip(usage(&common.server_pid));
    let own_cpu =
        usage(&[std::process::id()]).zip(own).map_or(0, |(after, before)| after.cpu_micros - before.cpu_micros);
    if let Some(consumer) = &consumer {
        consumer.plan.stop();
    }
    let costs = Costs { server, own_cpu_micros: own_cpu };
    let directions = watch.directions(produce.as_ref());
    if common.json {
        let setup = setup(&common, produce.as_ref(), consume.as_ref());
        println!("{}", report::to_json(setup, &directions, elapsed, &costs));
    } else {
        report::print(&directions, elapsed, &costs);
    }
    let done: u64 = directions.iter().map(|direction| direction.counts.messages).sum();
    if done == 0 && common.count != Some(0) {
        bail!("not one message went through");
    }
    Ok(())
}

fn setup(common: &Common, produce: Option<&Produce>, consume: Option<&Consume>) -> serde_json::Value {
    json!({
        "topic": common.topic,
        "connections": common.connections,
        "codec": format!("{:?}", common.codec).to_lowercase(),
        "in_flight": produce.map(|produce| produce.in_flight),
        "size": produce.map(|produce| produce.size),
        "rate": produce.and_then(|produce| produce.rate),
        "batch": consume.map(|consume| consume.batch),
    })
}

/// The queues of each broker.
fn by_address(queues: &[Queue]) -> Vec<(&str, Vec<&Queue>)> {
    let mut map: BTreeMap<&str, Vec<&Queue>> = BTreeMap::new();
    for queue in queues {
        map.entry(&queue.addr).or_default().push(queue);
    }
    map.into_iter().collect()
}

struct Producing {
    schedule: Arc<produce::Schedule>,
    stats: Arc<Stats>,
    links: Vec<Arc<produce::Link>>,
}

impl Producing {
    fn start(common: &Common, produce: &Produce, queues: &[Queue], clock: Clock) -> anyhow::Result<Self> {
        let brokers = by_address(queues);
        if brokers.is_empty() {
            bail!("no queue of {} can be written", common.topic);
        }
        let schedule = Arc::new(produce::Schedule::new(clock, produce.rate, common.count));
        let stats = Arc::new(Stats::new());
        let mut body = vec![0; produce.size];
        fastrand::fill(&mut body);
        let mut links = Vec::new();
        for at in 0..common.connections.max(1) {
            let (addr, queues) = &brokers[at % brokers.len()];
            let templates = (0..produce.in_flight.max(1)).map(|slot| {
                let queue = queues[(at / brokers.len() * produce.in_flight + slot) % queues.len()];
                let target = Target {
                    topic: &common.topic,
                    group: &produce.producer_group,
                    broker_name: &queue.queue.broker_name,
                    queue_id: queue.queue.queue_id,
                    serialize: common.codec.serialize(),
                };
                Template::new(&target, slot as i32, &body)
            });
            let templates = templates.collect::<Option<Vec<_>>>().context("the request cannot be patched")?;
            let addr = (*addr).to_owned();
            links.push(Arc::new(produce::Link::new(addr, templates, produce.size, schedule.clone(), stats.clone())));
        }
        schedule.start();
        for link in &links {
            tokio::spawn(link.clone().run());
        }
        let (paced, pacing) = (links.clone(), schedule.clone());
        std::thread::spawn(move || produce::pace(&paced, &pacing));
        Ok(Self { schedule, stats, links })
    }

    fn under_way(&self) -> usize {
        self.links.iter().map(|link| link.under_way()).sum()
    }

    /// Stops sending and waits for the answers that are due.
    async fn drain(&self) {
        self.schedule.stop();
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.under_way() > 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let lost = self.under_way() as u64;
        self.stats.record(|counts| counts.fail("no answer at the end".to_owned(), lost));
    }
}

struct Consuming {
    plan: Arc<consume::Plan>,
    stats: Arc<Stats>,
}

impl Consuming {
    async fn start(
        common: &Common,
        consume: &Consume,
        own: bool,
        cluster: &Cluster,
        queues: &[Queue],
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let consumer = PullConsumer::new(cluster.clone(), &consume.consumer_group);
        let mut states: BTreeMap<String, Vec<consume::QueueState>> = BTreeMap::new();
        let mut open = 0;
        for queue in queues {
            let max = consumer.max_offset(&queue.queue).await.context("asking for offsets")?;
            let start = if consume.follow { max } else { consumer.min_offset(&queue.queue).await? };
            if start < max || consume.follow {
                open += 1;
                let state = consume::QueueState::new(queue.queue.queue_id, start, max);
                states.entry(queue.addr.clone()).or_default().push(state);
            }
        }
        if open == 0 {
            bail!("there is nothing to read in {}", common.topic);
        }
        let plan = Arc::new(consume::Plan {
            clock,
            group: consume.consumer_group.clone(),
            topic: common.topic.clone(),
            batch: consume.batch,
            serialize: common.codec.serialize(),
            follow: consume.follow,
            own,
            left: AtomicU64::new(common.count.unwrap_or(u64::MAX)),
            stopped: AtomicBool::new(false),
            open_queues: AtomicU64::new(open),
            finished: tokio::sync::Notify::new(),
        });
        let stats = Arc::new(Stats::new());
        let per_broker = (common.connections / states.len()).max(1);
        for (addr, queues) in states {
            let mut parts: Vec<Vec<consume::QueueState>> = Vec::new();
            parts.resize_with(per_broker.min(queues.len()), Vec::new);
            let count = parts.len();
            queues.into_iter().enumerate().for_each(|(at, queue)| parts[at % count].push(queue));
            for part in parts {
                let link = consume::Link::new(addr.clone(), part, plan.clone(), stats.clone());
                tokio::spawn(Arc::new(link).run());
            }
        }
        Ok(Self { plan, stats })
    }
}

/// Looks on while it runs.
struct Watch<'a> {
    common: &'a Common,
    producer: Option<&'a Producing>,
    consumer: Option<&'a Consuming>,
}

impl Watch<'_> {
    fn stats(&self) -> Vec<(&'static str, &Arc<Stats>)> {
        let producer = self.producer.map(|producer| ("produce", &producer.stats));
        let consumer = self.consumer.map(|consumer| ("consume", &consumer.stats));
        producer.into_iter().chain(consumer).collect()
    }

    fn reset(&self) {
        self.stats().iter().for_each(|(_, stats)| stats.reset());
    }

    fn is_over(&self) -> bool {
        match (self.producer, self.consumer) {
            (Some(producer), _) => producer.schedule.is_over() && producer.under_way() == 0,
            (None, Some(consumer)) => consumer.plan.stopped.load(Ordering::Relaxed),
            (None, None) => true,
        }
    }

    /// Lets it run for `time`, or until it ends by itself, with a line of progress each second.
    async fn pass(&self, time: Duration, until_over: bool) {
        let started = Instant::now();
        let mut last = (started, usage(&self.common.server_pid));
        loop {
            let next = last.0 + Duration::from_secs(1);
            while Instant::now() < next {
                let over = if until_over { self.is_over() } else { started.elapsed() >= time };
                if over {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let now = (Instant::now(), usage(&self.common.server_pid));
            let laps: Vec<_> = self.stats().iter().map(|(name, stats)| (*name, stats.lap())).collect();
            let server: Option<(Usage, Usage)> = last.1.zip(now.1);
            if !self.common.quiet {
                let text = report::progress(started.elapsed().as_secs_f64(), &laps, now.0 - last.0, server);
                eprintln!("{text}");
            }
            last = now;
        }
    }

    fn directions(&self, produce: Option<&Produce>) -> Vec<Direction> {
        let open = produce.is_some_and(|produce| produce.rate.is_some());
        let one = |(name, stats): &(&'static str, &Arc<Stats>)| Direction {
            name,
            counts: stats.total(),
            open_loop: open && *name == "produce",
        };
        self.stats().iter().map(one).collect()
    }
}
