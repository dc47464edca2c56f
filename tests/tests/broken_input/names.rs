//! Names of topics and groups that would lead out of the store's folder, or break what is printed with them.

use std::fs;

use anyhow::{Result, ensure};
use protocol::{Command, request_code};
use rocketmq_tests::requests::make_topic;
use rocketmq_tests::wire::Wire;

use crate::rig::Rig;

fn bad_names() -> Vec<String> {
    let mut names: Vec<String> = [
        "../x",
        "a/b",
        "/etc/x",
        ".",
        "..",
        "a\0b",
        "a b",
        "\u{1}",
        "\n",
        "",
        " ",
        "a\\b",
        "%RETRY%../x",
        "%DLQ%a/b",
        "名",
        "\"},{\"",
    ]
    .map(str::to_owned)
    .to_vec();
    names.push("x".repeat(300));
    names.push(format!("%RETRY%{}", "x".repeat(300)));
    names.push("x".repeat(40_000));
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_name_leads_out_of_the_store() -> Result<()> {
    let mut rig = Rig::start("").await?;
    let mut wire = Wire::connect(rig.broker.address)?;
    let before: Vec<_> =
        fs::read_dir(rig.home.path())?.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?;
    for name in bad_names() {
        let send = Command::request(request_code::SEND_MESSAGE)
            .with_field("producerGroup", name.clone())
            .with_field("topic", name.clone())
            .with_field("defaultTopic", "TBW102")
            .with_field("defaultTopicQueueNums", "4")
            .with_field("queueId", "0")
            .with_field("sysFlag", "0")
            .with_field("bornTimestamp", "0")
            .with_field("flag", "0")
            .with_body(b"x".to_vec());
        let answer = wire.ask(&send)?;
        ensure!(answer.code != 0, "a message to {name:?} is taken");
        let (code, _) = make_topic(&mut wire, &name, "")?;
        ensure!(code != 0, "a topic {name:?} is made");
        let json = serde_json::to_string(&name)?;
        let group = Command::request(request_code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP)
            .with_body(format!("{{\"groupName\":{json}}}").into_bytes());
        let answer = wire.ask(&group)?;
        ensure!(answer.code != 0, "a group {name:?} is made");
        for code in [request_code::DELETE_TOPIC_IN_BROKER, request_code::DELETE_SUBSCRIPTIONGROUP] {
            wire.ask(&Command::request(code).with_field("topic", name.clone()).with_field("groupName", name.clone()))?;
        }
        let pull = Command::request(request_code::PULL_MESSAGE)
            .with_field("consumerGroup", name.clone())
            .with_field("topic", crate::rig::TOPIC)
            .with_field("queueId", "0")
            .with_field("queueOffset", "0")
            .with_field("maxMsgNums", "1")
            .with_field("sysFlag", "4")
            .with_field("commitOffset", "0")
            .with_field("suspendTimeoutMillis", "0")
            .with_field("subVersion", "0")
            .with_field("subscription", "*");
        wire.ask(&pull)?;
        let heartbeat = format!(
            "{{\"clientID\":{json},\"consumerDataSet\":[{{\"groupName\":{json},\"consumeType\":\"CONSUME_ACTIVELY\",\
             \"messageModel\":\"CLUSTERING\",\"subscriptionDataSet\":[{{\"topic\":{json},\"subString\":\"*\"}}]}}],\
             \"producerDataSet\":[{{\"groupName\":{json}}}]}}"
        );
        wire.ask(&Command::request(request_code::HEART_BEAT).with_body(heartbeat.into_bytes()))?;
    }
    let after: Vec<_> =
        fs::read_dir(rig.home.path())?.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?;
    ensure!(before.len() == after.len(), "new files beside the store: {after:?}");
    let queues: Vec<_> =
        fs::read_dir(rig.plan.store().join("consumequeue"))?.flatten().map(|entry| entry.file_name()).collect();
    ensure!(queues.iter().all(|name| !name.to_string_lossy().contains('x')), "queues: {queues:?}");
    ensure!(rig.plan.store().join("config/topics.json").is_file(), "the topics are gone");
    rig.unharmed(150, 150).await?;
    // What was written must be readable again.
    rig.broker.signal(rustix::process::Signal::TERM)?;
    rig.broker.wait(std::time::Duration::from_secs(20))?;
    rig.broker = rig.plan.start()?;
    rig.unharmed(150, 60).await
}
