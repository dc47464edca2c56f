//! Messages in and out of a broker over real sockets. Expected codes, remarks and properties are those of RocketMQ 5.4.0.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed step fails its test

mod common;

use common::{Pull, Send, field, folder, messages, number, remark, start};
use protocol::record::{BatchItem, encode_batch_item, properties};
use protocol::{Command, request_code};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_comes_back_as_java_would_store_it() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    let send = Send::new("T1", b"hello").with("TAGS", "TagA").with("UNIQ_KEY", "0A0B").with("WAIT", "true");
    let answer = broker.send(&send).await;
    assert_eq!((answer.code, number(&answer, "queueId"), number(&answer, "queueOffset")), (0, 0, 0));
    assert_eq!(field(&answer, "transactionId"), "0A0B");
    assert_eq!((field(&answer, "MSG_REGION"), field(&answer, "TRACE_ON")), ("DefaultRegion".into(), "true".into()));
    let id = field(&answer, "msgId");
    assert_eq!((id.len(), &id[..8], &id[16..]), (32, "7F000001", "0000000000000000"));

    let answer = broker.pull(&Pull::new("T1", 0, 0)).await;
    assert_eq!((answer.code, remark(&answer)), (0, "FOUND"));
    for (key, value) in [
        ("nextBeginOffset", 1),
        ("minOffset", 0),
        ("maxOffset", 1),
        ("suggestWhichBrokerId", 0),
        ("topicSysFlag", 0),
        ("groupSysFlag", 0),
    ] {
        assert_eq!(number(&answer, key), value, "{key}");
    }
    let message = &messages(&answer.body)[0];
    assert_eq!((message.topic.as_str(), message.body.as_str(), message.flag), ("T1", "hello", 7));
    let mut pairs = message.properties.clone();
    pairs.sort();
    let wanted = [
        ("CLUSTER", "DefaultCluster"),
        ("MSG_REGION", "DefaultRegion"),
        ("TAGS", "TagA"),
        ("TRACE_ON", "true"),
        ("UNIQ_KEY", "0A0B"),
        ("WAIT", "true"),
    ];
    assert_eq!(pairs, wanted.map(|(key, value)| (key.to_owned(), value.to_owned())));
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_broker_sets_its_own_properties_and_a_missing_key() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    let send = Send::new("T1", b"x").with("POP_CK", "x").with("CLUSTER", "Mine").with("TRACE_ON", "no").with("b", "c");
    let answer = broker.send(&send).await;
    assert_eq!(answer.code, 0);
    let message = &broker.pull_all("T1", 0, 1).await[0];
    assert_eq!(message.property("CLUSTER"), Some("DefaultCluster"));
    assert_eq!(message.property("TRACE_ON"), Some("true"));
    assert_eq!(message.property("POP_CK"), None);
    assert_eq!(message.properties.len(), 5, "{:?}", message.properties);
    assert_eq!(message.property("UNIQ_KEY"), Some(field(&answer, "transactionId").as_str()));
    assert_eq!(field(&answer, "transactionId").len(), 32);
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_sends_say_what_java_says() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    broker.sent(&Send::new("T1", b"x")).await;
    let long = "T".repeat(128);
    let big = vec![b'z'; 4 * 1024 * 1024 + 1];
    let wide = "y".repeat(32_700);
    let illegal = "the message is illegal, maybe msg body or properties length not matched. msg body length limit 4194304B, msg properties length limit 32KB.";
    let cases = [
        (
            Send::new("P T", b"x"),
            29,
            "The specified topic: P T, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$",
        ),
        (Send::new("", b"x"), 29, "The specified topic is blank."),
        (Send::new(&long, b"x"), 29, "is longer than topic max length: 127"),
        (Send::new("SCHEDULE_TOPIC_XXXX", b"x"), 16, "Sending message to topic[SCHEDULE_TOPIC_XXXX] is forbidden."),
        (
            Send::new("T1", b"x").queue(99),
            29,
            "request queueId[99] is illegal, TopicConfig [topicName=T1, readQueueNums=4, writeQueueNums=4, perm=RW-, topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false, attributes={}] Producer: 127.0.0.1:",
        ),
        (Send::new("T1", b"x").with("INNER_NUM", "2"), 13, illegal),
        (Send::new("T1", b"x").with("x", &wide), 13, illegal),
        (Send::new("T1", &big), 13, illegal),
        (Send::new("T1", b""), 13, illegal),
        (Send::new("T1", b"x").with("DELAY", "abc"), 1, "abc"),
        (Send::new("T1", b"x").with("TRAN_MSG", "true"), 16, "sending transaction message is forbidden"),
        (Send::new("T1", b"x").with("TIMER_DELAY_SEC", "5"), 1, "accurate timer message is not enabled"),
    ];
    for (send, code, words) in cases {
        let answer = broker.send(&send).await;
        assert_eq!(answer.code, code, "{words}: {:?}", answer.remark);
        assert!(remark(&answer).contains(words), "{words:?} is not in {:?}", answer.remark);
        assert_eq!(field(&answer, "MSG_REGION"), "DefaultRegion");
    }
    let mut command = Send::new("NOPE", b"x").command();
    command.fields.set("c", "NOTTHERE");
    let answer = broker.call(command).await;
    let words = "topic[NOPE] not exist, apply first please!\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.";
    assert_eq!((answer.code, remark(&answer)), (17, words));
    let answer = broker.pull(&Pull::new("T1", 0, 0)).await;
    assert_eq!(number(&answer, "maxOffset"), 1, "nothing of what was refused is stored");
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_negative_queue_means_any() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    let mut seen = std::collections::HashSet::new();
    for _ in 0..200 {
        let answer = broker.send(&Send::new("T1", b"x").queue(-1)).await;
        seen.insert(number(&answer, "queueId"));
    }
    assert_eq!(seen, (0..4).collect());
    broker.stop().await;
}

fn batch(items: &[(&str, &[(&str, &str)])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (text, pairs) in items {
        let text_properties = properties::from_pairs(pairs.iter().copied());
        let item = BatchItem { flag: 3, body: text.as_bytes(), properties: &text_properties };
        encode_batch_item(&mut body, &item).unwrap();
    }
    body
}

fn batch_command(topic: &str, properties: &[(&str, &str)], body: Vec<u8>) -> Command {
    let mut send = Send::new(topic, b"-");
    send.properties = properties.to_vec();
    let mut command = send.command().with_body(body);
    command.code = request_code::SEND_BATCH_MESSAGE;
    command.fields.set("m", "true");
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_becomes_neighbours_with_their_own_properties() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    broker.sent(&Send::new("T1", b"first")).await;
    let body = batch(&[("b1", &[("TAGS", "TagB"), ("UNIQ_KEY", "U1")]), ("b2", &[("UNIQ_KEY", "U2")])]);
    let answer = broker.call(batch_command("T1", &[("UNIQ_KEY", "U1,U2")], body.clone())).await;
    assert_eq!((answer.code, number(&answer, "queueOffset")), (0, 1));
    assert_eq!(field(&answer, "transactionId"), "U1,U2");
    let all = broker.pull_all("T1", 0, 3).await;
    let ids: Vec<String> = field(&answer, "msgId").split(',').map(str::to_owned).collect();
    for (id, message) in ids.iter().zip(&all[1..]) {
        assert!(id.ends_with(&format!("{:016X}", message.physical_offset)), "{id}");
    }
    assert_eq!(ids.len(), 2);
    assert_eq!((all[1].body.as_str(), all[1].flag, all[1].queue_offset), ("b1", 3, 1));
    assert_eq!((all[2].body.as_str(), all[2].queue_offset), ("b2", 2));
    assert_eq!(all[1].properties, [("TAGS".to_owned(), "TagB".to_owned()), ("UNIQ_KEY".to_owned(), "U1".to_owned())]);

    let answer = broker.call(batch_command("%RETRY%G", &[], body.clone())).await;
    assert_eq!((answer.code, remark(&answer)), (13, "batch request does not support retry group %RETRY%G"));
    for (properties, body) in
        [(&[("DELAY", "1")][..], body.clone()), (&[][..], body[..body.len() - 1].to_vec()), (&[], vec![])]
    {
        let answer = broker.call(batch_command("T1", properties, body)).await;
        assert_eq!(answer.code, 13, "{:?}", answer.remark);
    }
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tags_are_filtered_at_the_broker() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    for (body, tag) in [("1", "a"), ("2", "b"), ("3", "c"), ("4", "标签")] {
        broker.sent(&Send::new("T1", body.as_bytes()).with("TAGS", tag)).await;
    }
    broker.sent(&Send::new("T1", b"5")).await;
    let bodies = async |subscription: &str| -> Vec<String> {
        let answer = broker.pull(&Pull::new("T1", 0, 0).subscription(subscription)).await;
        assert_eq!((answer.code, number(&answer, "nextBeginOffset")), (0, 5));
        messages(&answer.body).into_iter().map(|message| message.body).collect()
    };
    assert_eq!(bodies("*").await, ["1", "2", "3", "4", "5"]);
    assert_eq!(bodies("").await, ["1", "2", "3", "4", "5"]);
    assert_eq!(bodies("a || c").await, ["1", "3"]);
    assert_eq!(bodies("标签||b").await, ["2", "4"]);
    let answer = broker.pull(&Pull::new("T1", 0, 0).subscription("z")).await;
    assert_eq!((answer.code, remark(&answer), number(&answer, "nextBeginOffset")), (20, "NO_MATCHED_MESSAGE", 5));
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pulls_answer_with_javas_codes() {
    let folder = folder();
    let broker = start(folder.path(), |settings| settings.broker.enable_property_filter = false).await;
    for _ in 0..3 {
        broker.sent(&Send::new("T1", b"x")).await;
    }
    let faq = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.";
    let subscription_in_heartbeat = Pull { sys_flag: 0, ..Pull::new("T1", 0, 0) };
    let cases = [
        (Pull::new("NOTOPIC", 0, 0), 17, format!("topic[NOTOPIC] not exist, apply first please! {faq}")),
        (
            Pull::new("T1", 9, 0),
            29,
            "queueId[9] is illegal, topic:[T1] topicConfig.readQueueNums:[4] consumer:[/127.0.0.1:".into(),
        ),
        (Pull::new("T1", 3, 0), 19, "NO_MESSAGE_IN_QUEUE".into()),
        (Pull::new("T1", 3, 7), 21, "NO_MESSAGE_IN_QUEUE".into()),
        (Pull::new("T1", 0, 3), 19, "OFFSET_OVERFLOW_ONE".into()),
        (Pull::new("T1", 0, 100), 21, "OFFSET_OVERFLOW_BADLY".into()),
        (Pull::new("T1", 0, 0).subscription("||"), 23, "parse the consumer's subscription failed".into()),
        (Pull { group: "a b", ..Pull::new("T1", 0, 0) }, 26, format!("subscription group [a b] does not exist, {faq}")),
        (subscription_in_heartbeat, 24, format!("the consumer's group info not exist{faq}")),
    ];
    for (pull, code, words) in cases {
        let answer = broker.pull(&pull).await;
        assert_eq!(answer.code, code, "{words}: {:?}", answer.remark);
        assert!(remark(&answer).starts_with(&words), "{words:?} is not {:?}", answer.remark);
    }
    let answer = broker.pull(&Pull::new("T1", 0, 100)).await;
    assert_eq!((number(&answer, "nextBeginOffset"), number(&answer, "maxOffset")), (3, 3));
    let mut command = Pull::new("T1", 0, 0).subscription("a = 1").command();
    command.fields.set("expressionType", "SQL92");
    let answer = broker.call(command).await;
    assert_eq!((answer.code, remark(&answer)), (1, "The broker does not support consumer to filter message by SQL92"));
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pull_may_commit() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    broker.sent(&Send::new("T1", b"x")).await;
    broker.pull(&Pull { sys_flag: 4 | 1, commit_offset: 1, ..Pull::new("T1", 0, 0) }).await;
    let answer = broker
        .call(
            Command::request(request_code::QUERY_CONSUMER_OFFSET)
                .with_field("consumerGroup", "CG")
                .with_field("topic", "T1")
                .with_field("queueId", "0"),
        )
        .await;
    assert_eq!((answer.code, number(&answer, "offset")), (0, 1));
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_found_by_key_and_by_id() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    broker.sent(&Send::new("T1", b"other").with("KEYS", "k9")).await;
    let sent = broker.send(&Send::new("T1", b"wanted").with("KEYS", "k1 k2").with("UNIQ_KEY", "U-1")).await;
    let place = i64::from_str_radix(&field(&sent, "msgId")[16..], 16).unwrap();

    let view =
        |offset: i64| Command::request(request_code::VIEW_MESSAGE_BY_ID).with_field("offset", offset.to_string());
    let answer = broker.call(view(place)).await;
    assert_eq!((answer.code, messages(&answer.body)[0].body.as_str()), (0, "wanted"));
    for bad in [place + 1, 99_999_999, -1] {
        let answer = broker.call(view(bad)).await;
        let words = format!("can not find message by the offset, {bad}");
        assert_eq!((answer.code, remark(&answer)), (1, words.as_str()));
    }

    let query = |key: &str| {
        Command::request(request_code::QUERY_MESSAGE)
            .with_field("topic", "T1")
            .with_field("key", key)
            .with_field("maxNum", "10")
            .with_field("beginTimestamp", "0")
            .with_field("endTimestamp", i64::MAX.to_string())
    };
    let deadline = std::time::Instant::now() + common::PATIENCE;
    for key in ["k2", "U-1"] {
        loop {
            let answer = broker.call(query(key)).await;
            if answer.code == 0 {
                assert_eq!(messages(&answer.body)[0].body, "wanted");
                assert!(number(&answer, "indexLastUpdateTimestamp") > 0);
                break;
            }
            // The index follows the log.
            assert!(answer.code == 22 && std::time::Instant::now() < deadline, "{key}: {:?}", answer.remark);
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
    let answer = broker.call(query("nothing")).await;
    assert_eq!((answer.code, remark(&answer)), (22, "can not find message, maybe time range not correct"));
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_sync_flush_the_answer_comes_after_the_disk() {
    let folder = folder();
    let broker = start(folder.path(), |settings| {
        settings.store.flush_disk_type = service::keys::FlushDiskType::SyncFlush;
    })
    .await;
    for number in 0..20 {
        assert_eq!(
            broker.sent(&Send::new("T1", b"x").with("WAIT", if number % 2 == 0 { "true" } else { "false" })).await,
            number
        );
    }
    assert_eq!(broker.pull_all("T1", 0, 20).await.len(), 20);
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_there_after_a_restart() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    for number in 0..50 {
        broker.sent(&Send::new("T1", format!("m{number}").as_bytes())).await;
    }
    broker.stop().await;
    let broker = start(folder.path(), |_| {}).await;
    assert_eq!(broker.sent(&Send::new("T1", b"m50")).await, 50);
    let all = broker.pull_all("T1", 0, 51).await;
    for (number, message) in all.iter().enumerate() {
        assert_eq!((message.queue_offset, message.body.as_str()), (number as i64, format!("m{number}").as_str()));
    }
    broker.stop().await;
}
