//! JSON bodies: what Java 5.4.0 writes, byte for byte, and what other clients send.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use protocol::body::*;
use protocol::json::{self, JsonError};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn legacy(value: &(impl Serialize + ?Sized)) -> String {
    String::from_utf8(json::to_legacy(value)).unwrap()
}

/// Reads Java's text and writes it again.
#[track_caller]
fn round<T: Serialize + DeserializeOwned>(java: &str) -> T {
    let value: T = json::from_str(java).unwrap();
    assert_eq!(legacy(&value), java);
    value
}

#[test]
fn bodies_have_javas_bytes() {
    let stats: TopicStatsTable = round(
        r#"{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:{"lastUpdateTimestamp":0,"maxOffset":5,"minOffset":0},{"brokerName":"b","queueId":10,"topic":"T"}:{"lastUpdateTimestamp":0,"maxOffset":5,"minOffset":0}},"topicPutTps":0.0}"#,
    );
    assert_eq!(stats.offset_table[&MessageQueue::new("T", "b", 10)].max_offset, 5);
    round::<ConsumeStats>(
        r#"{"consumeTps":1.23456789E7,"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:{"brokerOffset":0,"consumerOffset":0,"lastTimestamp":0,"pullOffset":0}}}"#,
    );
    let route: TopicRouteData = round(
        r#"{"brokerDatas":[{"brokerAddrs":{0:"1.1.1.1:1",1:"2:2"},"brokerName":"b","cluster":"c","enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"b","perm":0,"readQueueNums":0,"topicSysFlag":0,"writeQueueNums":0}]}"#,
    );
    assert_eq!(
        String::from_utf8(json::to_standard(&route)).unwrap(),
        r#"{"brokerDatas":[{"brokerAddrs":{"0":"1.1.1.1:1","1":"2:2"},"brokerName":"b","cluster":"c","enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"b","perm":0,"readQueueNums":0,"topicSysFlag":0,"writeQueueNums":0}]}"#
    );
    round::<ClusterInfo>(
        r#"{"brokerAddrTable":{"b":{"brokerAddrs":{0:"1.1.1.1:1",1:"2:2"},"brokerName":"b","cluster":"c","enableActingMaster":false}},"clusterAddrTable":{"c":["b"]}}"#,
    );
    round::<HeartbeatData>(
        r#"{"clientID":"c","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET","consumeType":"CONSUME_PASSIVELY","groupName":"g","messageModel":"CLUSTERING","subscriptionDataSet":[{"classFilterMode":false,"codeSet":[65],"expressionType":"TAG","subString":"A || B","subVersion":1,"tagsSet":["A"],"topic":"T"}],"unitMode":false}],"heartbeatFingerprint":0,"producerDataSet":[{"groupName":"pg"}],"withoutSub":false}"#,
    );
    round::<SubscriptionGroupConfig>(
        r#"{"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,"consumeMessageOrderly":false,"consumeTimeoutMinute":15,"groupName":"g","groupRetryPolicy":{"exponentialRetryPolicy":{"initial":5000,"max":7200000,"multiplier":2},"type":"EXPONENTIAL"},"groupSysFlag":0,"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}"#,
    );
    let custom = GroupRetryPolicy { customized_retry_policy: Some(Default::default()), ..Default::default() };
    assert_eq!(
        legacy(&custom),
        r#"{"customizedRetryPolicy":{"next":[1000,5000,10000,30000,60000,120000,180000,240000,300000,360000,420000,480000,540000,600000,1200000,1800000,3600000,7200000]},"type":"CUSTOMIZED"}"#
    );
    round::<TopicConfigAndQueueMapping>(
        r#"{"attributes":{"cleanup.policy":"DELETE"},"mappingDetail":{"bname":"b","currIdMap":{0:0},"dirty":false,"epoch":3,"hostedQueues":{0:[{"bname":"b","endOffset":-1,"gen":0,"logicOffset":0,"queueId":0,"startOffset":0,"timeOfEnd":-1,"timeOfStart":-1}]},"scope":"__global__","topic":"T","totalQueues":2},"order":false,"perm":6,"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"T","topicSysFlag":0,"writeQueueNums":8}"#,
    );
    round::<LockBatchResponseBody>(r#"{"lockOKMQSet":[{"brokerName":"b","queueId":0,"topic":"T"}]}"#);
    round::<GetConsumerStatusBody>(
        r#"{"consumerTable":{"cid":{{"brokerName":"b","queueId":0,"topic":"T"}:7}},"messageQueueTable":{}}"#,
    );
    round::<BrokerStatsData>(
        r#"{"statsDay":{"avgpt":0.0,"sum":0,"tps":0.0},"statsHour":{"avgpt":0.0,"sum":0,"tps":0.0}}"#,
    );
    round::<ConsumerOffsetSerializeWrapper>(
        r#"{"dataVersion":{"counter":0,"stateVersion":0,"timestamp":1},"offsetTable":{"T2@g":{},"T@g":{0:5,1:7,10:8}}}"#,
    );
    round::<TopicConfigAndMappingSerializeWrapper>(
        r#"{"dataVersion":{"counter":0,"stateVersion":0,"timestamp":1},"mappingDataVersion":{"counter":0,"stateVersion":0,"timestamp":2},"topicConfigTable":{"T":{"attributes":{"cleanup.policy":"DELETE"},"order":false,"perm":6,"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"T","topicSysFlag":0,"writeQueueNums":8}},"topicQueueMappingDetailMap":{},"topicQueueMappingInfoMap":{}}"#,
    );
    round::<BrokerMemberGroup>(r#"{"brokerAddrs":{},"brokerName":"b","cluster":"c"}"#);
    round::<KvTable>(r#"{"table":{"a":"2","b":"1"}}"#);
}

#[test]
fn files_have_javas_shape() {
    let mut topics = TopicConfigSerializeWrapper::default();
    topics.data_version.timestamp = 1;
    topics.topic_config_table.insert(
        "T".into(),
        TopicConfig { topic_name: "T".into(), read_queue_nums: 8, write_queue_nums: 8, ..Default::default() },
    );
    let text = String::from_utf8(json::to_pretty(&topics)).unwrap();
    let expected = "{\n\t\"dataVersion\":{\n\t\t\"counter\":0,\n\t\t\"stateVersion\":0,\n\t\t\"timestamp\":1\n\t},\n\t\"topicConfigTable\":{\n\t\t\"T\":{\n\t\t\t\"attributes\":{\n\t\t\t\t\n\t\t\t},\n\t\t\t\"order\":false,\n\t\t\t\"perm\":6,\n\t\t\t\"readQueueNums\":8,\n\t\t\t\"topicFilterType\":\"SINGLE_TAG\",\n\t\t\t\"topicName\":\"T\",\n\t\t\t\"topicSysFlag\":0,\n\t\t\t\"writeQueueNums\":8\n\t\t}\n\t}\n}";
    assert_eq!(text, expected);
    assert_eq!(json::from_str::<TopicConfigSerializeWrapper>(&text).unwrap(), topics);
    let mut delay = DelayOffsetSerializeWrapper::default();
    delay.offset_table.extend([(2, 20), (10, 1), (1, 100)]);
    assert_eq!(
        String::from_utf8(json::to_pretty(&delay)).unwrap(),
        "{\n\t\"offsetTable\":{\n\t\t1:100,\n\t\t2:20,\n\t\t10:1\n\t}\n}"
    );
    // What fastjson 1 wrote: integer keys on one line.
    let old: DelayOffsetSerializeWrapper =
        json::from_str("{\n\t\"dataVersion\":{\"counter\":1},\n\t\"offsetTable\":{1:100,2:20\n\t}\n}").unwrap();
    assert_eq!(old.offset_table, BTreeMap::from([(1, 100), (2, 20)]));
    let list: BTreeMap<&str, Vec<serde_json::Value>> =
        BTreeMap::from([("a", vec![]), ("b", vec![1.into(), 2.into()]), ("c", vec!["x".into()])]);
    assert_eq!(
        String::from_utf8(json::to_pretty(&list)).unwrap(),
        "{\n\t\"a\":[\n\t\t\n\t],\n\t\"b\":[1,2],\n\t\"c\":[\n\t\t\"x\"\n\t]\n}"
    );
}

#[test]
fn numbers_and_texts_are_written_as_java_does() {
    for (number, text) in [
        (0.1, "0.1"),
        (0.001, "0.001"),
        (9.99e-4, "9.99E-4"),
        (1e7, "1.0E7"),
        (9_999_999.0, "9999999.0"),
        (123_456.789, "123456.789"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1e20, "1.0E20"),
        (1e-7, "1.0E-7"),
        (1.0 / 3.0, "0.3333333333333333"),
        (f64::NAN, "null"),
    ] {
        assert_eq!(legacy(&[number]), format!("[{text}]"));
    }
    assert_eq!(
        legacy("é\u{2028}<&'\"\\/\u{1}\u{7f}\u{8}\u{c}\n\t中😀"),
        "\"é\u{2028}<&'\\\"\\\\/\\u0001\u{7f}\\b\\f\\n\\t中😀\""
    );
    let members: BTreeMap<&str, Option<i32>> = BTreeMap::from([("a", None), ("b", Some(1))]);
    assert_eq!(legacy(&members), r#"{"b":1}"#);
}

#[test]
fn heartbeats_of_other_clients() {
    let cpp: HeartbeatData = json::from_slice(
        b"{\"clientID\":\"1-10.0.0.1@DEFAULT\",\"consumerDataSet\":[{\"consumeFromWhere\":0,\"consumeType\":1,\"groupName\":\"g\",\"messageModel\":1,\"subscriptionDataSet\":[{\"codeSet\":[0,\"4294967295\"],\"subString\":\"a || b\",\"subVersion\":\"1700000000000\",\"tagsSet\":[\"a\",\"b\"],\"topic\":\"T\"}]}]}\n",
    )
    .unwrap();
    let consumer = &cpp.consumer_data_set[0];
    assert_eq!(
        (consumer.consume_type, consumer.message_model, consumer.consume_from_where),
        (ConsumeType::ConsumePassively, MessageModel::Clustering, ConsumeFromWhere::ConsumeFromLastOffset)
    );
    let subscription = &consumer.subscription_data_set[0];
    assert_eq!((subscription.sub_version, subscription.expression_type.as_str()), (1_700_000_000_000, "TAG"));
    assert!(subscription.code_set.contains(&-1));
    assert!(cpp.producer_data_set.is_empty());
    let numbers: ConsumerData = json::from_str(r#"{"consumeType":2,"messageModel":0,"consumeFromWhere":5}"#).unwrap();
    assert_eq!(
        (numbers.consume_type, numbers.message_model, numbers.consume_from_where),
        (ConsumeType::ConsumePop, MessageModel::Broadcasting, ConsumeFromWhere::ConsumeFromTimestamp)
    );

    let go: HeartbeatData = json::from_str(
        r#"{"clientID":"10.0.0.1@7","producerDataSet":null,"consumerDataSet":[{"groupName":"g","consumeType":"CONSUME_PASSIVELY","messageModel":"Clustering","consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","subscriptionDataSet":[{"classFilterMode":false,"topic":"T","subString":"*","tagsSet":[],"codeSet":[],"subVersion":1,"expressionType":"TAG"}],"unitMode":false}]}"#,
    )
    .unwrap();
    assert_eq!(go.consumer_data_set[0].message_model, MessageModel::Clustering);
    assert!(json::from_str::<ConsumerData>(r#"{"messageModel":7}"#).is_err());
    assert!(json::from_str::<ConsumerData>(r#"{"messageModel":"SHARED"}"#).is_err());
}

#[test]
fn the_reader_is_lenient() {
    let text = "\u{feff} // first\n{ table : {'a' : 1, b:true, \"c\":null, d : \"x\\u0041\\'\", 1: [1,2,], } /* end */ , other: {} };";
    assert!(matches!(json::from_str::<KvTable>(text), Err(JsonError::Syntax { .. })), "a semicolon is no blank");
    let table: KvTable = json::from_str(&text[..text.len() - 1]).unwrap();
    let expected: BTreeMap<String, String> =
        [("a", "1"), ("b", "true"), ("d", "xA'"), ("1", "[1,2]")].map(|(k, v)| (k.into(), v.into())).into();
    assert_eq!(table.table, expected);

    let topic: TopicConfig = json::from_str(
        r#"{"TopicName":"first","topicName":"T","read-queue-nums":"8","write_queue_nums":4.0,"perm":"6","order":"TRUE","attributes":null,"topicSysFlag":"","unknown":[{}]}"#,
    )
    .unwrap();
    assert_eq!((topic.topic_name.as_str(), topic.read_queue_nums, topic.write_queue_nums), ("T", 8, 4));
    assert!(topic.order && topic.attributes.is_empty());
    assert!(json::from_str::<TopicConfig>(r#"{"perm":99999999999}"#).is_err());
    assert!(json::from_str::<TopicConfig>(r#"{"perm":"x"}"#).is_err());
    assert!(json::from_str::<TopicConfig>("[]").is_err());
}

#[test]
fn references_are_followed() {
    let text = r#"{"brokerDatas":[{"brokerName":"a","brokerAddrs":{0:"x:1"}},{"$ref":"$.brokerDatas[0]"}]}"#;
    let route: TopicRouteData = json::from_str(text).unwrap();
    assert_eq!(route.broker_datas[0], route.broker_datas[1]);
    let circle = r#"{"a":{"b":{"$ref":"$.a"}}}"#;
    assert!(json::parse(circle.as_bytes()).is_err());
    assert_eq!(json::parse(br#"{"a":{"$ref":".."}}"#).unwrap(), serde_json::json!({"a": null}));
    // References to references double at each step; the reader gives up instead of filling the memory.
    let mut bomb = String::from(r#"{"a0":[1,1,1,1]"#);
    for at in 1..40 {
        bomb += &format!(r#","a{at}":[{{"$ref":"$.a{0}"}},{{"$ref":"$.a{0}"}}]"#, at - 1);
    }
    bomb.push('}');
    assert!(json::parse(bomb.as_bytes()).is_err());
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(json::parse(nested(json::DEEPEST).as_bytes()).is_ok());
    assert!(json::parse(nested(json::DEEPEST + 1).as_bytes()).is_err());
    assert!(json::parse("{a:".repeat(100_000).as_bytes()).is_err());
    for broken in ["", "{", "[1", "{\"a\"", "{a:1 b:2}", "\"x", "/", "/*/", "1 2", "{,:}", "-", "\\"] {
        assert!(json::parse(broken.as_bytes()).is_err(), "{broken}");
    }
    assert_eq!(json::parse(b"\xff"), Err(JsonError::NotUtf8));
}
