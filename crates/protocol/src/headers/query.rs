//! Finding messages by key, id and queue.

crate::headers! {
    /// Asks QUERY_MESSAGE (12).
    pub struct QueryMessageRequest {
        topic: String => "topic",
        key: String => "key",
        max_num: i32 => "maxNum",
        begin_timestamp: i64 => "beginTimestamp",
        end_timestamp: i64 => "endTimestamp",
        /// Since 5.4.0: which kind of key is meant.
        index_type: Option<String> => "indexType",
        /// Since 5.4.0: where the previous page ended.
        last_key: Option<String> => "lastKey",
    }

    /// Answers QUERY_MESSAGE (12).
    pub struct QueryMessageResponse {
        index_last_update_timestamp: i64 => "indexLastUpdateTimestamp",
        index_last_update_phyoffset: i64 => "indexLastUpdatePhyoffset",
    }

    /// Asks VIEW_MESSAGE_BY_ID (33).
    pub struct ViewMessageRequest {
        topic: Option<String> => "topic",
        offset: i64 => "offset",
    }

    /// Asks QUERY_CONSUME_QUEUE (321).
    pub struct QueryConsumeQueueRequest {
        topic: Option<String> => "topic",
        queue_id: i32 => "queueId" = 0,
        index: i64 => "index" = 0,
        count: i32 => "count" = 0,
        consumer_group: Option<String> => "consumerGroup",
    }
}
