//! JSON bodies by all three writers, and the compressed registration.
//!
//! Java writes maps and sets in the order of their hashes, ours are sorted. So Java's text is read as a tree and
//! written sorted before it is compared; where Java's order happened to be the sorted one, the bytes are the same.

use std::collections::BTreeMap;
use std::io::Read;

use protocol::body::*;
use protocol::json::{self, Node};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{Vector, show, vectors};

/// What was read, written by the three writers.
struct Written {
    legacy: Vec<u8>,
    standard: Vec<u8>,
    pretty: Vec<u8>,
}

type Reader = fn(&[u8]) -> Result<Written, json::JsonError>;

fn reader<T: Serialize + DeserializeOwned>(text: &[u8]) -> Result<Written, json::JsonError> {
    let value: T = json::from_slice(text)?;
    Ok(Written {
        legacy: json::to_legacy(&value),
        standard: json::to_standard(&value),
        pretty: json::to_pretty(&value),
    })
}

macro_rules! readers {
    ($($java:literal $name:ident),* $(,)?) => {
        BTreeMap::from([$(($java, reader::<$name> as Reader)),*])
    };
}

fn readers() -> BTreeMap<&'static str, Reader> {
    readers! {
        "AclInfo" AclInfo,
        "BatchAck" BatchAck,
        "BatchAckMessageRequestBody" BatchAckMessageRequestBody,
        "BrokerData" BrokerData,
        "BrokerMemberGroup" BrokerMemberGroup,
        "BrokerReplicasInfo" BrokerReplicasInfo,
        "BrokerStatsData" BrokerStatsData,
        "BrokerStatsItem" BrokerStatsItem,
        "CheckClientRequestBody" CheckClientRequestBody,
        "ClusterInfo" ClusterInfo,
        "Connection" ClientConnection,
        "ConsumeMessageDirectlyResult" ConsumeMessageDirectlyResult,
        "ConsumeQueueData" ConsumeQueueData,
        "ConsumeStats" ConsumeStats,
        "ConsumeStatsList" ConsumeStatsList,
        "ConsumeStatus" ConsumeStatus,
        "ConsumerConnection" ConsumerConnection,
        "ConsumerData" ConsumerData,
        "ConsumerOffsetManager" ConsumerOffsetSerializeWrapper,
        "ConsumerOffsetSerializeWrapper" ConsumerOffsetSerializeWrapper,
        "ConsumerRunningInfo" ConsumerRunningInfo,
        "CreateTopicListRequestBody" CreateTopicListRequestBody,
        "CustomizedRetryPolicy" CustomizedRetryPolicy,
        "DataVersion" DataVersion,
        "ElectMasterResponseBody" ElectMasterResponseBody,
        "EpochEntryCache" EpochEntryCache,
        "ExponentialRetryPolicy" ExponentialRetryPolicy,
        "GetBrokerMemberGroupResponseBody" GetBrokerMemberGroupResponseBody,
        "GetConsumerStatusBody" GetConsumerStatusBody,
        "GroupForbidden" GroupForbidden,
        "GroupList" GroupList,
        "GroupRetryPolicy" GroupRetryPolicy,
        "HAClientRuntimeInfo" HaClientRuntimeInfo,
        "HAConnectionRuntimeInfo" HaConnectionRuntimeInfo,
        "HARuntimeInfo" HaRuntimeInfo,
        "HeartbeatData" HeartbeatData,
        "KVTable" KvTable,
        "LockBatchRequestBody" LockBatchRequestBody,
        "LockBatchResponseBody" LockBatchResponseBody,
        "LogicQueueMappingItem" LogicQueueMappingItem,
        "MessageRequestModeSerializeWrapper" MessageRequestModeSerializeWrapper,
        "OffsetWrapper" OffsetWrapper,
        "PolicyEntryInfo" PolicyEntryInfo,
        "PolicyInfo" PolicyInfo,
        "PopProcessQueueInfo" PopProcessQueueInfo,
        "ProcessQueueInfo" ProcessQueueInfo,
        "ProducerConnection" ProducerConnection,
        "ProducerData" ProducerData,
        "ProducerInfo" ProducerInfo,
        "ProducerTableInfo" ProducerTableInfo,
        "QueryAssignmentRequestBody" QueryAssignmentRequestBody,
        "QueryAssignmentResponseBody" QueryAssignmentResponseBody,
        "QueryConsumeQueueResponseBody" QueryConsumeQueueResponseBody,
        "QueryConsumeTimeSpanBody" QueryConsumeTimeSpanBody,
        "QueryCorrectionOffsetBody" QueryCorrectionOffsetBody,
        "QuerySubscriptionResponseBody" QuerySubscriptionResponseBody,
        "QueueData" QueueData,
        "QueueTimeSpan" QueueTimeSpan,
        "RegisterBrokerBody" RegisterBrokerBody,
        "ReplicaIdentity" ReplicaIdentity,
        "ReplicasInfo" ReplicasInfo,
        "ResetOffsetBody" ResetOffsetBody,
        "ResetOffsetBodyForC" ResetOffsetBodyForC,
        "SetMessageRequestModeRequestBody" SetMessageRequestModeRequestBody,
        "SimpleSubscriptionData" SimpleSubscriptionData,
        "SubscriptionData" SubscriptionData,
        "SubscriptionGroupConfig" SubscriptionGroupConfig,
        "SubscriptionGroupList" SubscriptionGroupList,
        "SubscriptionGroupManager" SubscriptionGroupWrapper,
        "SubscriptionGroupWrapper" SubscriptionGroupWrapper,
        "SyncStateSet" SyncStateSet,
        "TopicConfig" TopicConfig,
        "TopicConfigAndMappingSerializeWrapper" TopicConfigAndMappingSerializeWrapper,
        "TopicConfigAndQueueMapping" TopicConfigAndQueueMapping,
        "TopicConfigSerializeWrapper" TopicConfigSerializeWrapper,
        "TopicList" TopicList,
        "TopicOffset" TopicOffset,
        "TopicQueueMappingDetail" TopicQueueMappingDetail,
        "TopicQueueMappingInfo" TopicQueueMappingInfo,
        "TopicQueueMappingSerializeWrapper" TopicQueueMappingSerializeWrapper,
        "TopicRouteData" TopicRouteData,
        "TopicStatsTable" TopicStatsTable,
        "UnlockBatchRequestBody" UnlockBatchRequestBody,
        "UserInfo" UserInfo,
    }
}

/// Bodies that only the tool for static topics and nobody's wire uses.
const LEFT_OUT: [&str; 4] = ["ConsumeByWho", "OffsetMovedEvent", "TopicQueueMappingOne", "TopicRemappingDetailWrapper"];

/// Strict JSON of a tree, maps with objects for keys as the vectors write them, sorted.
fn strict(node: &Node<'_>) -> Value {
    match node {
        Node::List(items) => Value::Array(items.iter().map(strict).collect()),
        Node::Map(members) if members.iter().any(|(key, _)| matches!(key, Node::Map(_))) => {
            let mut entries: Vec<_> = members.iter().map(|(key, value)| json!([strict(key), strict(value)])).collect();
            entries.sort_by_key(Value::to_string);
            json!({ "@entries": entries })
        }
        Node::Map(members) => {
            let key =
                |key: &Node<'_>| key.to_value().as_str().map_or_else(|| key.to_value().to_string(), str::to_owned);
            Value::Object(members.iter().map(|(k, value)| (key(k), strict(value))).collect())
        }
        other => other.to_value(),
    }
}

/// Sorts what has no order in Java: the entries of maps and the items of sets.
fn unordered(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(unordered);
            items.sort_by_key(Value::to_string);
        }
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(unordered);
            members.sort_keys();
        }
        _ => {}
    }
}

fn sorted_tree(node: Node<'_>) -> Node<'_> {
    match node {
        Node::List(items) => {
            let mut items: Vec<_> = items.into_iter().map(sorted_tree).collect();
            items.sort_by_key(json::to_legacy);
            Node::List(items)
        }
        Node::Map(members) => Node::Map(members.into_iter().map(|(key, value)| (key, sorted_tree(value))).collect()),
        other => other,
    }
}

fn check(vector: &Vector, read: Reader) -> bool {
    let (name, text) = (&vector.name, vector.bytes());
    let written = read(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut ours = strict(&json::parse_node(&written.legacy).unwrap());
    let mut java = vector.expect().clone();
    for value in [&mut ours, &mut java] {
        unordered(value);
    }
    // Only absent members may come back as defaults.
    assert_absent_only(name, &java, &ours, "");
    if name.starts_with("empty/") {
        return false;
    }
    let (bytes, write): (_, fn(&Node<'_>) -> Vec<u8>) = match vector.line["writer"].as_str().unwrap() {
        "legacy" => (written.legacy, |node| json::to_legacy(node)),
        "standard" => (written.standard, |node| json::to_standard(node)),
        "pretty" => (written.pretty, |node| json::to_pretty(node)),
        other => panic!("{name}: unknown writer {other}"),
    };
    if bytes == text {
        return true;
    }
    let again = |text: &[u8]| show(&write(&sorted_tree(json::parse_node(text).unwrap())));
    let partial = name.contains("onsumerOffset") || name.starts_with("SubscriptionGroupConfig/defaults");
    if !partial {
        assert_eq!(again(&bytes), again(&text), "{name}");
    }
    false
}

/// Everything Java has, we have.
fn assert_absent_only(name: &str, java: &Value, ours: &Value, path: &str) {
    match (java, ours) {
        (Value::Object(java), Value::Object(ours)) => {
            for (key, value) in java {
                if key == "groupTopicMap" && name.contains("onsumerOffset") {
                    // Java's serialiser takes a getter for a property; Java itself never reads it.
                    continue;
                }
                let path = format!("{path}.{key}");
                let found = ours.get(key).unwrap_or_else(|| panic!("{name}: {path} is lost"));
                assert_absent_only(name, value, found, &path);
            }
        }
        (Value::Array(java), Value::Array(ours)) => {
            assert_eq!(java.len(), ours.len(), "{name}: {path}");
            java.iter().zip(ours).for_each(|(java, ours)| assert_absent_only(name, java, ours, path));
        }
        _ => assert_eq!(java, ours, "{name}: {path}"),
    }
}

#[test]
fn bodies_read_and_write_back() {
    let readers = readers();
    let (mut same, mut all) = (0, 0);
    for vector in vectors("bodies.jsonl").iter().filter(|vector| vector.kind() == "body") {
        let class = vector.line["class"].as_str().unwrap();
        // Standard JSON is only asked for in routes; Java's form of object keys in it is of no use to anybody.
        let entries = vector.expect().to_string().contains("@entries");
        if LEFT_OUT.contains(&class) || (entries && vector.line["writer"] == "standard") {
            continue;
        }
        let read = readers.get(class).unwrap_or_else(|| panic!("{}: no body for {class}", vector.name));
        same += usize::from(check(vector, *read));
        all += 1;
    }
    assert!(same * 10 >= all * 5, "only {same} of {all} bodies have Java's very bytes");
}

#[test]
fn compressed_registration() {
    for vector in vectors("bodies.jsonl").iter().filter(|vector| vector.kind() == "register_broker_compressed") {
        let bytes = vector.bytes();
        let body = RegisterBrokerBody::decode(&bytes, true, protocol::VERSION, 1 << 20).unwrap();
        assert_eq!(RegisterBrokerBody::decode(&bytes, false, protocol::VERSION, 1 << 20).unwrap(), body);
        let topics = &body.topic_config_serialize_wrapper.topic_config_table;
        let expected = &vector.expect()["topicConfigSerializeWrapper"]["topicConfigTable"];
        let mut expected: BTreeMap<String, TopicConfig> = json::from_str(&expected.to_string()).unwrap();
        for topic in expected.values_mut() {
            // The one-line form has no room for these.
            topic.order = false;
            topic.topic_sys_flag = 0;
        }
        assert_eq!(*topics, expected);
        // Topics come in hash order from Java, sorted from us: the same parts, so the same bytes when sorted.
        let sorted = |mut bytes: Vec<u8>| {
            bytes.sort_unstable();
            bytes
        };
        let mut plain = Vec::new();
        flate2::read::ZlibDecoder::new(&body.encode(true)[..]).read_to_end(&mut plain).unwrap();
        assert_eq!(sorted(plain), sorted(crate::hex(vector.line["inflatedHex"].as_str().unwrap())));
    }
}

#[test]
fn topic_lines() {
    for vector in vectors("bodies.jsonl").iter().filter(|vector| vector.kind() == "topic_config_text") {
        let line = String::from_utf8(vector.bytes()).unwrap();
        let topic = TopicConfig::from_line(&line).unwrap();
        assert_eq!(topic.to_line(), line);
        let mut expected: TopicConfig = json::from_str(&vector.expect().to_string()).unwrap();
        (expected.order, expected.topic_sys_flag) = (topic.order, topic.topic_sys_flag);
        assert_eq!(topic, expected, "{}", vector.name);
    }
}
