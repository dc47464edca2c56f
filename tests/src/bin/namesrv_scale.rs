//! Loads a name server with topics over real sockets and measures it; ours and Java's in the same run.
//!
//! `namesrv_scale [--brokers 100] [--topics 10000] [--layout distinct|shared] [--server ours|java|both] [--seconds 10]
//! [--connections 4] [--port 24400]`
//!
//! `distinct`: every broker has topics of its own; `shared`: all brokers have the same topics. Ours is the release
//! binary (see `MQ_BIN_DIR`), Java's comes from `ROCKETMQ_PEER_LIB` with the heap its launcher gives it, or with
//! `NAMESRV_JVM`.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fastrand::Rng;
use protocol::{Command, request_code as code};
use rocketmq_tests::java_namesrv::JavaNamesrv;
use rocketmq_tests::process::Server;
use rocketmq_tests::wire::Wire;

#[derive(Clone)]
struct Options {
    brokers: usize,
    topics: usize,
    shared: bool,
    server: String,
    seconds: u64,
    connections: usize,
    port: u16,
}

fn options() -> Result<Options> {
    let mut options = Options {
        brokers: 100,
        topics: 10_000,
        shared: false,
        server: "both".to_owned(),
        seconds: 10,
        connections: 4,
        port: 24_400,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().context("a value is missing")?;
        match word.as_str() {
            "--brokers" => options.brokers = value.parse()?,
            "--topics" => options.topics = value.parse()?,
            "--layout" => options.shared = value == "shared",
            "--server" => options.server = value,
            "--seconds" => options.seconds = value.parse()?,
            "--connections" => options.connections = value.parse()?,
            "--port" => options.port = value.parse()?,
            other => bail!("unknown option {other}"),
        }
    }
    Ok(options)
}

fn main() -> Result<()> {
    let options = options()?;
    let layout = if options.shared { "shared" } else { "distinct" };
    println!("{} brokers x {} topics, {layout}", options.brokers, options.topics);
    if options.server != "java" {
        let home = tempfile::tempdir()?;
        let file = home.path().join("namesrv.conf");
        std::fs::write(&file, format!("listenPort={}\nlogLevel=warn\n", options.port))?;
        let address = SocketAddr::from(([127, 0, 0, 1], options.port));
        let file = file.display().to_string();
        let server = Server::start("mqnamesrv", &["-c", &file], address, home.path())?;
        measure("ours", &options, address, server.pid())?;
    }
    if options.server != "ours" {
        let home = tempfile::tempdir()?;
        // What bin/runserver.sh of the Java distribution passes.
        let jvm = std::env::var("NAMESRV_JVM").unwrap_or_else(|_| "-server -Xms4g -Xmx4g -Xmn2g".to_owned());
        let jvm: Vec<&str> = jvm.split_whitespace().collect();
        let server = JavaNamesrv::start(options.port + 1, "", home.path(), &jvm)?;
        measure("java", &options, server.address, server.pid())?;
    }
    Ok(())
}

fn measure(name: &str, options: &Options, address: SocketAddr, pid: u32) -> Result<()> {
    let say = |what: &str, value: String| println!("{name:5} {what:58} {value}");
    say("resident memory when idle", mib(resident(pid)?));
    let mut brokers: Vec<Wire> = (0..options.brokers).map(|_| Wire::connect(address)).collect::<Result<_>>()?;

    let cpu = cpu_seconds(pid)?;
    let new = register_all(&mut brokers, options, 1)?;
    say("registration of a new broker: median, largest", new.text());
    say("CPU per row registered", format!("{:.2} us", (cpu_seconds(pid)? - cpu) * 1e6 / options.rows()));
    say("resident memory after all", mib(resident(pid)?));
    say("... after the same again", {
        let same = register_all(&mut brokers, options, 1)?;
        let memory = mib(resident(pid)?);
        say("registration of an unchanged broker: median, largest", same.text());
        memory
    });
    let one = register_all(&mut brokers, options, 2)?;
    say("registration with one row changed: median, largest", one.text());

    for (in_flight, label) in [(1, "1 in flight"), (16, "16 in flight")] {
        let cpu = cpu_seconds(pid)?;
        let quiet = query(address, options, in_flight, None)?;
        let cpu = (cpu_seconds(pid)? - cpu) * 1e6 / quiet.count as f64;
        say(&format!("route queries, {label} on each of {}", options.connections), quiet.rate(options.seconds));
        say("... CPU per query", format!("{cpu:.2} us"));
    }
    let registrations = AtomicU64::new(0);
    let busy = query(address, options, 1, Some((&mut brokers, &registrations)))?;
    let registered = registrations.load(Ordering::Relaxed);
    say("route queries while brokers register", busy.rate(options.seconds));
    say("... registrations meanwhile", registered.to_string());
    say("resident memory after the queries", mib(resident(pid)?));

    let gone = kill_one(&mut brokers, options, address)?;
    say("a closed connection's broker gone from the route after", format!("{:.1} ms", gone.as_secs_f64() * 1e3));
    Ok(())
}

impl Options {
    fn rows(&self) -> f64 {
        (self.brokers * self.topics) as f64
    }

    fn topic(&self, broker: usize, at: usize) -> String {
        if self.shared { format!("shared-topic-{at:07}") } else { format!("topic-{broker:04}-{at:07}") }
    }
}

/// A registration of one broker. `version` 2 and later change one row.
fn registration(options: &Options, broker: usize, version: u32) -> Command {
    let mut topics = String::new();
    for at in 0..options.topics {
        let name = options.topic(broker, at);
        let queues = if at == 0 { 8 + version % 8 } else { 8 };
        if at > 0 {
            topics.push(',');
        }
        topics.push_str(&format!(
            r#""{name}":{{"attributes":{{}},"order":false,"perm":6,"readQueueNums":{queues},"topicFilterType":"SINGLE_TAG","topicName":"{name}","topicSysFlag":0,"writeQueueNums":{queues}}}"#
        ));
    }
    let body = format!(
        r#"{{"filterServerList":[],"topicConfigSerializeWrapper":{{"dataVersion":{{"counter":{version},"stateVersion":0,"timestamp":1700000000000}},"mappingDataVersion":{{"counter":0,"stateVersion":0,"timestamp":1700000000000}},"topicConfigTable":{{{topics}}},"topicQueueMappingDetailMap":{{}},"topicQueueMappingInfoMap":{{}}}}}}"#
    );
    Command::request(code::REGISTER_BROKER)
        .with_field("brokerName", format!("broker-{broker:04}"))
        .with_field("brokerAddr", format!("10.0.{}.{}:10911", broker / 250, broker % 250))
        .with_field("clusterName", "DefaultCluster")
        .with_field("haServerAddr", format!("10.0.{}.{}:10912", broker / 250, broker % 250))
        .with_field("brokerId", "0")
        .with_field("compressed", "false")
        .with_field("bodyCrc32", ((crc32fast::hash(body.as_bytes()) & 0x7FFF_FFFF) as i32).to_string())
        .with_body(body.into_bytes())
}

fn register_all(brokers: &mut [Wire], options: &Options, version: u32) -> Result<Times> {
    let mut times = Times::default();
    for (at, wire) in brokers.iter_mut().enumerate() {
        let request = registration(options, at, version);
        let begin = Instant::now();
        let answer = wire.ask(&request)?;
        times.add(begin.elapsed());
        if answer.code != 0 {
            bail!("broker {at} was refused: {:?}", answer.remark);
        }
    }
    Ok(times)
}

#[derive(Default)]
struct Times {
    micros: Vec<u64>,
    count: usize,
}

impl Times {
    fn add(&mut self, took: Duration) {
        self.micros.push(took.as_micros() as u64);
        self.count += 1;
    }

    fn quantile(&mut self, part: f64) -> f64 {
        self.micros.sort_unstable();
        let at = ((self.micros.len() as f64 * part) as usize).min(self.micros.len().saturating_sub(1));
        self.micros.get(at).copied().unwrap_or(0) as f64 / 1e3
    }

    fn text(mut self) -> String {
        format!("{:.1} ms, {:.1} ms", self.quantile(0.5), self.quantile(1.0))
    }

    fn rate(mut self, seconds: u64) -> String {
        format!(
            "{} /s, p50 {:.2} ms, p99.9 {:.2} ms, max {:.1} ms",
            self.count as u64 / seconds,
            self.quantile(0.5),
            self.quantile(0.999),
            self.quantile(1.0)
        )
    }
}

type Latencies = Times;

/// Queries for `seconds` over all connections; meanwhile, if given, brokers register with one row changed, each in its
/// turn, without a pause.
fn query(
    address: SocketAddr,
    options: &Options,
    in_flight: usize,
    registering: Option<(&mut [Wire], &AtomicU64)>,
) -> Result<Latencies> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let askers: Vec<_> = (0..options.connections)
            .map(|at| {
                let stop = &stop;
                scope.spawn(move || ask_routes(address, options, in_flight, at as u64, stop))
            })
            .collect();
        let begin = Instant::now();
        let limit = Duration::from_secs(options.seconds);
        match registering {
            None => std::thread::sleep(limit),
            // A thread of its own that steps back behind the askers: brokers write their registrations on other machines.
            Some((brokers, count)) => {
                let registrar = scope.spawn(move || {
                    let _ = rustix::process::nice(10);
                    register_until(brokers, options, count, begin + limit)
                });
                registrar.join().map_err(|_| anyhow::anyhow!("the registrar failed"))??;
            }
        }
        stop.store(true, Ordering::Relaxed);
        let mut all = Latencies::default();
        for asker in askers {
            let of_one = asker.join().map_err(|_| anyhow::anyhow!("an asker failed"))??;
            all.count += of_one.count;
            all.micros.extend(of_one.micros);
        }
        Ok(all)
    })
}

fn register_until(brokers: &mut [Wire], options: &Options, count: &AtomicU64, end: Instant) -> Result<()> {
    let mut version = 3;
    while Instant::now() < end {
        let at = count.fetch_add(1, Ordering::Relaxed) as usize % brokers.len();
        if at == 0 {
            version += 1;
        }
        brokers[at].ask(&registration(options, at, version))?;
    }
    Ok(())
}

fn ask_routes(
    address: SocketAddr,
    options: &Options,
    in_flight: usize,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Latencies> {
    let mut wire = Wire::connect(address)?;
    let mut random = Rng::with_seed(seed);
    let mut latencies = Latencies::default();
    let mut sent = std::collections::HashMap::new();
    while !stop.load(Ordering::Relaxed) {
        let mut batch = Vec::with_capacity(in_flight);
        for _ in 0..in_flight {
            // Clients ask for what they use: a hot set of 1,000 topics, and now and then for any.
            let hot = random.u8(0..10) > 0;
            let topics = if hot { options.topics.min(1_000 / options.brokers.min(10)) } else { options.topics };
            let broker = random.usize(0..if hot { options.brokers.min(10) } else { options.brokers });
            let topic = options.topic(broker, random.usize(0..topics));
            batch.push(Command::request(code::GET_ROUTEINFO_BY_TOPIC).with_field("topic", topic));
        }
        let begin = Instant::now();
        for opaque in wire.send_all(&batch)? {
            sent.insert(opaque, begin);
        }
        while !sent.is_empty() {
            let answer = wire.read()?;
            if let Some(begin) = sent.remove(&answer.opaque) {
                latencies.add(begin.elapsed());
            }
            if answer.code != 0 {
                bail!("no route: {:?}", answer.remark);
            }
        }
    }
    Ok(latencies)
}

/// Closes the last broker's connection and waits until its topics' routes do not show it.
fn kill_one(brokers: &mut Vec<Wire>, options: &Options, address: SocketAddr) -> Result<Duration> {
    let last = brokers.len() - 1;
    let mut wire = Wire::connect(address)?;
    let request =
        Command::request(code::GET_ROUTEINFO_BY_TOPIC).with_field("topic", options.topic(last, options.topics - 1));
    let name = format!("\"broker-{last:04}\"");
    brokers.pop();
    let begin = Instant::now();
    loop {
        let answer = wire.ask(&request)?;
        if !String::from_utf8_lossy(&answer.body).contains(&name) {
            return Ok(begin.elapsed());
        }
        if begin.elapsed() > Duration::from_secs(60) {
            bail!("the broker is still there");
        }
    }
}

fn resident(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS")).context("no VmRSS")?;
    let kib: u64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
    Ok(kib * 1024)
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1048576.0)
}

/// CPU time of all threads of a process, user and system.
fn cpu_seconds(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = stat.rsplit(')').next().context("no stat")?;
    let words: Vec<&str> = after_name.split_whitespace().collect();
    let ticks: u64 =
        words.get(11).context("no utime")?.parse::<u64>()? + words.get(12).context("no stime")?.parse::<u64>()?;
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}
