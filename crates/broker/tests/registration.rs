//! The broker and its name servers, all in this process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed step fails its test

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::{PATIENCE, TestBroker, folder, start};
use namesrv::Namesrv;
use protocol::{Command, json, request_code as code};
use serde_json::Value;
use service::config::Live;
use service::keys::NamesrvSettings;

fn name_server(folder: &Path) -> Namesrv {
    let mut settings = NamesrvSettings::default();
    settings.netty.listen_port = 0;
    settings.netty.bind_address = "127.0.0.1".into();
    settings.namesrv.kv_config_path = folder.join("kvConfig.json").display().to_string();
    Namesrv::start(Live::new(settings)).unwrap()
}

async fn route(broker: &TestBroker, names: &str, topic: &str) -> Option<Value> {
    let ask = Command::request(code::GET_ROUTEINFO_BY_TOPIC).with_field("topic", topic);
    let answer = broker.client.request(names, ask, PATIENCE).await.unwrap();
    (answer.code == 0).then(|| json::parse(&answer.body).unwrap())
}

fn create(topic: &str) -> Command {
    Command::request(code::UPDATE_AND_CREATE_TOPIC)
        .with_field("topic", topic)
        .with_field("readQueueNums", "3")
        .with_field("writeQueueNums", "3")
        .with_field("perm", "6")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_name_servers_know_the_broker_and_its_topics_at_once() {
    let (folder, one_folder, two_folder) = (folder(), folder(), folder());
    let (one, two) = (name_server(one_folder.path()), name_server(two_folder.path()));
    let (one_addr, two_addr) = (one.local_addr().to_string(), two.local_addr().to_string());
    let list = format!("{one_addr};{two_addr}");
    let broker = start(folder.path(), |settings| settings.broker.namesrv_addr = Some(list)).await;
    for names in [&one_addr, &two_addr] {
        for (topic, queues) in [("TBW102", 8), ("DefaultCluster", 16), ("broker-a", 1), ("BenchmarkTest", 1024)] {
            let route = route(&broker, names, topic).await.unwrap_or_else(|| panic!("{names} has no {topic}"));
            assert_eq!(route["queueDatas"][0]["writeQueueNums"], queues, "{topic}");
            assert_eq!(route["brokerDatas"][0]["brokerAddrs"]["0"], broker.addr);
        }
    }
    assert_eq!(broker.call(create("T")).await.code, 0);
    for names in [&one_addr, &two_addr] {
        assert!(route(&broker, names, "T").await.is_some(), "whoever created a topic finds its route");
    }
    // A topic that a send makes is told soon, without waiting for the period.
    broker.sent(&common::Send::new("sent", b"x")).await;
    let deadline = Instant::now() + PATIENCE;
    while route(&broker, &two_addr, "sent").await.is_none() {
        assert!(Instant::now() < deadline, "the name server never heard of the topic");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let client = broker.client.clone();
    broker.running.shutdown().await;
    for names in [&one_addr, &two_addr] {
        let ask = Command::request(code::GET_ROUTEINFO_BY_TOPIC).with_field("topic", "T");
        let answer = client.request(names, ask, PATIENCE).await.unwrap();
        assert_eq!(answer.code, 17, "a broker that stops is gone at once");
    }
    one.shutdown().await;
    two.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_name_server_keeps_nobody_from_working() {
    let (folder, names_folder) = (folder(), folder());
    let alive = name_server(names_folder.path());
    let list = format!("127.0.0.1:1;{}", alive.local_addr());
    let began = Instant::now();
    let broker = start(folder.path(), |settings| settings.broker.namesrv_addr = Some(list)).await;
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(broker.call(create("T")).await.code, 0);
    assert!(route(&broker, &alive.local_addr().to_string(), "T").await.is_some());
    broker.stop().await;
    alive.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ordered_topics_are_learnt_from_the_name_server() {
    let (folder, names_folder) = (folder(), folder());
    let names = name_server(names_folder.path());
    let addr = names.local_addr().to_string();
    let broker = start(folder.path(), |settings| settings.broker.namesrv_addr = Some(addr.clone())).await;
    broker.call(create("T")).await;
    let put = Command::request(code::PUT_KV_CONFIG)
        .with_field("namespace", "ORDER_TOPIC_CONFIG")
        .with_field("key", "T")
        .with_field("value", "broker-a:3");
    assert_eq!(broker.client.request(&addr, put, PATIENCE).await.unwrap().code, 0);
    broker.call(create("U")).await;
    let ask = Command::request(code::GET_TOPIC_CONFIG).with_field("topic", "T");
    let topic = json::parse(&broker.call(ask).await.body).unwrap();
    assert_eq!(topic["order"], true, "the registration's answer names it");
    broker.stop().await;
    names.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compressed_registration_is_understood() {
    let (folder, names_folder) = (folder(), folder());
    let names = name_server(names_folder.path());
    let addr = names.local_addr().to_string();
    let broker = start(folder.path(), |settings| {
        settings.broker.namesrv_addr = Some(addr.clone());
        settings.broker.compressed_register = true;
    })
    .await;
    assert!(route(&broker, &addr, "BenchmarkTest").await.is_some());
    broker.stop().await;
    names.shutdown().await;
}
