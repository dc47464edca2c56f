//! Every request code with no fields, with wrong ones and with extreme ones, with and without a body that is no JSON.

use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bytes::BytesMut;
use protocol::{Command, SerializeType, request_code};
use rocketmq_tests::wire::Wire;

use crate::rig::{Rig, TOPIC, random};

/// Names of header fields over all requests.
const TEXTS: &[&str] = &[
    "topic",
    "consumerGroup",
    "producerGroup",
    "group",
    "groupName",
    "clientID",
    "clientId",
    "clusterName",
    "cluster",
    "brokerName",
    "brokerAddr",
    "haServerAddr",
    "namespace",
    "key",
    "value",
    "srcGroup",
    "destGroup",
    "compareGroup",
    "filterGroups",
    "subscription",
    "expressionType",
    "properties",
    "defaultTopic",
    "topicFilterType",
    "attributes",
    "topicList",
    "statsName",
    "statsKey",
    "msgId",
    "originMsgId",
    "originTopic",
    "boundaryType",
    "order",
    "force",
    "committed",
    "setZeroIfNotFound",
    "unitMode",
    "batch",
    "compressed",
    "isOrder",
    "isForce",
    "offline",
    "changed",
    "jstackEnable",
    "enableActingMaster",
    "transactionId",
    "extraInfo",
    "readable",
    "a",
    "b",
    "c",
    "i",
    "j",
    "k",
    "l",
    "m",
    "n",
];
const NUMBERS: &[&str] = &[
    "queueId",
    "queueOffset",
    "offset",
    "maxMsgNums",
    "maxMsgBytes",
    "maxNum",
    "sysFlag",
    "commitOffset",
    "subVersion",
    "suspendTimeoutMillis",
    "timestamp",
    "beginTimestamp",
    "endTimestamp",
    "flag",
    "bornTimestamp",
    "reconsumeTimes",
    "maxReconsumeTimes",
    "delayLevel",
    "defaultTopicQueueNums",
    "perm",
    "readQueueNums",
    "writeQueueNums",
    "topicSysFlag",
    "index",
    "count",
    "brokerId",
    "bodyCrc32",
    "heartbeatTimeoutMillis",
    "groupSysFlag",
    "tranStateTableOffset",
    "commitLogOffset",
    "fromTransactionCheck",
    "invisibleTime",
    "bornTime",
    "pollTime",
    "initMode",
    "reviveQid",
    "popTime",
    "topicSeq",
    "groupSeq",
    "maxTopicNum",
    "maxGroupNum",
    "d",
    "e",
    "f",
    "g",
    "h",
    "o",
];
const WORDS: &[&str] = &[
    "",
    " ",
    "null",
    "true",
    "x",
    TOPIC,
    "../x",
    "a/b",
    ".",
    "..",
    "\0",
    "%RETRY%",
    "%DLQ%",
    "TBW102",
    "[",
    "{}",
    "\u{1}\u{2}",
];
const EXTREMES: &[&str] = &[
    "0",
    "-1",
    "1",
    "2147483647",
    "-2147483648",
    "2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "99999999999999999999999999",
    "1.5",
    "1e9",
    "NaN",
    "",
    " 1",
    "0x10",
    "-",
];

/// All codes Java has, and some it has not.
fn codes() -> impl Iterator<Item = i32> {
    (-2..1_100).chain(1_900..2_100).chain(200_040..200_090)
}

/// What would end the test and not the server: a change of the configuration, or of the one topic that must live on.
fn is_harmless(code: i32) -> bool {
    !matches!(code, request_code::UPDATE_BROKER_CONFIG | request_code::UPDATE_NAMESRV_CONFIG)
}

/// Sends the requests one behind the other and then asks something known, on one connection.
fn send_all(address: SocketAddr, requests: impl Iterator<Item = Command>) -> Result<()> {
    let mut wire = Wire::connect(address)?;
    let mut out = BytesMut::new();
    let mut count = 0;
    for mut request in requests {
        count += 1;
        request.opaque = count;
        request.encode(&mut out);
        if out.len() > 64 * 1024 {
            wire.stream().write_all(&out)?;
            out.clear();
            // Answers are read, so that the connection does not fill up.
            wire.stream().set_read_timeout(Some(Duration::from_millis(1)))?;
            while wire.read().is_ok() {}
        }
    }
    wire.stream().write_all(&out)?;
    let mut last = Command::request(9_999);
    last.opaque = i32::MAX;
    let mut out = BytesMut::new();
    last.encode(&mut out);
    wire.stream().write_all(&out)?;
    wire.stream().set_read_timeout(Some(Duration::from_secs(10)))?;
    let deadline = Instant::now() + Duration::from_secs(20);
    while wire.read()?.opaque != i32::MAX {
        ensure!(Instant::now() < deadline, "no answer behind {count} requests");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_code_with_nothing() -> Result<()> {
    let mut rig = Rig::start("").await?;
    for address in rig.addresses() {
        for serialize in [SerializeType::Json, SerializeType::Binary] {
            send_all(address, codes().map(|code| Command { serialize, ..Command::request(code) }))?;
        }
    }
    rig.unharmed(200, 250).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_code_with_bodies_that_are_none() -> Result<()> {
    let mut rig = Rig::start("").await?;
    let deep = "[".repeat(100_000);
    let wide = format!("{{\"a\":{}1{}}}", "{\"a\":".repeat(50_000), "}".repeat(50_000));
    let bodies: [&[u8]; 9] =
        [b"x", b"{", b"[]", b"null", b"{\"a\":", b"\"text", b"\xFF\xFE\x00", deep.as_bytes(), wide.as_bytes()];
    for address in rig.addresses() {
        for body in bodies {
            // Long bodies only where bodies are read at all.
            let wanted = |code: &i32| is_harmless(*code) && (body.len() < 100 || (10..400).contains(code));
            send_all(address, codes().filter(wanted).map(|code| Command::request(code).with_body(body.to_vec())))?;
        }
    }
    rig.unharmed(200, 1_000).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_code_with_random_fields() -> Result<()> {
    let mut rig = Rig::start("").await?;
    let mut random = random();
    for address in rig.addresses() {
        for _ in 0..3 {
            let requests = codes().filter(|code| is_harmless(*code)).map(|code| {
                let mut request = Command::request(code).with_body(vec![b'x'; random.usize(..20)]);
                let density = random.f64();
                for field in TEXTS {
                    if random.f64() < density {
                        request = request.with_field(field, WORDS[random.usize(..WORDS.len())]);
                    }
                }
                for field in NUMBERS {
                    if random.f64() < density {
                        request = request.with_field(field, EXTREMES[random.usize(..EXTREMES.len())]);
                    }
                }
                if random.bool() {
                    request.serialize = SerializeType::Binary;
                }
                request
            });
            send_all(address, requests)?;
        }
    }
    let admin = client::Admin::new(rig.cluster.clone());
    admin.create_topic_everywhere(TOPIC, 1).await?;
    rig.unharmed(250, 2_500).await
}

/// The hot requests on a topic that exists, one number out of range at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extreme_numbers_on_a_real_topic() -> Result<()> {
    let mut rig = Rig::start("").await?;
    for _ in 0..50 {
        rig.round_trip().await?;
    }
    let fields: &[(i32, &[(&'static str, &str)])] = &[
        (
            request_code::PULL_MESSAGE,
            &[
                ("consumerGroup", "G"),
                ("topic", TOPIC),
                ("queueId", "0"),
                ("queueOffset", "0"),
                ("maxMsgNums", "32"),
                ("sysFlag", "4"),
                ("commitOffset", "0"),
                ("suspendTimeoutMillis", "10"),
                ("subscription", "*"),
                ("subVersion", "0"),
                ("maxMsgBytes", "1000"),
            ],
        ),
        (
            request_code::PULL_MESSAGE,
            &[
                ("consumerGroup", "G"),
                ("topic", TOPIC),
                ("queueId", "0"),
                ("queueOffset", "1000"),
                ("maxMsgNums", "32"),
                ("sysFlag", "7"),
                ("commitOffset", "0"),
                ("suspendTimeoutMillis", "10"),
                ("subscription", "*"),
                ("subVersion", "0"),
            ],
        ),
        (request_code::SEARCH_OFFSET_BY_TIMESTAMP, &[("topic", TOPIC), ("queueId", "0"), ("timestamp", "0")]),
        (request_code::GET_MAX_OFFSET, &[("topic", TOPIC), ("queueId", "0")]),
        (request_code::GET_MIN_OFFSET, &[("topic", TOPIC), ("queueId", "0")]),
        (request_code::GET_EARLIEST_MSG_STORETIME, &[("topic", TOPIC), ("queueId", "0")]),
        (request_code::QUERY_CONSUMER_OFFSET, &[("consumerGroup", "G"), ("topic", TOPIC), ("queueId", "0")]),
        (
            request_code::UPDATE_CONSUMER_OFFSET,
            &[("consumerGroup", "G"), ("topic", TOPIC), ("queueId", "0"), ("commitOffset", "1")],
        ),
        (request_code::VIEW_MESSAGE_BY_ID, &[("offset", "0")]),
        (
            request_code::QUERY_MESSAGE,
            &[
                ("topic", TOPIC),
                ("key", "k"),
                ("maxNum", "32"),
                ("beginTimestamp", "0"),
                ("endTimestamp", "9223372036854775807"),
            ],
        ),
        (
            request_code::QUERY_CONSUME_QUEUE,
            &[("topic", TOPIC), ("queueId", "0"), ("index", "0"), ("count", "10"), ("consumerGroup", "G")],
        ),
        (request_code::GET_CONSUME_STATS, &[("consumerGroup", "G"), ("topic", TOPIC)]),
        (request_code::QUERY_CONSUME_TIME_SPAN, &[("topic", TOPIC), ("group", "G")]),
        (
            request_code::INVOKE_BROKER_TO_RESET_OFFSET,
            &[
                ("topic", TOPIC),
                ("group", "G"),
                ("timestamp", "0"),
                ("isForce", "true"),
                ("queueId", "0"),
                ("offset", "0"),
            ],
        ),
        (
            request_code::CONSUMER_SEND_MSG_BACK,
            &[("offset", "0"), ("group", "G"), ("delayLevel", "0"), ("maxReconsumeTimes", "16")],
        ),
        (
            request_code::SEND_MESSAGE,
            &[
                ("producerGroup", "P"),
                ("topic", TOPIC),
                ("defaultTopic", "TBW102"),
                ("defaultTopicQueueNums", "4"),
                ("queueId", "0"),
                ("sysFlag", "0"),
                ("bornTimestamp", "0"),
                ("flag", "0"),
                ("properties", ""),
                ("reconsumeTimes", "0"),
                ("maxReconsumeTimes", "16"),
            ],
        ),
    ];
    let is_number = |text: &str| text.parse::<i64>().is_ok();
    let mut requests = Vec::new();
    for (code, fields) in fields {
        for (wrong, value) in *fields {
            let values = if is_number(value) { EXTREMES } else { WORDS };
            for extreme in values {
                let mut request = Command::request(*code).with_body(b"body".to_vec());
                for (name, value) in *fields {
                    request = request.with_field(name, if name == wrong { *extreme } else { *value });
                }
                requests.push(request);
            }
        }
    }
    send_all(rig.broker.address, requests.into_iter())?;
    rig.unharmed(200, 300).await
}

/// A topic may be given any number of queues by an operator; asking for its state must not take memory for each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_of_two_thousand_million_queues() -> Result<()> {
    let mut rig = Rig::start("").await?;
    let mut wire = Wire::connect(rig.broker.address)?;
    for (name, queues) in [("Wide", "2147483647"), ("Negative", "-2147483648"), ("None", "0")] {
        let create = Command::request(request_code::UPDATE_AND_CREATE_TOPIC)
            .with_field("topic", name)
            .with_field("defaultTopic", "TBW102")
            .with_field("readQueueNums", queues)
            .with_field("writeQueueNums", queues)
            .with_field("perm", "6")
            .with_field("topicFilterType", "SINGLE_TAG")
            .with_field("topicSysFlag", "0")
            .with_field("order", "false");
        let answer = wire.ask(&create)?;
        println!("{name}: {} {:?}", answer.code, answer.remark);
        for code in [
            request_code::GET_TOPIC_STATS_INFO,
            request_code::GET_CONSUME_STATS,
            request_code::QUERY_CONSUME_TIME_SPAN,
            request_code::INVOKE_BROKER_TO_RESET_OFFSET,
            request_code::GET_CONSUME_STATS,
        ] {
            let ask = Command::request(code)
                .with_field("topic", name)
                .with_field("topicList", name)
                .with_field("group", "TOOLS_CONSUMER")
                .with_field("consumerGroup", "TOOLS_CONSUMER")
                .with_field("timestamp", "0")
                .with_field("isForce", "true");
            let answer = wire.ask(&ask)?;
            ensure!(answer.body.len() < 1024 * 1024, "code {code} is answered with {} bytes", answer.body.len());
        }
        for queue in ["0", "-1", "2147483646"] {
            let send = Command::request(request_code::SEND_MESSAGE)
                .with_field("producerGroup", "P")
                .with_field("topic", name)
                .with_field("defaultTopic", "TBW102")
                .with_field("defaultTopicQueueNums", "4")
                .with_field("queueId", queue)
                .with_field("sysFlag", "0")
                .with_field("bornTimestamp", "0")
                .with_field("flag", "0")
                .with_body(b"x".to_vec());
            wire.ask(&send)?;
        }
    }
    rig.unharmed(200, 60).await
}
