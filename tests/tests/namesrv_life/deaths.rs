//! Brokers that go without a word.

use std::process::Command as Process;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use client::{Admin, Cluster};
use protocol::{Command, request_code as code};
use rocketmq_tests::process::BrokerPlan;
use rocketmq_tests::wire::Wire;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::rig::{LIMIT, Plan, ask_ok, gone, has, registration};

/// The aim is 50 ms on a machine with nothing else to do; the tests' machine has other things to do.
const PATIENCE: Duration = Duration::from_secs(2);
const TOPIC: &str = "Deaths";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_killed_is_out_of_the_next_route() -> Result<()> {
    let names = Plan::new("")?;
    let server = names.start()?;
    let (home_a, home_b) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let lasting = BrokerPlan::new(home_a.path(), server.address, "brokerName=lasting")?;
    let _lasting = lasting.start()?;
    let dying = BrokerPlan::new(home_b.path(), server.address, "brokerName=dying")?;
    let mut broker = Some(dying.start()?);
    Admin::new(Cluster::connect(&server.address.to_string())).create_topic_everywhere(TOPIC, 4).await?;
    let mut wire = Wire::connect(server.address)?;
    let mut times = Vec::new();
    for _ in 0..4 {
        let victim = match broker.take() {
            Some(first) => first,
            None => dying.start()?,
        };
        // A restarted broker registers before it says that it has started.
        ensure!(has(&mut wire, TOPIC, "dying")?, "a broker that serves is not in the route");
        let begin = Instant::now();
        victim.kill_nine()?;
        times.push(gone(&mut wire, TOPIC, "dying", begin, PATIENCE)?);
        ensure!(has(&mut wire, TOPIC, "lasting")?, "the other broker went, too");
    }
    println!("killed brokers were out of the route after {times:?}");
    let lines = names.log()?;
    let left = lines.lines().filter(|line| line.contains("broker left") && line.contains("dying")).count();
    ensure!(left == times.len(), "{left} lines for {} deaths:\n{lines}", times.len());
    Ok(())
}

/// A network namespace with one cable to this one; both go with it.
struct Namespace {
    name: String,
    cable: String,
    here: String,
    there: String,
}

fn ip(arguments: &str) -> Result<()> {
    let output = Process::new("ip").args(arguments.split(' ')).output().context("ip")?;
    ensure!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

impl Namespace {
    fn new() -> Result<Self> {
        let id = std::process::id();
        let net = format!("10.213.{}", id % 250);
        let made = Self {
            name: format!("mq{id}"),
            cable: format!("mqa{id}"),
            here: format!("{net}.1"),
            there: format!("{net}.2"),
        };
        let Self { name, cable, here, there } = &made;
        ip(&format!("netns add {name}"))?;
        ip(&format!("link add {cable} type veth peer name inner netns {name}"))?;
        ip(&format!("addr add {here}/30 dev {cable}"))?;
        ip(&format!("link set {cable} up"))?;
        ip(&format!("-n {name} addr add {there}/30 dev inner"))?;
        ip(&format!("-n {name} link set inner up"))?;
        Ok(made)
    }

    /// Runs `work` on a thread inside; the sockets it opens stay there.
    fn run<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let inside = std::fs::File::open(format!("/run/netns/{}", self.name))?;
        std::thread::scope(|scope| {
            let inner = scope.spawn(|| {
                use std::os::fd::AsFd;
                move_into_link_name_space(inside.as_fd(), Some(LinkNameSpaceType::Network))?;
                work()
            });
            inner.join().map_err(|_| anyhow::anyhow!("the thread in the namespace panicked"))?
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = ip(&format!("link del {}", self.cable));
        let _ = ip(&format!("netns del {}", self.name));
    }
}

#[test]
fn a_broker_behind_a_cut_cable_goes_with_its_time_out() -> Result<()> {
    const TIME_OUT: Duration = Duration::from_millis(1_500);
    const SCAN: Duration = Duration::from_millis(300);
    let space = match Namespace::new() {
        Ok(space) => space,
        Err(error) => {
            println!("skipped: no network namespace can be made here: {error:#}");
            return Ok(());
        }
    };
    let names = Plan::new(&format!("bindAddress=0.0.0.0\nscanNotActiveBrokerInterval={}", SCAN.as_millis()))?;
    let started = Instant::now();
    let server = names.start()?;
    let outside = format!("{}:{}", space.here, names.port).parse()?;
    let mut broker = space.run(|| Wire::connect(outside))?;
    let topics = ["Cut".to_owned(), "Cut2".to_owned()];
    let addr = format!("{}:10911", space.there);
    let cut_off = registration("cut-off", &addr, &topics);
    ask_ok(&mut broker, &cut_off.with_field("heartbeatTimeoutMillis", TIME_OUT.as_millis().to_string()))?;
    // A broker that is silent for longer, but says so, is not touched.
    let mut patient = Wire::connect(server.address)?;
    ask_ok(&mut patient, &registration("patient", "127.0.0.1:10911", &topics))?;

    let heartbeat = Command::request(code::BROKER_HEARTBEAT)
        .with_field("brokerName", "cut-off")
        .with_field("brokerAddr", addr)
        .with_field("clusterName", "DefaultCluster");
    let mut wire = Wire::connect(server.address)?;
    // The first scan comes 5 s after the start; heartbeats keep the broker until then and beyond.
    let mut heard = Instant::now();
    rocketmq_tests::wait_until("scans have passed", LIMIT, || {
        if heard.elapsed() > TIME_OUT / 10 {
            let _ = ask_ok(&mut broker, &heartbeat);
            heard = Instant::now();
        }
        started.elapsed() > Duration::from_millis(5_500) + TIME_OUT
    });
    ensure!(has(&mut wire, "Cut", "cut-off")?, "heartbeats do not keep a broker");

    ask_ok(&mut broker, &heartbeat)?;
    let begin = Instant::now();
    ip(&format!("link set {} down", space.cable))?;
    let took = gone(&mut wire, "Cut", "cut-off", begin, LIMIT)?;
    println!("behind a cut cable: gone after {took:?}; time-out {TIME_OUT:?}, scan each {SCAN:?}");
    ensure!(took > TIME_OUT - Duration::from_millis(100), "gone after {took:?}, before its time-out");
    ensure!(took < TIME_OUT + SCAN + PATIENCE, "gone only after {took:?}");
    ensure!(has(&mut wire, "Cut", "patient")?, "the other broker went, too");
    let log = names.log()?;
    let line = log.lines().find(|line| line.contains("broker left") && line.contains("cut-off"));
    ensure!(line.is_some_and(|line| line.contains("reason=\"expired\"")), "{line:?}");
    Ok(())
}
