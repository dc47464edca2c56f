//! What operators do with topics, groups and the configuration, and that it outlives the process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed step fails its test

mod common;

use common::{TestBroker, folder, number, remark, start};
use protocol::{Command, json, request_code as code};
use serde_json::{Value, json as value};

fn create(topic: &str, queues: i32, attributes: &str) -> Command {
    Command::request(code::UPDATE_AND_CREATE_TOPIC)
        .with_field("topic", topic)
        .with_field("defaultTopic", "TBW102")
        .with_field("readQueueNums", queues.to_string())
        .with_field("writeQueueNums", queues.to_string())
        .with_field("perm", "6")
        .with_field("topicFilterType", "SINGLE_TAG")
        .with_field("topicSysFlag", "0")
        .with_field("order", "false")
        .with_field("attributes", attributes)
}

async fn config(broker: &TestBroker, topic: &str) -> Option<Value> {
    let answer = broker.call(Command::request(code::GET_TOPIC_CONFIG).with_field("topic", topic)).await;
    if answer.code == 17 {
        return None;
    }
    assert_eq!(answer.code, 0);
    Some(json::parse(&answer.body).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_are_created_changed_deleted_and_kept() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    for (topic, why) in [
        ("", "The specified topic is blank."),
        ("a b", "The specified topic: a b, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        ("TBW102", "The topic[TBW102] is conflict with system topic."),
        ("DefaultCluster", "The topic[DefaultCluster] is conflict with system topic."),
    ] {
        let refused = broker.call(create(topic, 4, "")).await;
        assert_eq!((refused.code, remark(&refused)), (29, why));
    }
    assert_eq!(broker.call(create("T", 4, "+message.type=FIFO")).await.code, 0);
    let made = config(&broker, "T").await.unwrap();
    assert_eq!(made["attributes"], value!({"message.type": "FIFO"}));
    let stats = broker.call(Command::request(code::GET_TOPIC_STATS_INFO).with_field("topic", "T")).await;
    let stats = json::parse(&stats.body).unwrap();
    assert_eq!(stats["offsetTable"].as_object().unwrap().len(), 4, "a new topic shows its queues at once");

    assert_eq!(broker.call(create("T", 6, "+message.type=NORMAL")).await.code, 0);
    let refused = broker.call(create("T", 6, "+cleanup.policy=COMPACTION")).await;
    assert_eq!(
        (refused.code, remark(&refused)),
        (1, "attempt to update an unchangeable attribute. key: cleanup.policy")
    );
    broker.call(create("gone", 1, "")).await;
    broker.sent(&common::Send::new("gone", b"x")).await;
    let delete = |topic: &str| Command::request(code::DELETE_TOPIC_IN_BROKER).with_field("topic", topic);
    assert_eq!(broker.call(delete("gone")).await.code, 0);
    assert_eq!(broker.call(delete("TBW102")).await.code, 29);
    let max = Command::request(code::GET_MAX_OFFSET).with_field("topic", "gone").with_field("queueId", "0");
    assert_eq!(number(&broker.call(max).await, "offset"), 0);
    broker.stop().await;

    let broker = start(folder.path(), |_| {}).await;
    let kept = config(&broker, "T").await.unwrap();
    assert_eq!((&kept["readQueueNums"], &kept["attributes"]), (&value!(6), &value!({"message.type": "NORMAL"})));
    assert!(config(&broker, "gone").await.is_none());
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_are_created_changed_deleted_and_kept() {
    let folder = folder();
    let broker = start(folder.path(), |settings| settings.broker.auto_create_subscription_group = false).await;
    let get = || Command::request(code::GET_SUBSCRIPTIONGROUP_CONFIG).with_field("group", "g");
    assert_eq!(broker.call(get()).await.code, 26);
    let update =
        |body: &str| Command::request(code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP).with_body(body.as_bytes().to_vec());
    assert_eq!(broker.call(update(r#"{"groupName":"not good"}"#)).await.code, 29);
    assert_eq!(broker.call(update(r#"{"groupName":"g","retryMaxTimes":3,"attributes":{}}"#)).await.code, 0);
    broker.call(update(r#"{"groupName":"h"}"#)).await;
    let delete = Command::request(code::DELETE_SUBSCRIPTIONGROUP).with_field("groupName", "h");
    assert_eq!(broker.call(delete.with_field("cleanOffset", "true")).await.code, 0);
    broker.stop().await;

    let broker = start(folder.path(), |settings| settings.broker.auto_create_subscription_group = false).await;
    let kept = json::parse(&broker.call(get()).await.body).unwrap();
    assert_eq!((&kept["retryMaxTimes"], &kept["consumeBroadcastEnable"]), (&value!(3), &value!(true)));
    let all = broker.call(Command::request(code::GET_ALL_SUBSCRIPTIONGROUP_CONFIG)).await;
    assert_eq!(number(&all, "totalGroupNum"), 9, "eight built-in groups and g");
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configuration_is_shown_and_changed_live() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    let text = String::from_utf8(broker.call(Command::request(code::GET_BROKER_CONFIG)).await.body.to_vec()).unwrap();
    assert!(text.contains("brokerName=broker-a\n") && text.contains("autoCreateTopicEnable=true\n"), "{text}");
    let update = |body: &str| Command::request(code::UPDATE_BROKER_CONFIG).with_body(body.as_bytes().to_vec());
    let refused = broker.call(update("configBlackList=x\n")).await;
    assert_eq!((refused.code, remark(&refused)), (16, "Can not update config in black list."));
    assert_eq!(broker.call(update("brokerPermission=2\n")).await.code, 0);
    let refused = broker.pull(&common::Pull::new("BenchmarkTest", 0, 0)).await;
    assert_eq!(refused.code, 16, "the broker gives no messages now");
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_built_says_so() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    for unknown in [999, 200_050, 3001, 0, -1] {
        let answer = broker.call(Command::request(unknown)).await;
        assert_eq!((answer.code, remark(&answer)), (3, &*format!(" request type {unknown} not supported")));
    }
    broker.stop().await;
}
