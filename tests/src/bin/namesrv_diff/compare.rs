//! When two answers count as the same.

use std::collections::BTreeMap;

use protocol::{Command, request_code as code};
use serde_json::Value;

/// What of an answer a peer would notice, with everything taken out that may differ: the order of rows and lists, which
/// is a hash map's in Java, and texts that name Java classes.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    code: i32,
    remark: Option<String>,
    fields: BTreeMap<String, String>,
    /// Of equal content, equal lengths mean equal spelling: the same dialect, the same escapes.
    length: usize,
    body: Value,
}

pub(crate) fn seen(request: &Command, answer: &Command) -> Seen {
    let mut remark = answer.remark.as_deref().map(str::to_owned);
    if answer.code == 1 && remark.as_deref().is_some_and(|text| text.contains("Exception") || text.contains("decode")) {
        remark = Some("failed".to_owned());
    }
    if answer.code == 0 && remark.as_deref() == Some("not set any response code") {
        // Java forgets to clear it in GET_BROKER_MEMBER_GROUP's answer.
        remark = None;
    }
    let mut fields: BTreeMap<String, String> =
        answer.fields.iter().map(|(key, value)| (key.into_owned(), value.into_owned())).collect();
    // Java writes a null remark and no fields alike; an empty value does not exist in binary headers.
    fields.retain(|_, value| !value.is_empty());
    let mut length = answer.body.len();
    let mut body = if answer.body.is_empty() {
        Value::Null
    } else if request.code == code::GET_NAMESRV_CONFIG {
        length = 0;
        config(&answer.body)
    } else {
        protocol::json::parse(&answer.body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&answer.body).into()))
    };
    if request.code == code::GET_ROUTEINFO_BY_TOPIC && request.fields.get("__ZONE_MODE").is_some() {
        // Java writes the filtered answer in the legacy dialect, whatever was asked for.
        length = 0;
    }
    if request.code == code::GET_SYSTEM_TOPIC_LIST_FROM_NS {
        // Any broker's address will do, and there is at most one.
        if let Some(addr) = body.get_mut("brokerAddr") {
            *addr = Value::Bool(true);
        }
    }
    sort(&mut body);
    Seen { code: answer.code, remark, fields, length, body }
}

impl Seen {
    /// Where `java` differs.
    pub(crate) fn difference(&self, java: &Self) -> String {
        let mut out = Vec::new();
        if (self.code, &self.remark, &self.fields) != (java.code, &java.remark, &java.fields) {
            let head = |seen: &Self| format!("{} {:?} {:?}", seen.code, seen.remark, seen.fields);
            out.push(format!("ours {}\n    java {}", head(self), head(java)));
        }
        if self.length != java.length {
            out.push(format!("body of {} bytes, Java's of {}", self.length, java.length));
        }
        differences("body", &self.body, &java.body, &mut out);
        out.join("\n    ")
    }
}

fn differences(at: &str, ours: &Value, java: &Value, out: &mut Vec<String>) {
    match (ours, java) {
        _ if ours == java => {}
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let null = Value::Null;
                let (one, other) = (one.get(key).unwrap_or(&null), other.get(key).unwrap_or(&null));
                differences(&format!("{at}.{key}"), one, other, out);
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            let only = |these: &[Value], those: &[Value]| -> Vec<String> {
                these.iter().filter(|item| !those.contains(item)).map(Value::to_string).collect()
            };
            let (ours, java) = (only(one, other), only(other, one));
            out.push(format!("{at}: only ours {ours:?}, only Java's {java:?}"));
        }
        _ => out.push(format!("{at}: ours {ours}, java {java}")),
    }
}

/// The keys of the name server itself, but for paths: the other ones belong to Netty.
fn config(body: &[u8]) -> Value {
    let text = String::from_utf8_lossy(body);
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let known = [
        "supportActingMaster",
        "notifyMinBrokerIdChanged",
        "orderMessageEnable",
        "deleteTopicWithBrokerRegistration",
        "returnOrderTopicConfigToBroker",
        "enableAllTopicList",
        "enableTopicList",
        "needWaitForService",
        "waitSecondsForService",
        "configBlackList",
        "unRegisterBrokerQueueCapacity",
        "scanNotActiveBrokerInterval",
        "clusterTest",
        "productEnvName",
    ];
    let kept = lines.filter(|(key, _)| known.contains(key) || *key == "nobodyKnowsIt");
    Value::Object(kept.map(|(key, value)| (key.to_owned(), value.into())).collect())
}

fn sort(value: &mut Value) {
    match value {
        Value::Array(list) => {
            list.iter_mut().for_each(sort);
            list.sort_by_cached_key(|item| item.to_string());
        }
        Value::Object(map) => {
            map.values_mut().for_each(sort);
            map.sort_keys();
        }
        _ => {}
    }
}
