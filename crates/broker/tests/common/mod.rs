//! A broker in this process, and the requests a client would make of it.
#![allow(dead_code, unreachable_pub)] // each test file uses its share

use std::path::Path;
use std::time::{Duration, Instant};

use broker::{Broker, RunningBroker};
use bytes::Bytes;
use protocol::record::{RecordView, properties};
use protocol::{Command, request_code};
use remoting::{Client, ClientConfig};
use service::config::Live;
use service::keys::BrokerSettings;
use tempfile::TempDir;

/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct TestBroker {
    pub running: RunningBroker,
    pub client: Client,
    pub addr: String,
}

pub fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Starts a broker on `folder` with the settings a test changes.
pub async fn start(folder: &Path, edit: impl FnOnce(&mut BrokerSettings)) -> TestBroker {
    let mut settings = BrokerSettings::default();
    settings.identity.broker_name = "broker-a".into();
    settings.broker.broker_ip1 = "127.0.0.1".into();
    settings.broker.namesrv_addr = None;
    settings.netty.listen_port = 0;
    settings.netty.bind_address = "127.0.0.1".into();
    settings.store.store_path_root_dir = folder.display().to_string();
    settings.store.mapped_file_size_commit_log = 16 << 20;
    edit(&mut settings);
    let running = Broker::start(Live::new(settings)).await.unwrap();
    let addr = running.addr().to_string();
    TestBroker { running, client: Client::new(ClientConfig::default(), None), addr }
}

/// A message to send; the rest of the header is what a Java producer sends.
#[derive(Clone)]
pub struct Send<'a> {
    pub topic: &'a str,
    pub queue: i32,
    pub properties: Vec<(&'a str, &'a str)>,
    pub body: &'a [u8],
    pub reconsume_times: i32,
    pub max_reconsume_times: Option<i32>,
}

impl<'a> Send<'a> {
    pub fn new(topic: &'a str, body: &'a [u8]) -> Self {
        Self { topic, queue: 0, properties: Vec::new(), body, reconsume_times: 0, max_reconsume_times: None }
    }

    pub fn queue(self, queue: i32) -> Self {
        Self { queue, ..self }
    }

    pub fn with(mut self, key: &'a str, value: &'a str) -> Self {
        self.properties.push((key, value));
        self
    }

    pub fn command(&self) -> Command {
        let text = properties::from_pairs(self.properties.iter().copied());
        let mut command = Command::request(request_code::SEND_MESSAGE_V2)
            .with_field("a", "PG")
            .with_field("b", self.topic)
            .with_field("c", "TBW102")
            .with_field("d", "4")
            .with_field("e", self.queue.to_string())
            .with_field("f", "0")
            .with_field("g", "1700000000000")
            .with_field("h", "7")
            .with_field("i", String::from_utf8(text).unwrap())
            .with_field("j", self.reconsume_times.to_string())
            .with_field("k", "false")
            .with_field("m", "false")
            .with_body(self.body.to_vec());
        if let Some(most) = self.max_reconsume_times {
            command = command.with_field("l", most.to_string());
        }
        command
    }
}

/// A pull with the subscription in the request, as all clients send it.
#[derive(Clone)]
pub struct Pull<'a> {
    pub group: &'a str,
    pub topic: &'a str,
    pub queue: i32,
    pub offset: i64,
    pub subscription: &'a str,
    pub sys_flag: i32,
    pub suspend_ms: i64,
    pub commit_offset: i64,
}

impl<'a> Pull<'a> {
    pub fn new(topic: &'a str, queue: i32, offset: i64) -> Self {
        Self { group: "CG", topic, queue, offset, subscription: "*", sys_flag: 4, suspend_ms: 0, commit_offset: 0 }
    }

    pub fn subscription(self, subscription: &'a str) -> Self {
        Self { subscription, ..self }
    }

    pub fn suspend(self, suspend_ms: i64) -> Self {
        Self { sys_flag: self.sys_flag | 2, suspend_ms, ..self }
    }

    pub fn command(&self) -> Command {
        Command::request(request_code::PULL_MESSAGE)
            .with_field("consumerGroup", self.group)
            .with_field("topic", self.topic)
            .with_field("queueId", self.queue.to_string())
            .with_field("queueOffset", self.offset.to_string())
            .with_field("maxMsgNums", "32")
            .with_field("sysFlag", self.sys_flag.to_string())
            .with_field("commitOffset", self.commit_offset.to_string())
            .with_field("suspendTimeoutMillis", self.suspend_ms.to_string())
            .with_field("subscription", self.subscription)
            .with_field("subVersion", "0")
            .with_field("expressionType", "TAG")
    }
}

pub fn field(answer: &Command, key: &str) -> String {
    answer.fields.get(key).map(|value| value.into_owned()).unwrap_or_default()
}

pub fn number(answer: &Command, key: &str) -> i64 {
    field(answer, key).parse().unwrap_or(i64::MIN)
}

pub fn remark(answer: &Command) -> &str {
    answer.remark.as_deref().unwrap_or_default()
}

/// One received message, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub topic: String,
    pub queue: i32,
    pub queue_offset: i64,
    pub physical_offset: i64,
    pub flag: i32,
    pub reconsume_times: i32,
    pub store_timestamp: i64,
    pub body: String,
    pub properties: Vec<(String, String)>,
}

impl Message {
    pub fn property(&self, key: &str) -> Option<&str> {
        self.properties.iter().rfind(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }
}

pub fn messages(body: &Bytes) -> Vec<Message> {
    let mut rest = &body[..];
    let mut all = Vec::new();
    while !rest.is_empty() {
        let record = RecordView::parse(rest).unwrap();
        assert!(record.body_crc_matches());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        all.push(Message {
            topic: record.topic.to_owned(),
            queue: record.queue_id,
            queue_offset: record.queue_offset,
            physical_offset: record.physical_offset,
            flag: record.flag,
            reconsume_times: record.reconsume_times,
            store_timestamp: record.store_timestamp,
            body: text(record.body),
            properties: properties::iter(record.properties).map(|(k, v)| (text(k), text(v))).collect(),
        });
        rest = &rest[record.size()..];
    }
    all
}

impl TestBroker {
    pub async fn call(&self, command: Command) -> Command {
        self.client.request(&self.addr, command, PATIENCE).await.unwrap()
    }

    pub async fn send(&self, send: &Send<'_>) -> Command {
        self.call(send.command()).await
    }

    /// Sends and expects success; gives the queue offset.
    pub async fn sent(&self, send: &Send<'_>) -> i64 {
        let answer = self.send(send).await;
        assert_eq!(answer.code, 0, "{:?}", answer.remark);
        number(&answer, "queueOffset")
    }

    pub async fn pull(&self, pull: &Pull<'_>) -> Command {
        self.call(pull.command()).await
    }

    /// Pulls until `count` messages have come from the queue, holding on while there are none.
    pub async fn pull_all(&self, topic: &str, queue: i32, count: usize) -> Vec<Message> {
        let deadline = Instant::now() + PATIENCE;
        let (mut offset, mut all) = (0, Vec::new());
        while all.len() < count {
            assert!(Instant::now() < deadline, "{} of {count} messages came from {topic}/{queue}: {all:?}", all.len());
            let answer = self.pull(&Pull::new(topic, queue, offset).suspend(1_000)).await;
            match answer.code {
                0 => {
                    all.extend(messages(&answer.body));
                    offset = number(&answer, "nextBeginOffset");
                }
                19 | 20 => {}
                17 => tokio::time::sleep(Duration::from_millis(20)).await,
                other => panic!("pull of {topic}/{queue}: {other} {:?}", answer.remark),
            }
        }
        assert_eq!(all.len(), count);
        all
    }

    /// Stops in order.
    pub async fn stop(self) {
        self.client.close();
        self.running.shutdown().await;
    }
}
