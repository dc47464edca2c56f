//! Heartbeats, membership, locks and offsets, as clients of several languages send them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed step fails its test

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{PATIENCE, TestBroker, field, folder, number, remark, start};
use parking_lot::Mutex;
use protocol::{Command, json, request_code as code};
use remoting::{Client, ClientConfig, Connection, Reply, ServerRequestHandler};
use serde_json::{Value, json as value};

/// A client that keeps what the broker asks it, and answers with `{"pong":1}`.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<(i32, String)>>>);

impl ServerRequestHandler for Heard {
    fn call(&self, _: &Connection, request: Command, reply: Reply) {
        let group = request.fields.get("consumerGroup").map(|group| group.into_owned()).unwrap_or_default();
        self.0.lock().push((request.code, group));
        reply.send(Command::response(0).with_body(br#"{"pong":1}"#.to_vec()));
    }
}

impl Heard {
    fn count(&self, code: i32) -> usize {
        self.0.lock().iter().filter(|(heard, _)| *heard == code).count()
    }
}

struct Consumer {
    client: Client,
    heard: Heard,
    id: &'static str,
}

fn consumer(id: &'static str) -> Consumer {
    let heard = Heard::default();
    Consumer { client: Client::new(ClientConfig::default(), Some(Arc::new(heard.clone()))), heard, id }
}

impl Consumer {
    async fn call(&self, broker: &TestBroker, request: Command) -> Command {
        self.client.request(&broker.addr, request, PATIENCE).await.unwrap()
    }

    async fn beat(&self, broker: &TestBroker, group: &str) -> Command {
        let body = value!({"clientID": self.id, "producerDataSet": [], "heartbeatFingerprint": 0, "consumerDataSet": [{
            "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "consumeType": "CONSUME_PASSIVELY", "groupName": group,
            "messageModel": "CLUSTERING", "subscriptionDataSet": [
                {"classFilterMode": false, "codeSet": [], "expressionType": "TAG", "subString": "*", "subVersion": 1, "tagsSet": [], "topic": "T"}],
            "unitMode": false}]});
        self.call(broker, Command::request(code::HEART_BEAT).with_body(body.to_string().into_bytes())).await
    }
}

async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn members(broker: &TestBroker, group: &str) -> Vec<String> {
    let answer =
        broker.call(Command::request(code::GET_CONSUMER_LIST_BY_GROUP).with_field("consumerGroup", group)).await;
    if answer.code != 0 {
        assert_eq!(remark(&answer), format!("no consumer for this group, {group}"));
        return Vec::new();
    }
    let body: Value = json::from_slice(&answer.body).unwrap();
    let mut ids: Vec<String> = serde_json::from_value(body["consumerIdList"].clone()).unwrap();
    ids.sort();
    ids
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_come_and_go_and_the_others_hear_of_it() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    let (a, b) = (consumer("a"), consumer("b"));
    let answer = a.beat(&broker, "g").await;
    assert_eq!(
        (answer.code, field(&answer, "IS_SUPPORT_HEART_BEAT_V2"), field(&answer, "IS_SUB_CHANGE")),
        (0, "true".into(), "true".into())
    );
    let topics = broker.call(Command::request(code::GET_TOPIC_CONFIG).with_field("topic", "%RETRY%g")).await;
    assert_eq!(topics.code, 0, "the retry topic exists as soon as the group does");
    eventually("a hears of itself", async || a.heard.count(40) == 1).await;
    b.beat(&broker, "g").await;
    assert_eq!(members(&broker, "g").await, ["a", "b"]);
    eventually("both hear of b", async || a.heard.count(40) == 2 && b.heard.count(40) == 1).await;
    a.beat(&broker, "g").await;

    // Go's client never says good-bye: the end of its connection must do.
    b.client.close();
    eventually("a hears that b is gone", async || a.heard.count(40) == 3).await;
    assert_eq!(members(&broker, "g").await, ["a"]);

    let bye = Command::request(code::UNREGISTER_CLIENT)
        .with_field("clientID", "a")
        .with_field("producerGroup", "")
        .with_field("consumerGroup", "g");
    assert_eq!(a.call(&broker, bye).await.code, 0);
    assert!(members(&broker, "g").await.is_empty());
    assert_eq!(a.heard.0.lock().iter().filter(|(_, group)| group == "g").count(), 3, "nothing but what was expected");
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_of_other_languages_count() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    // C++: numbers for enums, codes that mean nothing, versions in quotes, one of the two sets, a line feed at the end.
    let cpp = concat!(
        r#"{"clientID":"1-10.0.0.1@DEFAULT","consumerDataSet":[{"consumeFromWhere":0,"consumeType":1,"groupName":"cg","#,
        r#""messageModel":1,"subscriptionDataSet":[{"codeSet":[0,0],"subString":"t1 || t2","subVersion":"1700000000000","#,
        r#""tagsSet":["t1","t2"],"topic":"T"}]}]}"#,
        "\n"
    );
    assert_eq!(broker.call(Command::request(code::HEART_BEAT).with_body(cpp.as_bytes().to_vec())).await.code, 0);
    assert_eq!(members(&broker, "cg").await, ["1-10.0.0.1@DEFAULT"]);
    let shown =
        broker.call(Command::request(code::GET_CONSUMER_CONNECTION_LIST).with_field("consumerGroup", "cg")).await;
    let shown: Value = json::from_slice(&shown.body).unwrap();
    assert_eq!(shown["consumeType"], "CONSUME_PASSIVELY");
    assert_eq!(shown["messageModel"], "CLUSTERING");
    assert_eq!(shown["subscriptionTable"]["T"]["subString"], "t1 || t2");
    assert_eq!(shown["connectionSet"][0]["language"], "RUST", "the header says who it is");

    let go = r#"{"clientID":"10.0.0.1@2","producerDataSet":[{"groupName":"pg"}]}"#;
    assert_eq!(broker.call(Command::request(code::HEART_BEAT).with_body(go.as_bytes().to_vec())).await.code, 0);
    let shown =
        broker.call(Command::request(code::GET_PRODUCER_CONNECTION_LIST).with_field("producerGroup", "pg")).await;
    let shown: Value = json::from_slice(&shown.body).unwrap();
    assert_eq!(shown["connectionSet"][0]["clientId"], "10.0.0.1@2");

    let broken = broker.call(Command::request(code::HEART_BEAT).with_body(b"{\"clientID\":".to_vec())).await;
    assert_eq!(broken.code, 1);
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_reach_consumers_through_the_broker() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    let a = consumer("a");
    a.beat(&broker, "g").await;
    let ask = |id: &str| {
        Command::request(code::GET_CONSUMER_RUNNING_INFO).with_field("consumerGroup", "g").with_field("clientId", id)
    };
    let answer = broker.call(ask("a")).await;
    assert_eq!((answer.code, &answer.body[..]), (0, &br#"{"pong":1}"#[..]));
    assert_eq!(a.heard.count(307), 1);
    let answer = broker.call(ask("nobody")).await;
    assert_eq!((answer.code, remark(&answer)), (1, "The Consumer <g> <nobody> not online"));
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_clients_are_dropped_and_disconnected() {
    let folder = folder();
    let broker = start(folder.path(), |settings| settings.broker.channel_expired_timeout = 1).await;
    let a = consumer("a");
    a.beat(&broker, "g").await;
    let closed = async || a.client.existing(&broker.addr).is_none_or(|conn| !conn.is_open());
    eventually("the silent client is disconnected", closed).await;
    assert!(members(&broker, "g").await.is_empty());
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ordered_consumers_share_queues_by_locks() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    let ask = |code: i32, client: &str, queues: &[i32]| {
        let queues: Vec<Value> =
            queues.iter().map(|id| value!({"topic": "T", "brokerName": "broker-a", "queueId": id})).collect();
        let body = value!({"consumerGroup": "g", "clientId": client, "mqSet": queues});
        Command::request(code).with_body(body.to_string().into_bytes())
    };
    let held = async |client: &str, queues: &[i32]| -> Vec<i64> {
        let answer = broker.call(ask(code::LOCK_BATCH_MQ, client, queues)).await;
        let body: Value = json::from_slice(&answer.body).unwrap();
        body["lockOKMQSet"].as_array().unwrap().iter().map(|queue| queue["queueId"].as_i64().unwrap()).collect()
    };
    assert_eq!(held("a", &[0, 1]).await, [0, 1]);
    assert_eq!(held("b", &[1, 2]).await, [2]);
    assert_eq!(broker.call(ask(code::UNLOCK_BATCH_MQ, "a", &[1])).await.code, 0);
    assert_eq!(held("b", &[1, 2]).await, [1, 2]);
    broker.stop().await;
}

fn commit(topic: &str, queue: i32, offset: i64) -> Command {
    Command::request(code::UPDATE_CONSUMER_OFFSET)
        .with_field("consumerGroup", "g")
        .with_field("topic", topic)
        .with_field("queueId", queue.to_string())
        .with_field("commitOffset", offset.to_string())
}

fn query(topic: &str, queue: i32) -> Command {
    Command::request(code::QUERY_CONSUMER_OFFSET)
        .with_field("consumerGroup", "g")
        .with_field("topic", topic)
        .with_field("queueId", queue.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offsets_are_kept_for_known_groups_and_topics() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    let refused = broker.call(commit("BenchmarkTest", 0, 5)).await;
    assert_eq!((refused.code, remark(&refused)), (26, "Group g not exist!"));
    consumer("a").beat(&broker, "g").await;
    let refused = broker.call(commit("nowhere", 0, 5)).await;
    assert_eq!((refused.code, remark(&refused)), (17, "Topic nowhere not exist!"));
    assert_eq!(
        broker.call(query("BenchmarkTest", 0)).await.code,
        22,
        "an empty queue: the client decides where to begin"
    );

    for queue in 0..3 {
        broker.sent(&common::Send::new("T", b"x").queue(queue)).await;
    }
    assert_eq!(number(&broker.call(query("T", 0)).await, "offset"), 0, "all of the queue is there: begin with it");
    let strict = query("T", 0).with_field("setZeroIfNotFound", "false");
    assert_eq!(broker.call(strict).await.code, 22);
    assert_eq!(broker.call(commit("T", 1, 1)).await.code, 0);
    assert_eq!(number(&broker.call(query("T", 1)).await, "offset"), 1);
    broker.stop().await;

    let broker = start(folder.path(), |_| {}).await;
    assert_eq!(number(&broker.call(query("T", 1)).await, "offset"), 1, "after a restart");
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operators_reset_beats_late_commits() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    consumer("a").beat(&broker, "g").await;
    for _ in 0..5 {
        broker.sent(&common::Send::new("T", b"x")).await;
    }
    broker.call(commit("T", 0, 5)).await;
    let reset = Command::request(code::INVOKE_BROKER_TO_RESET_OFFSET)
        .with_field("topic", "T")
        .with_field("group", "g")
        .with_field("queueId", "0")
        .with_field("offset", "2")
        .with_field("timestamp", "0")
        .with_field("isForce", "true");
    let answer = broker.call(reset).await;
    assert_eq!(answer.code, 0);
    assert_eq!(&answer.body[..], &br#"{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:2}}"#[..]);
    assert_eq!(remark(&broker.call(commit("T", 0, 5)).await), "Offset has been previously reset");
    assert_eq!(number(&broker.call(query("T", 0)).await, "offset"), 2);
    let pulled = broker.pull(&common::Pull { group: "g", ..common::Pull::new("T", 0, 5) }).await;
    assert_eq!(number(&pulled, "nextBeginOffset"), 2, "the next pull takes it up");
    assert_eq!(broker.call(commit("T", 0, 4)).await.remark, None);
    assert_eq!(number(&broker.call(query("T", 0)).await, "offset"), 4);

    let stats = broker.call(Command::request(code::GET_CONSUME_STATS).with_field("consumerGroup", "g")).await;
    let stats = json::parse(&stats.body).unwrap();
    let queue = stats["offsetTable"].as_object().unwrap().iter().find(|(queue, _)| queue.contains("\"queueId\":0"));
    let (_, queue) = queue.unwrap_or_else(|| panic!("{stats}"));
    assert_eq!((&queue["brokerOffset"], &queue["consumerOffset"]), (&value!(5), &value!(4)));
    broker.stop().await;
}
