//! Delay levels, failed consumption and the dead-letter topic.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed step fails its test

mod common;

use std::time::Duration;

use common::{Pull, Send, folder, messages, number, remark, start};
use protocol::{Command, request_code};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delayed_message_comes_when_it_is_due_and_once() {
    let folder = folder();
    let broker = start(folder.path(), |settings| settings.store.message_delay_level = "1s 2s".into()).await;
    broker.sent(&Send::new("T1", b"now").queue(1)).await;
    for number in 0..5 {
        let body = format!("late {number}");
        let answer = broker.send(&Send::new("T1", body.as_bytes()).queue(1).with("DELAY", "1").with("TAGS", "x")).await;
        // The queue is the producer's, the offset that of the level's queue.
        assert_eq!(
            (answer.code, common::number(&answer, "queueId"), common::number(&answer, "queueOffset")),
            (0, 1, number)
        );
    }
    let waiting = messages(&broker.pull(&Pull::new("SCHEDULE_TOPIC_XXXX", 0, 0)).await.body);
    assert_eq!(waiting.len(), 5);
    for (key, value) in [("REAL_TOPIC", "T1"), ("REAL_QID", "1"), ("DELAY", "1"), ("TAGS", "x")] {
        assert_eq!(waiting[0].property(key), Some(value), "{key}");
    }
    let all = broker.pull_all("T1", 1, 6).await;
    for (place, message) in all[1..].iter().enumerate() {
        assert_eq!(message.body, format!("late {place}"), "in order");
        let took = message.store_timestamp - waiting[place].store_timestamp;
        assert!((1_000..5_000).contains(&took), "delivered after {took} ms");
        assert_eq!(message.property("REAL_TOPIC"), Some("T1"), "as Java leaves it");
    }
    let answer = broker.pull(&Pull::new("T1", 1, 6).suspend(300)).await;
    assert_eq!(answer.code, 19, "each comes once");
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delay_survives_a_restart_and_comes_once() {
    let folder = folder();
    let levels = |settings: &mut service::keys::BrokerSettings| settings.store.message_delay_level = "1s 3s".into();
    let broker = start(folder.path(), levels).await;
    broker.sent(&Send::new("T1", b"first").with("DELAY", "1")).await;
    assert_eq!(broker.pull_all("T1", 0, 1).await[0].body, "first");
    // Level 9 is not there: it becomes the highest.
    broker.sent(&Send::new("T1", b"second").with("DELAY", "9")).await;
    broker.stop().await;
    let text = std::fs::read_to_string(folder.path().join("config/delayOffset.json")).unwrap();
    assert!(text.contains("\"offsetTable\":{\n\t\t1:1\n\t}"), "{text}");

    let broker = start(folder.path(), levels).await;
    let all = broker.pull_all("T1", 0, 2).await;
    assert_eq!((all[1].body.as_str(), all[1].property("DELAY")), ("second", Some("2")));
    broker.stop().await;
}

fn send_back(offset: i64, level: i32, most: i32) -> Command {
    Command::request(request_code::CONSUMER_SEND_MSG_BACK)
        .with_field("offset", offset.to_string())
        .with_field("group", "CG")
        .with_field("delayLevel", level.to_string())
        .with_field("originMsgId", "")
        .with_field("originTopic", "T1")
        .with_field("unitMode", "false")
        .with_field("maxReconsumeTimes", most.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_message_is_retried_and_then_dead() {
    let folder = folder();
    let broker = start(folder.path(), |settings| settings.store.message_delay_level = "1s 1s 1s 1s 1s".into()).await;
    broker.sent(&Send::new("T1", b"poison").with("KEYS", "k").with("UNIQ_KEY", "U")).await;
    let first = broker.pull_all("T1", 0, 1).await.remove(0);
    assert_eq!(broker.call(send_back(first.physical_offset, 0, 2)).await.code, 0);
    // The first retry waits in level 3, the second in level 4.
    let waiting = messages(&broker.pull(&Pull::new("SCHEDULE_TOPIC_XXXX", 2, 0)).await.body);
    assert_eq!(waiting[0].property("REAL_TOPIC"), Some("%RETRY%CG"));
    let retried = broker.pull_all("%RETRY%CG", 0, 1).await.remove(0);
    assert_eq!((retried.body.as_str(), retried.reconsume_times), ("poison", 1));
    assert_eq!(retried.property("RETRY_TOPIC"), Some("T1"));
    assert_eq!(retried.property("WAIT"), Some("false"));
    assert_eq!(retried.property("UNIQ_KEY"), Some("U"));
    let origin = retried.property("ORIGIN_MESSAGE_ID").unwrap().to_owned();
    assert!(origin.ends_with(&format!("{:016X}", first.physical_offset)));

    assert_eq!(broker.call(send_back(retried.physical_offset, 0, 2)).await.code, 0);
    let waiting = broker.pull(&Pull::new("SCHEDULE_TOPIC_XXXX", 3, 0)).await;
    assert_eq!(messages(&waiting.body).len(), 1);
    let retried = broker.pull_all("%RETRY%CG", 0, 2).await.remove(1);
    assert_eq!((retried.reconsume_times, retried.property("ORIGIN_MESSAGE_ID")), (2, Some(origin.as_str())));

    assert_eq!(broker.call(send_back(retried.physical_offset, 0, 2)).await.code, 0);
    let dead = broker.pull_all("%DLQ%CG", 0, 1).await.remove(0);
    assert_eq!((dead.body.as_str(), dead.reconsume_times), ("poison", 3));
    assert_eq!(dead.property("RETRY_TOPIC"), Some("T1"));
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn send_back_can_be_dead_at_once_and_can_fail() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    broker.sent(&Send::new("T1", b"x")).await;
    assert_eq!(broker.call(send_back(0, -1, 16)).await.code, 0);
    assert_eq!(broker.pull_all("%DLQ%CG", 0, 1).await[0].body, "x");
    let answer = broker.call(send_back(77_777_777, 0, 16)).await;
    assert_eq!((answer.code, remark(&answer)), (1, "look message by offset failed, 77777777"));
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_sent_by_the_client_ends_in_the_dead_letter_topic_after_the_maximum() {
    let folder = folder();
    let broker = start(folder.path(), |settings| settings.store.message_delay_level = "1s 1s 1s".into()).await;
    let retry = |times| Send {
        reconsume_times: times,
        max_reconsume_times: Some(16),
        ..Send::new("%RETRY%CG", b"again").with("DELAY", "3").with("ORIGIN_MESSAGE_ID", "X")
    };
    assert_eq!(broker.send(&retry(16)).await.code, 0);
    let answer = broker.send(&retry(17)).await;
    assert_eq!((answer.code, number(&answer, "queueId")), (0, 0));
    let dead = broker.pull_all("%DLQ%CG", 0, 1).await.remove(0);
    assert_eq!((dead.reconsume_times, dead.property("DELAY")), (17, Some("-1")));
    let retried = broker.pull_all("%RETRY%CG", 0, 1).await.remove(0);
    assert_eq!(retried.reconsume_times, 16);
    tokio::time::timeout(Duration::from_secs(10), broker.stop()).await.unwrap();
}
