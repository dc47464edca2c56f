//! Sending, replying and sending back.

crate::headers! {
    /// Asks SEND_MESSAGE (10), SEND_REPLY_MESSAGE (324).
    pub struct SendMessageRequest {
        producer_group: String => "producerGroup" = String::new(),
        topic: String => "topic",
        default_topic: String => "defaultTopic" = String::new(),
        default_topic_queue_nums: i32 => "defaultTopicQueueNums" = 4,
        queue_id: i32 => "queueId",
        sys_flag: i32 => "sysFlag" = 0,
        /// Milliseconds since the epoch.
        born_timestamp: i64 => "bornTimestamp" = 0,
        flag: i32 => "flag" = 0,
        properties: Option<String> => "properties",
        reconsume_times: Option<i32> => "reconsumeTimes",
        unit_mode: bool => "unitMode" = false,
        batch: bool => "batch" = false,
        max_reconsume_times: Option<i32> => "maxReconsumeTimes",
    }

    /// Asks SEND_MESSAGE_V2 (310), SEND_BATCH_MESSAGE (320), SEND_REPLY_MESSAGE_V2 (325).
    pub struct SendMessageRequestV2 {
        producer_group: String => "a",
        topic: String => "b",
        default_topic: String => "c",
        default_topic_queue_nums: i32 => "d",
        queue_id: i32 => "e",
        sys_flag: i32 => "f",
        born_timestamp: i64 => "g",
        flag: i32 => "h",
        properties: Option<String> => "i",
        reconsume_times: Option<i32> => "j",
        unit_mode: bool => "k" = false,
        max_reconsume_times: Option<i32> => "l",
        batch: bool => "m" = false,
        broker_name: Option<String> => "n",
    }

    /// Answers SEND_MESSAGE (10), SEND_MESSAGE_V2 (310), SEND_BATCH_MESSAGE (320), SEND_REPLY_MESSAGE (324), SEND_REPLY_MESSAGE_V2 (325).
    pub struct SendMessageResponse {
        msg_id: String => "msgId",
        queue_id: i32 => "queueId",
        queue_offset: i64 => "queueOffset",
        transaction_id: Option<String> => "transactionId",
        batch_uniq_id: Option<String> => "batchUniqId",
        recall_handle: Option<String> => "recallHandle",
    }

    /// Asks PUSH_REPLY_MESSAGE_TO_CLIENT (326).
    pub struct ReplyMessageRequest {
        producer_group: String => "producerGroup",
        topic: String => "topic",
        default_topic: String => "defaultTopic",
        default_topic_queue_nums: i32 => "defaultTopicQueueNums",
        queue_id: i32 => "queueId",
        sys_flag: i32 => "sysFlag",
        /// Milliseconds since the epoch.
        born_timestamp: i64 => "bornTimestamp",
        flag: i32 => "flag",
        properties: Option<String> => "properties",
        reconsume_times: Option<i32> => "reconsumeTimes",
        unit_mode: bool => "unitMode" = false,
        born_host: String => "bornHost",
        store_host: String => "storeHost",
        /// Milliseconds since the epoch.
        store_timestamp: i64 => "storeTimestamp" = 0,
    }

    /// Asks CONSUMER_SEND_MSG_BACK (36).
    pub struct ConsumerSendMsgBackRequest {
        offset: i64 => "offset",
        group: String => "group",
        delay_level: i32 => "delayLevel",
        origin_msg_id: Option<String> => "originMsgId",
        origin_topic: Option<String> => "originTopic",
        unit_mode: bool => "unitMode" = false,
        max_reconsume_times: Option<i32> => "maxReconsumeTimes",
    }

    /// Asks RECALL_MESSAGE (370).
    pub struct RecallMessageRequest {
        producer_group: Option<String> => "producerGroup",
        topic: String => "topic",
        recall_handle: String => "recallHandle",
    }

    /// Answers RECALL_MESSAGE (370).
    pub struct RecallMessageResponse {
        msg_id: String => "msgId",
    }
}

impl From<SendMessageRequestV2> for SendMessageRequest {
    fn from(short: SendMessageRequestV2) -> Self {
        Self {
            producer_group: short.producer_group,
            topic: short.topic,
            default_topic: short.default_topic,
            default_topic_queue_nums: short.default_topic_queue_nums,
            queue_id: short.queue_id,
            sys_flag: short.sys_flag,
            born_timestamp: short.born_timestamp,
            flag: short.flag,
            properties: short.properties,
            reconsume_times: short.reconsume_times,
            unit_mode: short.unit_mode,
            batch: short.batch,
            max_reconsume_times: short.max_reconsume_times,
        }
    }
}

impl From<SendMessageRequest> for SendMessageRequestV2 {
    fn from(long: SendMessageRequest) -> Self {
        Self {
            producer_group: long.producer_group,
            topic: long.topic,
            default_topic: long.default_topic,
            default_topic_queue_nums: long.default_topic_queue_nums,
            queue_id: long.queue_id,
            sys_flag: long.sys_flag,
            born_timestamp: long.born_timestamp,
            flag: long.flag,
            properties: long.properties,
            reconsume_times: long.reconsume_times,
            unit_mode: long.unit_mode,
            max_reconsume_times: long.max_reconsume_times,
            batch: long.batch,
            broker_name: None,
        }
    }
}
