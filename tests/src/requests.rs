//! Raw requests for topics, sends and pulls, and what comes back.

use crate::wire::Wire;
use anyhow::{Result, ensure};
use bytes::BytesMut;
use protocol::record::{BatchItem, RecordView, encode_batch_item};
use protocol::{Command, request_code};

/// A send as a forger puts it together.
#[derive(Clone, Copy, Debug)]
pub struct Send<'a> {
    pub topic: &'a str,
    pub queue: i32,
    pub sys_flag: i32,
    pub properties: &'a str,
    pub batch: bool,
    pub body: &'a [u8],
}

impl<'a> Send<'a> {
    pub fn new(topic: &'a str, properties: &'a str, body: &'a [u8]) -> Self {
        Self { topic, queue: 0, sys_flag: 0, properties, batch: false, body }
    }

    /// The body is a batch.
    pub fn batch(topic: &'a str, properties: &'a str, body: &'a [u8]) -> Self {
        Self { batch: true, ..Self::new(topic, properties, body) }
    }

    pub fn command(&self) -> Command {
        Command::request(request_code::SEND_MESSAGE_V2)
            .with_field("a", "P")
            .with_field("b", self.topic)
            .with_field("c", "TBW102")
            .with_field("d", "4")
            .with_field("e", self.queue.to_string())
            .with_field("f", self.sys_flag.to_string())
            .with_field("g", "0")
            .with_field("h", "0")
            .with_field("i", self.properties)
            .with_field("m", self.batch.to_string())
            .with_body(self.body.to_vec())
    }

    /// The answer's code, and its remark.
    pub fn ask(&self, wire: &mut Wire) -> Result<(i32, String)> {
        let answer = wire.ask(&self.command())?;
        Ok((answer.code, answer.remark.as_deref().unwrap_or_default().to_owned()))
    }

    /// Must be taken; returns the queue offset.
    pub fn sent(&self, wire: &mut Wire) -> Result<i64> {
        let answer = wire.ask(&self.command())?;
        ensure!(answer.code == 0, "a send to {} is refused: {} {:?}", self.topic, answer.code, answer.remark);
        Ok(number(&answer, "queueOffset"))
    }
}

pub fn number(answer: &Command, key: &str) -> i64 {
    answer.fields.get(key).and_then(|text| text.parse().ok()).unwrap_or(i64::MIN)
}

/// A batch body of items given as body and properties, which must fit into one.
pub fn batch_body<'a>(items: impl IntoIterator<Item = (&'a [u8], &'a str)>) -> Result<Vec<u8>> {
    let mut body = BytesMut::new();
    for (item, properties) in items {
        let item = BatchItem { flag: 0, body: item, properties: properties.as_bytes() };
        encode_batch_item(&mut body, &item)?;
    }
    Ok(body.to_vec())
}

/// Makes a topic with one queue.
pub fn make_topic(wire: &mut Wire, topic: &str, attributes: &str) -> Result<(i32, String)> {
    let create = Command::request(request_code::UPDATE_AND_CREATE_TOPIC)
        .with_field("topic", topic)
        .with_field("defaultTopic", "TBW102")
        .with_field("readQueueNums", "1")
        .with_field("writeQueueNums", "1")
        .with_field("perm", "6")
        .with_field("topicFilterType", "SINGLE_TAG")
        .with_field("topicSysFlag", "0")
        .with_field("order", "false")
        .with_field("attributes", attributes);
    let answer = wire.ask(&create)?;
    Ok((answer.code, answer.remark.as_deref().unwrap_or_default().to_owned()))
}

pub fn delete_topic(wire: &mut Wire, topic: &str) -> Result<i32> {
    Ok(wire.ask(&Command::request(request_code::DELETE_TOPIC_IN_BROKER).with_field("topic", topic))?.code)
}

#[derive(Debug)]
pub struct Pulled {
    pub code: i32,
    pub next: i64,
    /// Queue offset and body of each record.
    pub records: Vec<(i64, Vec<u8>)>,
}

pub fn pull(wire: &mut Wire, topic: &str, queue: i32, offset: i64) -> Result<Pulled> {
    pull_tag(wire, topic, queue, offset, "*")
}

/// Only messages with a tag; the answer may be that there is none, and where to go on.
pub fn pull_tag(wire: &mut Wire, topic: &str, queue: i32, offset: i64, tag: &str) -> Result<Pulled> {
    let pull = Command::request(request_code::PULL_MESSAGE)
        .with_field("consumerGroup", "R")
        .with_field("topic", topic)
        .with_field("queueId", queue.to_string())
        .with_field("queueOffset", offset.to_string())
        .with_field("maxMsgNums", "32")
        .with_field("sysFlag", "4")
        .with_field("commitOffset", "0")
        .with_field("suspendTimeoutMillis", "0")
        .with_field("subscription", tag)
        .with_field("subVersion", "0");
    let answer = wire.ask(&pull)?;
    let mut records = Vec::new();
    let mut rest = &answer.body[..];
    while !rest.is_empty() {
        let record = RecordView::parse(rest)?;
        records.push((record.queue_offset, record.body.to_vec()));
        rest = &rest[record.size()..];
    }
    Ok(Pulled { code: answer.code, next: number(&answer, "nextBeginOffset"), records })
}

/// All records of a queue from its first offset on. Each pull must get on.
pub fn drain(wire: &mut Wire, topic: &str, queue: i32) -> Result<Vec<(i64, Vec<u8>)>> {
    drain_tag(wire, topic, queue, "*")
}

pub fn drain_tag(wire: &mut Wire, topic: &str, queue: i32, tag: &str) -> Result<Vec<(i64, Vec<u8>)>> {
    let (mut offset, end) = ends(wire, topic, queue)?;
    let mut all = Vec::new();
    while offset < end {
        let mut pulled = pull_tag(wire, topic, queue, offset, tag)?;
        ensure!(pulled.next > offset, "{topic}: a pull at {offset} of {end} gives code {} and stays", pulled.code);
        offset = pulled.next;
        all.append(&mut pulled.records);
    }
    Ok(all)
}

/// First and last offset of a queue.
pub fn ends(wire: &mut Wire, topic: &str, queue: i32) -> Result<(i64, i64)> {
    let mut ask = |code| {
        let request = Command::request(code).with_field("topic", topic).with_field("queueId", queue.to_string());
        anyhow::Ok(number(&wire.ask(&request)?, "offset"))
    };
    Ok((ask(request_code::GET_MIN_OFFSET)?, ask(request_code::GET_MAX_OFFSET)?))
}
