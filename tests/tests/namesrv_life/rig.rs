//! A name server with a configuration of its own, and what brokers and clients say to it.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use protocol::{Command, request_code as code, response_code};
use rocketmq_tests::process::{Server, free_port};
use rocketmq_tests::wire::Wire;
use tempfile::TempDir;

pub(crate) const LIMIT: Duration = Duration::from_secs(20);
pub(crate) const MIB: u64 = 1024 * 1024;

/// What a name server is started with; port and folder stay the same over restarts.
pub(crate) struct Plan {
    pub(crate) home: TempDir,
    pub(crate) port: u16,
    extra: String,
}

impl Plan {
    /// `extra`: lines of the configuration file.
    pub(crate) fn new(extra: &str) -> Result<Self> {
        let plan = Self { home: tempfile::tempdir()?, port: free_port(0)?, extra: extra.to_owned() };
        fs::write(plan.file(), plan.text())?;
        Ok(plan)
    }

    /// What the file holds before anybody changes it from remote.
    pub(crate) fn text(&self) -> String {
        let begin = if self.extra.contains("bindAddress") { "" } else { "bindAddress=127.0.0.1\n" };
        format!("listenPort={}\n{begin}{}\n", self.port, self.extra)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.home.path().join("namesrv.properties")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    pub(crate) fn start(&self) -> Result<Server> {
        let file = self.file().display().to_string();
        Server::start("mqnamesrv", &["-c", &file], self.address(), self.home.path())
    }

    /// What the running server has logged.
    pub(crate) fn log(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(self.home.path().join("mqnamesrv.stderr"))?).into_owned())
    }
}

/// A registration as a Java broker sends it, with `topics` and nothing else.
pub(crate) fn registration(broker: &str, addr: &str, topics: &[String]) -> Command {
    let rows: Vec<String> = topics
        .iter()
        .map(|topic| format!(r#""{topic}":{{"perm":6,"readQueueNums":4,"topicName":"{topic}","writeQueueNums":4}}"#))
        .collect();
    let body = format!(
        r#"{{"filterServerList":[],"topicConfigSerializeWrapper":{{"dataVersion":{{"counter":1,"stateVersion":0,"timestamp":1}},"topicConfigTable":{{{}}}}}}}"#,
        rows.join(",")
    );
    Command::request(code::REGISTER_BROKER)
        .with_field("brokerName", broker.to_owned())
        .with_field("brokerAddr", addr.to_owned())
        .with_field("clusterName", "DefaultCluster")
        .with_field("haServerAddr", addr.to_owned())
        .with_field("brokerId", "0")
        .with_body(body.into_bytes())
}

pub(crate) fn route(topic: &str) -> Command {
    Command::request(code::GET_ROUTEINFO_BY_TOPIC).with_field("topic", topic.to_owned())
}

/// Whether the route of `topic` names `broker`.
pub(crate) fn has(wire: &mut Wire, topic: &str, broker: &str) -> Result<bool> {
    let answer = wire.ask(&route(topic))?;
    ensure!(
        matches!(answer.code, response_code::SUCCESS | response_code::TOPIC_NOT_EXIST),
        "{} {:?}",
        answer.code,
        answer.remark
    );
    Ok(String::from_utf8_lossy(&answer.body).contains(&format!("\"{broker}\"")))
}

/// Asks until the route of `topic` no longer names `broker`; how long that took, counted from `since`.
pub(crate) fn gone(wire: &mut Wire, topic: &str, broker: &str, since: Instant, limit: Duration) -> Result<Duration> {
    while has(wire, topic, broker)? {
        ensure!(since.elapsed() < limit, "{broker} is still in the route after {limit:?}");
        std::thread::yield_now();
    }
    Ok(since.elapsed())
}

pub(crate) fn ask_ok(wire: &mut Wire, request: &Command) -> Result<Command> {
    let answer = wire.ask(request)?;
    ensure!(answer.code == response_code::SUCCESS, "{}: {} {:?}", request.code, answer.code, answer.remark);
    Ok(answer)
}

/// Value of a metric without labels, or with exactly these.
pub(crate) fn metric(page: &str, name: &str) -> Result<f64> {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(line.with_context(|| format!("no {name} in\n{page}"))?.trim().parse()?)
}
