//! Pulls that wait.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed step fails its test

mod common;

use std::time::{Duration, Instant};

use common::{PATIENCE, Pull, Send, folder, messages, number, remark, start};

/// Waits until the broker holds this many pulls.
async fn parked(broker: &common::TestBroker, count: usize) {
    let deadline = Instant::now() + PATIENCE;
    while broker.running.broker().long_polls.len() != count {
        assert!(Instant::now() < deadline, "{} pulls wait, not {count}", broker.running.broker().long_polls.len());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_arrival_wakes_a_waiting_pull() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    broker.sent(&Send::new("T1", b"old")).await;
    let waiting = Pull::new("T1", 0, 1).suspend(60_000);
    let (answer, ()) = tokio::join!(broker.pull(&waiting), async {
        parked(&broker, 1).await;
        broker.sent(&Send::new("T1", b"elsewhere").queue(1)).await;
        assert_eq!(broker.running.broker().long_polls.len(), 1);
        broker.sent(&Send::new("T1", b"new")).await;
    });
    assert_eq!((answer.code, messages(&answer.body)[0].body.as_str()), (0, "new"));
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_message_of_a_queue_wakes_too() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    broker.sent(&Send::new("T1", b"makes the topic").queue(1)).await;
    let waiting = Pull::new("T1", 0, 0).suspend(60_000);
    let (answer, ()) = tokio::join!(broker.pull(&waiting), async {
        parked(&broker, 1).await;
        broker.sent(&Send::new("T1", b"new")).await;
    });
    assert_eq!((answer.code, messages(&answer.body)[0].body.as_str()), (0, "new"));
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_wanted_tags_wake() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    broker.sent(&Send::new("T1", b"old")).await;
    let waiting = Pull::new("T1", 0, 1).subscription("a").suspend(60_000);
    let (answer, ()) = tokio::join!(broker.pull(&waiting), async {
        parked(&broker, 1).await;
        broker.sent(&Send::new("T1", b"unwanted").with("TAGS", "b")).await;
        broker.sent(&Send::new("T1", b"unwanted too")).await;
        assert_eq!(broker.running.broker().long_polls.len(), 1);
        broker.sent(&Send::new("T1", b"wanted").with("TAGS", "a")).await;
    });
    assert_eq!((answer.code, number(&answer, "nextBeginOffset")), (0, 4));
    let bodies: Vec<String> = messages(&answer.body).into_iter().map(|message| message.body).collect();
    assert_eq!(bodies, ["wanted"]);
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_ends_a_wait() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    broker.sent(&Send::new("T1", b"old")).await;
    let asked = Instant::now();
    let answer = broker.pull(&Pull::new("T1", 0, 1).suspend(300)).await;
    assert_eq!((answer.code, remark(&answer)), (19, "OFFSET_OVERFLOW_ONE"));
    assert!(asked.elapsed() >= Duration::from_millis(299), "{:?}", asked.elapsed());
    assert_eq!(number(&answer, "nextBeginOffset"), 1);
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_connection_waits_for_nothing() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    broker.sent(&Send::new("T1", b"old")).await;
    let other = remoting::Client::new(remoting::ClientConfig::default(), None);
    let waiting = Pull::new("T1", 0, 1).suspend(600_000).command();
    let (answer, ()) = tokio::join!(other.request(&broker.addr, waiting, PATIENCE), async {
        parked(&broker, 1).await;
        other.disconnect(&broker.addr);
    });
    assert!(answer.is_err());
    parked(&broker, 0).await;
    broker.stop().await;
}

/// Producer and consumers race for every single message; a lost wake-up would cost a whole suspend time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wake_up_is_lost_over_sockets() {
    const MESSAGES: i64 = 2_000;
    const QUEUES: i32 = 3;
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    for queue in 0..QUEUES {
        broker.sent(&Send::new("T1", b"0").queue(queue)).await;
    }
    let consume = async |queue: i32| {
        let client = remoting::Client::new(remoting::ClientConfig::default(), None);
        let mut offset = 0;
        while offset < MESSAGES {
            let pull = Pull::new("T1", queue, offset).suspend(600_000).command();
            let answer = client.request(&broker.addr, pull, PATIENCE).await;
            let answer = answer.unwrap_or_else(|error| panic!("queue {queue} at {offset}: {error}"));
            assert!(matches!(answer.code, 0 | 20), "{}: {:?}", answer.code, answer.remark);
            for message in messages(&answer.body) {
                assert_eq!(message.queue_offset, offset);
                offset += 1;
            }
        }
    };
    let produce = async {
        for number in 1..MESSAGES {
            let body = number.to_string();
            let send = |queue| Send::new("T1", body.as_bytes()).queue(queue).command();
            let (a, b, c) = tokio::join!(broker.call(send(0)), broker.call(send(1)), broker.call(send(2)));
            assert_eq!((a.code, b.code, c.code), (0, 0, 0));
        }
    };
    tokio::join!(produce, consume(0), consume(1), consume(2));
    broker.stop().await;
}
