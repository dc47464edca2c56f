//! Static topics: which broker holds which part of a logical queue.

use std::collections::BTreeMap;

use super::DataVersion;

bodies! {
    /// What one broker tells the name server about a static topic.
    pub struct TopicQueueMappingInfo {
        topic: String,
        scope: String = String::from("__global__"),
        total_queues: i32,
        bname: Option<String>,
        epoch: i64,
        dirty: bool,
        /// Logical queue id to the broker's own queue id.
        curr_id_map: BTreeMap<i32, i32>,
    }

    /// Asks UPDATE_AND_CREATE_STATIC_TOPIC (513); the same and the history of each hosted queue.
    pub struct TopicQueueMappingDetail {
        topic: String,
        scope: String = String::from("__global__"),
        total_queues: i32,
        bname: Option<String>,
        epoch: i64,
        dirty: bool,
        curr_id_map: BTreeMap<i32, i32>,
        hosted_queues: BTreeMap<i32, Vec<LogicQueueMappingItem>>,
    }

    /// One stretch of a logical queue.
    pub struct LogicQueueMappingItem {
        #[serde(rename = "gen")]
        generation: i32,
        queue_id: i32,
        bname: Option<String>,
        /// Where the stretch starts in the logical queue.
        logic_offset: i64,
        /// Where it starts in the broker's own queue.
        start_offset: i64,
        /// Where it ends there; -1 while it goes on.
        end_offset: i64 = -1,
        /// Milliseconds since the epoch; -1 when unknown.
        time_of_start: i64 = -1,
        time_of_end: i64 = -1,
    }

    /// `topicQueueMapping.json`.
    pub struct TopicQueueMappingSerializeWrapper {
        topic_queue_mapping_info_map: BTreeMap<String, TopicQueueMappingDetail>,
        data_version: DataVersion,
    }
}

impl TopicQueueMappingDetail {
    /// The part the name server keeps.
    pub fn info(&self) -> TopicQueueMappingInfo {
        TopicQueueMappingInfo {
            topic: self.topic.clone(),
            scope: self.scope.clone(),
            total_queues: self.total_queues,
            bname: self.bname.clone(),
            epoch: self.epoch,
            dirty: self.dirty,
            curr_id_map: self.curr_id_map.clone(),
        }
    }
}
