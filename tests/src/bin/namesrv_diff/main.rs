//! Plays one random sequence to our name server and to the Java one and compares every answer.
//!
//! `ROCKETMQ_PEER_LIB=<jars> namesrv_diff [--seeds N] [--first SEED] [--steps N] [--port PORT]`
//!
//! Differences that are meant, and how the sequence or the comparison leaves them out:
//! - order of rows and lists: Java's is a hash map's;
//! - GET_BROKER_MEMBER_GROUP succeeds in Java with the remark `not set any response code`;
//! - a route filtered by zone is in the legacy dialect in Java, and here in the one asked for;
//! - descriptions of exceptions name Java classes;
//! - GET_SYSTEM_TOPIC_LIST's address is any broker's;
//! - a live entry whose address no broker name holds any more stays for ever in Java, and goes with its connection here:
//!   QUERY_DATA_VERSION of such a broker may find it there and not here (counted as `orphans`);
//! - a registration whose rows changed while its data version did not is ignored in Java: the sequence has none;
//! - several brokers on one connection: Java removes one of them at once when it closes: each has its own here;
//! - a compressed body that is not announced: an error in Java: the sequence has none;
//! - unit flags of a topic that differ between brokers: Java shows the first row of a hash map.

mod compare;
mod generate;
mod listeners;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use namesrv::Namesrv;
use protocol::{Command, request_code as code};
use rocketmq_tests::java_namesrv::JavaNamesrv;
use rocketmq_tests::wire::Wire;
use service::config::Live;
use service::keys::NamesrvSettings;

use compare::{Seen, seen};
use generate::{Step, World};
use listeners::Listeners;

const BROKERS: usize = 12;
/// How long the two may take to come to the same state after an unregistration.
const SETTLE: Duration = Duration::from_secs(20);

struct Options {
    seeds: u64,
    first: u64,
    steps: usize,
    port: u16,
}

fn options() -> Result<Options> {
    let mut options = Options { seeds: 1, first: 1, steps: 10_000, port: 24_100 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().context("a value is missing")?;
        match word.as_str() {
            "--seeds" => options.seeds = value.parse()?,
            "--first" => options.first = value.parse()?,
            "--steps" => options.steps = value.parse()?,
            "--port" => options.port = value.parse()?,
            other => bail!("unknown option {other}"),
        }
    }
    Ok(options)
}

fn main() -> Result<()> {
    let options = options()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    for seed in options.first..options.first + options.seeds {
        let begin = Instant::now();
        let home = tempfile::tempdir()?;
        let java = JavaNamesrv::start(options.port, "", home.path(), &["-Xmx256m", "-Xms256m"])?;
        let mut settings = NamesrvSettings::default();
        settings.netty.listen_port = 0;
        settings.netty.bind_address = "127.0.0.1".to_owned();
        settings.namesrv.kv_config_path = home.path().join("kv.json").display().to_string();
        let ours = runtime.block_on(async { Namesrv::start(Live::new(settings)) })?;
        let listeners = Listeners::start(options.port + 1, BROKERS)?;
        let mut play = Play::new(seed, ours.local_addr(), java.address, listeners)?;
        play.run(options.steps).with_context(|| format!("seed {seed}"))?;
        println!(
            "seed {seed}: {} steps, {} answers compared, {} notices ({} lost by Java), {} orphans, {:.1} s",
            options.steps,
            play.compared,
            play.listeners.seen(),
            play.listeners.lost_by_java,
            play.orphans,
            begin.elapsed().as_secs_f32()
        );
        runtime.block_on(ours.shutdown());
    }
    Ok(())
}

/// A connection to each.
struct Pair {
    ours: Wire,
    java: Wire,
}

struct Play {
    world: World,
    ours: SocketAddr,
    java: SocketAddr,
    admin: Pair,
    brokers: Vec<Option<Pair>>,
    listeners: Listeners,
    compared: usize,
    orphans: usize,
    trail: Vec<String>,
}

impl Play {
    fn new(seed: u64, ours: SocketAddr, java: SocketAddr, listeners: Listeners) -> Result<Self> {
        let world = World::new(seed, &listeners.addrs);
        let admin = Pair { ours: Wire::connect(ours)?, java: Wire::connect(java)? };
        let brokers = world.brokers.iter().map(|_| None).collect();
        Ok(Self { world, ours, java, admin, brokers, listeners, compared: 0, orphans: 0, trail: Vec::new() })
    }

    fn run(&mut self, steps: usize) -> Result<()> {
        for step in 0..steps {
            let next = self.world.next();
            self.trail.push(describe(&next));
            let settles = match next {
                Step::Drop { broker } => self.brokers[broker].take().is_some(),
                Step::Ask { over, request } => {
                    self.ask(over, &request).with_context(|| self.story(step))?;
                    request.code == code::UNREGISTER_BROKER
                }
            };
            if settles || step % 500 == 499 || step + 1 == steps {
                self.settle().with_context(|| self.story(step))?;
            }
            self.listeners.agree(SETTLE).with_context(|| self.story(step))?;
        }
        Ok(())
    }

    fn story(&self, step: usize) -> String {
        let from = self.trail.len().saturating_sub(trail_length());
        format!("step {step}, the last ones:\n{}", self.trail[from..].join("\n"))
    }

    fn ask(&mut self, over: Option<usize>, request: &Command) -> Result<()> {
        let (ours, java) = self.both(over, request)?;
        self.compared += 1;
        if ours == java {
            return Ok(());
        }
        if request.code == code::QUERY_DATA_VERSION && self.is_orphan(request)? {
            self.orphans += 1;
            return Ok(());
        }
        bail!("asked {}\n    {}", describe_request(request), ours.difference(&java))
    }

    fn both(&mut self, over: Option<usize>, request: &Command) -> Result<(Seen, Seen)> {
        let pair = match over {
            None => &mut self.admin,
            Some(at) => {
                if self.brokers[at].is_none() {
                    let pair = Pair { ours: Wire::connect(self.ours)?, java: Wire::connect(self.java)? };
                    self.brokers[at] = Some(pair);
                }
                self.brokers[at].as_mut().context("just made")?
            }
        };
        let ours = pair.ours.ask(request).context("ours")?;
        let java = pair.java.ask(request).context("java")?;
        Ok((seen(request, &ours), seen(request, &java)))
    }

    /// Whether no broker name holds the address that `request` asks for.
    fn is_orphan(&mut self, request: &Command) -> Result<bool> {
        let clusters = self.admin.java.ask(&Command::request(code::GET_BROKER_CLUSTER_INFO))?;
        let addr = request.fields.get("brokerAddr").unwrap_or_default();
        Ok(!String::from_utf8_lossy(&clusters.body).contains(&format!("\"{addr}\"")))
    }

    /// Waits until both show the same brokers, topics and routes.
    fn settle(&mut self) -> Result<()> {
        let deadline = Instant::now() + SETTLE;
        loop {
            match self.same_state() {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > deadline => return Err(error.context("the two did not settle")),
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    fn same_state(&mut self) -> Result<()> {
        let mut questions = vec![Command::request(code::GET_BROKER_CLUSTER_INFO)];
        questions
            .extend(["c1", "c2"].map(|name| Command::request(code::GET_TOPICS_BY_CLUSTER).with_field("cluster", name)));
        let mut topics: Vec<String> = (0..12).map(|at| format!("topic-{at}")).collect();
        topics.extend(["unit-0", "broker-a", "c1", "straße/日本"].map(str::to_owned));
        let route = |topic: &String| Command::request(code::GET_ROUTEINFO_BY_TOPIC).with_field("topic", topic.as_str());
        questions.extend(topics.iter().map(route));
        for question in &questions {
            let (ours, java) = self.both(None, question)?;
            if ours != java {
                bail!("{}\n    {}", describe_request(question), ours.difference(&java));
            }
        }
        self.compared += questions.len();
        Ok(())
    }
}

/// How much of a body a failure shows: `DIFF_BODY` characters.
fn trail_width() -> usize {
    std::env::var("DIFF_BODY").ok().and_then(|width| width.parse().ok()).unwrap_or(160)
}

/// How many steps a failure shows: `DIFF_TRAIL`.
fn trail_length() -> usize {
    std::env::var("DIFF_TRAIL").ok().and_then(|length| length.parse().ok()).unwrap_or(40)
}

fn describe(step: &Step) -> String {
    match step {
        Step::Drop { broker } => format!("drop {broker}"),
        Step::Ask { over, request } => format!("{over:?} {}", describe_request(request)),
    }
}

fn describe_request(request: &Command) -> String {
    let fields: Vec<String> = request.fields.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let body: String = String::from_utf8_lossy(&request.body).chars().take(trail_width()).collect();
    format!("{} v{} {} {body}", request.code, request.version, fields.join(" "))
}
