//! Tables of offsets.

use std::collections::BTreeMap;

use super::{DataVersion, MessageQueue};

bodies! {
    /// `consumerOffset.json`; answers GET_ALL_CONSUMER_OFFSET (43).
    pub struct ConsumerOffsetSerializeWrapper {
        /// `topic@group`, queue id, offset.
        offset_table: BTreeMap<String, BTreeMap<i32, i64>>,
        data_version: DataVersion,
    }

    /// `delayOffset.json`; answers GET_ALL_DELAY_OFFSET (45).
    pub struct DelayOffsetSerializeWrapper {
        /// Delay level, 1-based, to the next offset of its queue.
        offset_table: BTreeMap<i32, i64>,
        data_version: Option<DataVersion>,
    }

    /// Asks RESET_CONSUMER_CLIENT_OFFSET (220), answers INVOKE_BROKER_TO_RESET_OFFSET (222).
    pub struct ResetOffsetBody {
        offset_table: BTreeMap<MessageQueue, i64>,
    }

    /// The same for C++ clients.
    pub struct ResetOffsetBodyForC {
        offset_table: Vec<MessageQueueForC>,
    }

    pub struct MessageQueueForC {
        topic: String,
        broker_name: String,
        queue_id: i32,
        offset: i64,
    }

    /// Answers GET_CONSUMER_STATUS_FROM_CLIENT (221) and INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223).
    pub struct GetConsumerStatusBody {
        message_queue_table: BTreeMap<MessageQueue, i64>,
        consumer_table: BTreeMap<String, BTreeMap<MessageQueue, i64>>,
    }

    /// Answers QUERY_CORRECTION_OFFSET (308).
    pub struct QueryCorrectionOffsetBody {
        correction_offsets: BTreeMap<i32, i64>,
    }
}
