//! The client against whatever cluster `NAMESRV_ADDR` names, Java's or ours:
//! `NAMESRV_ADDR=127.0.0.1:9876 cargo test -p rocketmq-client --test real_broker -- --ignored`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::time::Duration;

use client::{Admin, AssignedConsumer, Cluster, Message, Producer, PullConsumer, PullOptions, PullStatus, SendStatus};
use protocol::SerializeType;

const MINUTE: Duration = Duration::from_secs(60);

fn cluster() -> Cluster {
    Cluster::connect(&std::env::var("NAMESRV_ADDR").expect("NAMESRV_ADDR names the cluster to test"))
}

async fn fresh_topic(cluster: &Cluster, queues: i32) -> String {
    let topic = format!("client-test-{:016x}", fastrand::u64(..));
    Admin::new(cluster.clone()).create_topic_everywhere(&topic, queues).await.unwrap();
    topic
}

#[tokio::test]
#[ignore = "needs NAMESRV_ADDR"]
async fn what_is_sent_is_received_in_queue_order() {
    let cluster = cluster();
    let topic = fresh_topic(&cluster, 4).await;
    let producer = Producer::new(cluster.clone(), "client-test");
    let mut sent = BTreeSet::new();
    for round in 0..40 {
        let mut producer = producer.clone();
        producer.serialize = if round % 2 == 0 { SerializeType::Json } else { SerializeType::Binary };
        let message =
            Message::new(&topic, format!("body {round}")).with_tag("T").with_keys("k").with_property("p", "ü");
        let result = producer.send(&message).await.unwrap();
        assert_eq!(result.status, SendStatus::Ok);
        assert!(sent.insert((result.queue.queue_id, result.queue_offset, result.message_id, result.offset_id)));
    }
    let batch: Vec<Message> = (0..10).map(|at| Message::new(&topic, format!("batch {at}"))).collect();
    producer.send_batch(&batch).await.unwrap();
    producer.send_oneway(&Message::new(&topic, "oneway")).await.unwrap();
    let consumer = PullConsumer::new(cluster, "client-test-group");
    let queues = consumer.queues(&topic).await.unwrap();
    assert_eq!(queues.len(), 4);
    let options = PullOptions { suspend: Duration::from_secs(5), ..PullOptions::default() };
    let starts = queues.iter().map(|queue| (queue.clone(), 0)).collect();
    let mut assigned = AssignedConsumer::new(consumer.clone(), options, starts);
    let mut received = Vec::new();
    while received.len() < 51 {
        received.extend(tokio::time::timeout(MINUTE, assigned.next()).await.unwrap().unwrap());
    }
    for queue in &queues {
        let offsets: Vec<i64> = received.iter().filter(|got| got.queue == *queue).map(|got| got.queue_offset).collect();
        assert_eq!(offsets, (0..offsets.len() as i64).collect::<Vec<_>>(), "{queue:?}");
        assert_eq!(consumer.max_offset(queue).await.unwrap(), offsets.len() as i64);
        assert_eq!(consumer.min_offset(queue).await.unwrap(), 0);
        assert_eq!(consumer.search_offset(queue, 0).await.unwrap(), 0);
    }
    let got: BTreeSet<_> = received
        .iter()
        .filter(|got| got.tag() == Some("T"))
        .inspect(|got| assert_eq!((got.property("KEYS"), got.property("p")), (Some("k"), Some("ü"))))
        .map(|got| (got.queue.queue_id, got.queue_offset, got.unique_key().unwrap().to_owned(), got.offset_id()))
        .collect();
    assert_eq!(got, sent);
    assert_eq!(consumer.committed(&queues[0]).await.unwrap(), None);
    assigned.commit().await.unwrap();
    let (queue, position) = assigned.positions()[0].clone();
    assert_eq!(consumer.committed(&queue).await.unwrap(), Some(position));
}

#[tokio::test]
#[ignore = "needs NAMESRV_ADDR"]
async fn a_long_poll_ends_with_the_message_and_tags_filter() {
    let cluster = cluster();
    let topic = fresh_topic(&cluster, 1).await;
    let consumer = PullConsumer::new(cluster.clone(), "client-test-group-2");
    let queue = consumer.queues(&topic).await.unwrap().remove(0);
    let empty = consumer.pull(&queue, 0, &PullOptions::default()).await.unwrap();
    assert!(empty.messages.is_empty());
    let options = PullOptions { suspend: Duration::from_secs(15), ..PullOptions::default() };
    let producer = Producer::new(cluster, "client-test");
    let poll = consumer.pull(&queue, 0, &options);
    let send = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        producer.send_to(&queue, &Message::new(&topic, "woken").with_tag("A")).await.unwrap()
    };
    let (pulled, _) = tokio::join!(poll, send);
    let pulled = pulled.unwrap();
    assert_eq!(pulled.status, PullStatus::Found);
    assert_eq!((&pulled.messages[0].body[..], pulled.next_offset), (&b"woken"[..], 1));
    let other = PullOptions { subscription: "B".to_owned(), ..PullOptions::default() };
    let pulled = consumer.pull(&queue, 0, &other).await.unwrap();
    assert_eq!((pulled.status, pulled.next_offset), (PullStatus::NoMatch, 1));
    let far = consumer.pull(&queue, 1000, &PullOptions::default()).await.unwrap();
    assert_eq!((far.status, far.next_offset), (PullStatus::OffsetMoved, 1));
}

#[tokio::test]
#[ignore = "needs NAMESRV_ADDR"]
async fn the_administrator_sees_the_cluster() {
    let cluster = cluster();
    let topic = fresh_topic(&cluster, 3).await;
    let admin = Admin::new(cluster);
    let master = admin.masters(None).await.unwrap().remove(0);
    assert!(admin.topics().await.unwrap().contains(&topic));
    assert_eq!(admin.topic_stats(&master, &topic).await.unwrap().offset_table.len(), 3);
    assert!(!admin.broker_runtime_info(&master).await.unwrap().table.is_empty());
    admin.delete_topic(&master, &topic).await.unwrap();
}
