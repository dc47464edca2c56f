//! Topics nobody has to make: those of the system, and what stands for light message queues.

use protocol::body::TopicConfig;

use crate::names::{self, PERM_INHERIT, PERM_READ, PERM_WRITE};

/// The settings that decide which topics exist by themselves.
#[derive(Debug, Clone)]
pub struct TopicRules {
    pub cluster: String,
    pub broker_name: String,
    pub auto_create: bool,
    /// Queues of TBW102, and so at most of a topic made from it.
    pub default_queues: i32,
    pub cluster_topic: bool,
    pub broker_topic: bool,
    /// The trace topic's name, when there is to be one.
    pub trace_topic: Option<String>,
    pub revive_queues: i32,
    pub timer_wheel: bool,
    /// `enableLmq`: any light message queue can be read.
    pub light: bool,
}

/// What a light message queue's topic would say.
pub fn light_topic(name: &str) -> TopicConfig {
    TopicConfig {
        topic_name: name.to_owned(),
        read_queue_nums: 1,
        write_queue_nums: 1,
        perm: PERM_READ | PERM_WRITE,
        ..Default::default()
    }
}

/// The topics a broker has from its first start on.
pub fn system_topics(rules: &TopicRules) -> Vec<TopicConfig> {
    let topic = |name: &str, queues: i32, perm: i32| TopicConfig {
        topic_name: name.to_owned(),
        read_queue_nums: queues,
        write_queue_nums: queues,
        perm,
        ..Default::default()
    };
    let plain = PERM_READ | PERM_WRITE;
    let inherit_if = |open: bool| if open { PERM_INHERIT | plain } else { PERM_INHERIT };
    let mut list = vec![
        topic(names::SELF_TEST_TOPIC, 1, plain),
        topic(names::BENCHMARK_TOPIC, 1024, plain),
        topic(&rules.cluster, 16, inherit_if(rules.cluster_topic)),
        topic(&rules.broker_name, 1, inherit_if(rules.broker_topic)),
        topic(names::OFFSET_MOVED_EVENT, 1, plain),
        topic(names::SCHEDULE_TOPIC, 18, plain),
        topic(&format!("{}_{}", rules.cluster, names::REPLY_TOPIC_POSTFIX), 1, plain),
        topic(&format!("{}{}", names::REVIVE_TOPIC_PREFIX, rules.cluster), rules.revive_queues, plain),
        topic(&format!("{}{}", names::SYNC_BROKER_MEMBER_PREFIX, rules.broker_name), 1, PERM_INHERIT),
        topic(names::TRANS_HALF_TOPIC, 1, plain),
        topic(names::TRANS_OP_HALF_TOPIC, 1, plain),
        topic(names::ROCKSDB_TRANS_HALF_TOPIC, 1, plain),
        topic(names::ROCKSDB_TRANS_OP_HALF_TOPIC, 1, plain),
    ];
    if rules.auto_create {
        list.push(topic(names::AUTO_CREATE_TOPIC, rules.default_queues, PERM_INHERIT | plain));
    }
    if let Some(trace) = &rules.trace_topic {
        list.push(topic(trace, 1, plain));
    }
    if rules.timer_wheel {
        list.push(topic(names::TIMER_TOPIC, 1, plain));
    }
    list
}
