//! Light message queues over real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed step fails its test

mod common;

use common::{Pull, Send, folder, messages, number, start};
use protocol::{Command, request_code};
use std::path::Path;

async fn light(folder: &Path) -> common::TestBroker {
    start(folder, |config| {
        config.store.enable_lmq = true;
        config.store.enable_multi_dispatch = true;
    })
    .await
}

fn commit(offset: &str) -> Command {
    Command::request(request_code::UPDATE_CONSUMER_OFFSET)
        .with_field("consumerGroup", "%LMQ%c")
        .with_field("topic", "%LMQ%q")
        .with_field("queueId", "0")
        .with_field("commitOffset", offset)
}

fn query() -> Command {
    Command::request(request_code::QUERY_CONSUMER_OFFSET)
        .with_field("consumerGroup", "%LMQ%c")
        .with_field("topic", "%LMQ%q")
        .with_field("queueId", "0")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_light_queue_is_read_and_its_offsets_kept() {
    let folder = folder();
    let broker = light(folder.path()).await;
    for body in [&b"one"[..], b"two"] {
        broker.sent(&Send::new("T1", body).with("INNER_MULTI_DISPATCH", "%LMQ%q,%LMQ%r")).await;
    }
    let pull = |offset| Pull { group: "%LMQ%c", ..Pull::new("%LMQ%q", 0, offset) };
    let answer = broker.pull(&pull(1)).await;
    assert_eq!((answer.code, number(&answer, "nextBeginOffset"), number(&answer, "maxOffset")), (0, 2, 2));
    let message = &messages(&answer.body)[0];
    assert_eq!((message.topic.as_str(), message.body.as_str()), ("T1", "two"));
    assert_eq!(message.property("INNER_MULTI_QUEUE_OFFSET"), Some("1,1"));
    assert_eq!(broker.call(commit("2")).await.code, 0);

    let last = pull(2).suspend(20_000);
    let waiting = broker.pull(&last);
    let send = Send::new("T1", b"three").with("INNER_MULTI_DISPATCH", "%LMQ%q");
    let (answer, _) = tokio::join!(waiting, broker.sent(&send));
    assert_eq!(messages(&answer.body)[0].body, "three", "a parked pull hears of it");
    assert_eq!(broker.send(&Send::new("T1", b"x").with("INNER_MULTI_DISPATCH", "q")).await.code, 13);
    broker.stop().await;
    assert!(folder.path().join("config/lmqConsumerOffset.json").exists());

    let broker = light(folder.path()).await;
    assert_eq!(number(&broker.call(query()).await, "offset"), 2);
    assert_eq!(broker.call(Command::request(request_code::CLEAN_UNUSED_TOPIC)).await.code, 0);
    assert_eq!(number(&broker.pull(&pull(0)).await, "maxOffset"), 3, "light queues are not unused topics");
    broker.stop().await;
}
