//! Batches to topics with `queue.type=BatchCQ` over real sockets. Expected codes and properties are those of RocketMQ 5.4.0.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed step fails its test

mod common;

use common::{Pull, Send, field, folder, number, remark, start};
use protocol::record::{BatchItem, RecordView, encode_batch_item, properties, sys_flag};
use protocol::{Command, request_code};

fn create(topic: &str) -> Command {
    Command::request(request_code::UPDATE_AND_CREATE_TOPIC)
        .with_field("topic", topic)
        .with_field("defaultTopic", "TBW102")
        .with_field("readQueueNums", "1")
        .with_field("writeQueueNums", "1")
        .with_field("perm", "6")
        .with_field("topicFilterType", "SINGLE_TAG")
        .with_field("topicSysFlag", "0")
        .with_field("order", "false")
        .with_field("attributes", "+queue.type=BatchCQ")
}

fn items(texts: &[String]) -> Vec<u8> {
    let mut body = Vec::new();
    for text in texts {
        let item = BatchItem { flag: 0, body: text.as_bytes(), properties: b"TAGS\x01a\x02" };
        encode_batch_item(&mut body, &item).unwrap();
    }
    body
}

fn batch(topic: &str, pairs: &[(&str, &str)], body: &[u8]) -> Command {
    let mut send = Send::new(topic, body);
    send.properties = pairs.to_vec();
    let mut command = send.command();
    command.code = request_code::SEND_BATCH_MESSAGE;
    command.fields.set("m", "true");
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_with_a_key_stays_one_record() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    assert_eq!(broker.call(create("B")).await.code, 0);
    let body = items(&(0..5).map(|i| format!("m{i}")).collect::<Vec<_>>());
    for base in [0, 5] {
        let answer = broker.call(batch("B", &[("UNIQ_KEY", "U"), ("CLUSTER", "mine")], &body)).await;
        assert_eq!((answer.code, number(&answer, "queueOffset")), (0, base));
        assert_eq!((field(&answer, "batchUniqId"), field(&answer, "transactionId")), ("U".into(), "U".into()));
        assert_eq!(field(&answer, "msgId").len(), 32, "one id for all");
    }
    let answer = broker.pull(&Pull::new("B", 0, 7)).await;
    assert_eq!((answer.code, number(&answer, "nextBeginOffset"), number(&answer, "maxOffset")), (0, 10, 10));
    let record = RecordView::parse(&answer.body).unwrap();
    assert_eq!(record.size(), answer.body.len());
    assert_eq!((record.queue_offset, record.body), (5, &body[..]));
    assert_eq!(record.sys_flag, sys_flag::NEED_UNWRAP | sys_flag::INNER_BATCH);
    let mut pairs: Vec<_> = properties::iter(record.properties).collect();
    pairs.sort_unstable();
    let wanted = [
        ("CLUSTER", "DefaultCluster"),
        ("INNER_BASE", "5"),
        ("INNER_NUM", "5"),
        ("MSG_REGION", "DefaultRegion"),
        ("TRACE_ON", "true"),
        ("UNIQ_KEY", "U"),
    ];
    assert_eq!(pairs, wanted.map(|(key, value)| (key.as_bytes(), value.as_bytes())));
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_key_its_messages_are_records_of_their_own() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    assert_eq!(broker.call(create("B")).await.code, 0);
    let answer = broker.call(batch("B", &[], &items(&["x".into(), "y".into()]))).await;
    assert_eq!((answer.code, answer.fields.get("batchUniqId")), (0, None));
    assert_eq!(field(&answer, "msgId").split(',').count(), 2);
    assert_eq!(broker.sent(&Send::new("B", b"z")).await, 2);
    let bodies: Vec<_> = broker.pull_all("B", 0, 3).await.into_iter().map(|m| m.body).collect();
    assert_eq!(bodies, ["x", "y", "z"]);
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_an_inner_batch_is_illegal() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    assert_eq!(broker.call(create("B")).await.code, 0);
    let (one, many) = (items(&["x".into()]), items(&vec![String::new(); 32_768]));
    let key = ("UNIQ_KEY", "U");
    for (pairs, body) in [
        (&[key, ("INNER_NUM", "2")][..], &one[..]),
        (&[key, ("DELAY", "1")], &one),
        (&[key], &one[..one.len() - 1]),
        (&[key], &many),
        (&[key], b""),
    ] {
        let answer = broker.call(batch("B", pairs, body)).await;
        assert_eq!(answer.code, 13, "{pairs:?}: {}", remark(&answer));
    }
    let mut marked = Send::new("B", b"x").command();
    marked.fields.set("f", "128");
    assert_eq!(broker.call(marked).await.code, 13);
    assert_eq!(number(&broker.pull(&Pull::new("B", 0, 0)).await, "maxOffset"), 0);
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_send_may_make_a_lost_topic_anew_as_the_other_kind() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    assert_eq!(broker.call(create("B")).await.code, 0);
    let body = items(&["x".into(), "y".into()]);
    assert_eq!(broker.call(batch("B", &[("UNIQ_KEY", "U")], &body)).await.code, 0);
    broker.stop().await;
    for name in ["topics.json", "topics.json.bak"] {
        let path = folder.path().join("config").join(name);
        if path.exists() {
            std::fs::remove_file(path).unwrap();
        }
    }
    let broker = start(folder.path(), |_| {}).await;
    let answer = broker.call(Send::new("B", b"plain").command()).await;
    assert_eq!((answer.code, number(&answer, "queueOffset")), (0, 0));
    broker.stop().await;
    let broker = start(folder.path(), |_| {}).await;
    assert_eq!(broker.pull(&Pull::new("B", 0, 0)).await.code, 0);
    broker.stop().await;
}
