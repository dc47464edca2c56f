//! Topics.

use std::collections::BTreeMap;

use super::{DataVersion, TopicQueueMappingDetail, TopicQueueMappingInfo};
use crate::json;

bodies! {
    /// How a broker keeps a topic.
    pub struct TopicConfig {
        topic_name: String,
        read_queue_nums: i32 = 16,
        write_queue_nums: i32 = 16,
        /// 8 priority, 4 read, 2 write, 1 inherit.
        perm: i32 = 6,
        /// `SINGLE_TAG` or `MULTI_TAG`.
        topic_filter_type: String = String::from("SINGLE_TAG"),
        /// 1 unit, 2 unit subscription.
        topic_sys_flag: i32,
        order: bool,
        attributes: BTreeMap<String, String>,
    }

    /// `topics.json`; also the registration body of brokers before 3.0.11.
    pub struct TopicConfigSerializeWrapper {
        topic_config_table: BTreeMap<String, TopicConfig>,
        data_version: DataVersion,
    }

    /// Answers GET_ALL_TOPIC_CONFIG (21); part of a registration.
    pub struct TopicConfigAndMappingSerializeWrapper {
        topic_config_table: BTreeMap<String, TopicConfig>,
        data_version: DataVersion,
        topic_queue_mapping_info_map: BTreeMap<String, TopicQueueMappingInfo>,
        topic_queue_mapping_detail_map: BTreeMap<String, TopicQueueMappingDetail>,
        mapping_data_version: DataVersion,
    }

    /// Answers GET_TOPIC_CONFIG (351).
    pub struct TopicConfigAndQueueMapping {
        topic_name: String,
        read_queue_nums: i32 = 16,
        write_queue_nums: i32 = 16,
        perm: i32 = 6,
        topic_filter_type: String = String::from("SINGLE_TAG"),
        topic_sys_flag: i32,
        order: bool,
        attributes: BTreeMap<String, String>,
        mapping_detail: Option<TopicQueueMappingDetail>,
    }

    /// Asks UPDATE_AND_CREATE_TOPIC_LIST (18).
    pub struct CreateTopicListRequestBody {
        topic_config_list: Vec<TopicConfig>,
    }

    /// Answers all requests for lists of topics.
    pub struct TopicList {
        topic_list: Vec<String>,
        broker_addr: Option<String>,
    }
}

impl TopicConfig {
    /// Its queues can hold several messages as one record: `queue.type=BatchCQ`.
    pub fn has_batch_queues(&self) -> bool {
        self.attributes.get("queue.type").is_some_and(|kind| kind == "BatchCQ")
    }

    /// Of each key the last message is kept: `cleanup.policy=COMPACTION`.
    pub fn is_compacted(&self) -> bool {
        self.attributes.get("cleanup.policy").is_some_and(|policy| policy == "COMPACTION")
    }

    /// The one-line form of compressed registrations: `name read write perm filterType {attributes}`. It has no room for
    /// `order` and `topicSysFlag`.
    pub fn to_line(&self) -> String {
        format!(
            "{} {} {} {} {} {}",
            self.topic_name,
            self.read_queue_nums,
            self.write_queue_nums,
            self.perm,
            self.topic_filter_type,
            String::from_utf8_lossy(&json::to_legacy(&self.attributes)),
        )
    }

    /// Reads the one-line form. Attributes that hold a blank are lost, as in Java; fewer than five words are no topic.
    pub fn from_line(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let [topic_name, read, write, perm, filter, rest @ ..] = words.as_slice() else { return None };
        let attributes = match rest {
            [text] => json::from_str(text).unwrap_or_default(),
            _ => BTreeMap::new(),
        };
        Some(Self {
            topic_name: (*topic_name).to_owned(),
            read_queue_nums: read.parse().ok()?,
            write_queue_nums: write.parse().ok()?,
            perm: perm.parse().ok()?,
            topic_filter_type: (*filter).to_owned(),
            attributes,
            ..Self::default()
        })
    }
}
