//! Which names topics and groups may have, and which belong to the system.

/// The template from which sends to unknown topics create them.
pub const AUTO_CREATE_TOPIC: &str = "TBW102";
pub const SCHEDULE_TOPIC: &str = "SCHEDULE_TOPIC_XXXX";
pub const BENCHMARK_TOPIC: &str = "BenchmarkTest";
pub const TRANS_HALF_TOPIC: &str = "RMQ_SYS_TRANS_HALF_TOPIC";
pub const TRANS_OP_HALF_TOPIC: &str = "RMQ_SYS_TRANS_OP_HALF_TOPIC";
/// Java 5.4.0 makes these whatever store holds transactions; they show in every topic list.
pub const ROCKSDB_TRANS_HALF_TOPIC: &str = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC";
pub const ROCKSDB_TRANS_OP_HALF_TOPIC: &str = "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC";
pub const TRANS_CHECK_MAX_TIME_TOPIC: &str = "TRANS_CHECK_MAX_TIME_TOPIC";
pub const TRACE_TOPIC: &str = "RMQ_SYS_TRACE_TOPIC";
pub const SELF_TEST_TOPIC: &str = "SELF_TEST_TOPIC";
pub const OFFSET_MOVED_EVENT: &str = "OFFSET_MOVED_EVENT";
pub const CHECKPOINT_TOPIC: &str = "CHECKPOINT_TOPIC";
pub const TIMER_TOPIC: &str = "rmq_sys_wheel_timer";
pub const REPLY_TOPIC_POSTFIX: &str = "REPLY_TOPIC";
pub const REVIVE_TOPIC_PREFIX: &str = "rmq_sys_REVIVE_LOG_";
pub const SYNC_BROKER_MEMBER_PREFIX: &str = "rmq_sys_SYNC_BROKER_MEMBER_";
pub const SYSTEM_TOPIC_PREFIX: &str = "rmq_sys_";

pub const RETRY_PREFIX: &str = "%RETRY%";
/// Light message queues and the groups that read them; neither is in a table.
pub const LIGHT_PREFIX: &str = "%LMQ%";
pub const DLQ_PREFIX: &str = "%DLQ%";
pub const SYSTEM_GROUP_PREFIX: &str = "CID_RMQ_SYS_";

/// Groups that exist on every broker.
pub const BUILT_IN_GROUPS: [&str; 8] = [
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    "CID_RMQ_SYS_TRANS",
];

pub const PERM_PRIORITY: i32 = 8;
pub const PERM_READ: i32 = 4;
pub const PERM_WRITE: i32 = 2;
pub const PERM_INHERIT: i32 = 1;

const TOPIC_MAX: usize = 127;
/// A group's retry topics carry its name and a topic's, so it must stay shorter.
const GROUP_MAX: usize = 120;
const RETRY_OR_DLQ_MAX: usize = 255;

const SYSTEM_TOPICS: [&str; 12] = [
    AUTO_CREATE_TOPIC,
    SCHEDULE_TOPIC,
    BENCHMARK_TOPIC,
    TRANS_HALF_TOPIC,
    TRACE_TOPIC,
    TRANS_OP_HALF_TOPIC,
    TRANS_CHECK_MAX_TIME_TOPIC,
    SELF_TEST_TOPIC,
    OFFSET_MOVED_EVENT,
    CHECKPOINT_TOPIC,
    ROCKSDB_TRANS_HALF_TOPIC,
    ROCKSDB_TRANS_OP_HALF_TOPIC,
];

const NOT_FOR_CLIENTS: [&str; 8] = [
    SCHEDULE_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
    TRANS_CHECK_MAX_TIME_TOPIC,
    SELF_TEST_TOPIC,
    OFFSET_MOVED_EVENT,
    ROCKSDB_TRANS_HALF_TOPIC,
    ROCKSDB_TRANS_OP_HALF_TOPIC,
];

/// The topic a group's failed messages come back through.
pub fn retry_topic(group: &str) -> String {
    format!("{RETRY_PREFIX}{group}")
}

/// The topic a group's hopeless messages end in.
pub fn dead_letter_topic(group: &str) -> String {
    format!("{DLQ_PREFIX}{group}")
}

/// Topics every broker knows by name, whatever its configuration.
pub fn is_well_known_system_topic(topic: &str) -> bool {
    SYSTEM_TOPICS.contains(&topic) || topic.starts_with(SYSTEM_TOPIC_PREFIX)
}

pub fn well_known_system_topics() -> impl Iterator<Item = &'static str> {
    SYSTEM_TOPICS.into_iter()
}

/// Topics the broker writes itself; a client's send to one is refused.
pub fn clients_may_send_to(topic: &str) -> bool {
    !NOT_FOR_CLIENTS.contains(&topic)
}

pub fn is_system_group(group: &str) -> bool {
    group.starts_with(SYSTEM_GROUP_PREFIX)
}

fn legal(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'%' | b'|' | b'-' | b'_'))
}

/// Checks a topic name; the error is the remark the asker gets.
pub fn check_topic(topic: &str) -> Result<(), String> {
    if topic.trim().is_empty() {
        return Err("The specified topic is blank.".to_owned());
    }
    if !legal(topic) {
        return Err(format!(
            "The specified topic: {topic}, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
        ));
    }
    if topic.starts_with(RETRY_PREFIX) || topic.starts_with(DLQ_PREFIX) {
        if topic.len() > RETRY_OR_DLQ_MAX {
            return Err(format!(
                "The specified topic is DLQ or Retry topic: {topic}, and it's longer than topic max length: {RETRY_OR_DLQ_MAX}"
            ));
        }
    } else if topic.len() > TOPIC_MAX {
        return Err(format!("The specified topic: {topic}, is longer than topic max length: {TOPIC_MAX}"));
    }
    Ok(())
}

/// Checks a group name; the error is the remark the asker gets.
pub fn check_group(group: &str) -> Result<(), String> {
    if group.trim().is_empty() {
        return Err("The specified group is blank.".to_owned());
    }
    if !legal(group) {
        return Err(format!(
            "The specified group: {group}, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
        ));
    }
    if group.len() > GROUP_MAX {
        return Err(format!("The specified group: {group}, is longer than group max length: {GROUP_MAX}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_as_java_does() {
        for good in ["T", "a-b_C%|9", &"x".repeat(127), &format!("%RETRY%{}", "g".repeat(240))] {
            assert_eq!(check_topic(good), Ok(()), "{good}");
        }
        for bad in ["", "  ", "a b", "tópic", "a.b", "a/b", "..", &"x".repeat(128), &"%DLQ%".repeat(60)] {
            assert!(check_topic(bad).is_err(), "{bad}");
        }
        assert!(check_group(&"g".repeat(120)).is_ok() && check_group(&"g".repeat(121)).is_err());
        assert!(check_group("").is_err() && check_group("g@h").is_err());
    }
}
