//! Popping: acknowledgements in one request, and the messages of the revive topic.

bodies! {
    /// Asks BATCH_ACK_MESSAGE (200151).
    pub struct BatchAckMessageRequestBody {
        broker_name: Option<String>,
        acks: Vec<BatchAck>,
    }

    /// Acknowledges several messages of one pop. Java writes the short names and reads the long ones too.
    pub struct BatchAck {
        #[serde(rename = "c", alias = "consumerGroup")]
        consumer_group: String,
        #[serde(rename = "t", alias = "topic")]
        topic: String,
        /// `0` normal, `1` or `2` a retry topic.
        #[serde(rename = "r", alias = "retry")]
        retry: Option<String>,
        #[serde(rename = "so", alias = "startOffset")]
        start_offset: i64,
        #[serde(rename = "q", alias = "queueId")]
        queue_id: i32,
        #[serde(rename = "rq", alias = "reviveQueueId")]
        revive_queue_id: i32,
        #[serde(rename = "pt", alias = "popTime")]
        pop_time: i64,
        #[serde(rename = "it", alias = "invisibleTime")]
        invisible_time: i64,
        /// Base64 of the bits of the acknowledged offsets, counted from the start offset, lowest first.
        #[serde(rename = "b", alias = "bitSet")]
        bit_set: Option<String>,
    }

    /// A checkpoint of a pop.
    pub struct PopCheckPoint {
        #[serde(rename = "so", alias = "startOffset")]
        start_offset: i64,
        #[serde(rename = "pt", alias = "popTime")]
        pop_time: i64,
        #[serde(rename = "it", alias = "invisibleTime")]
        invisible_time: i64,
        #[serde(rename = "bm", alias = "bitMap")]
        bit_map: i32,
        #[serde(rename = "n", alias = "num")]
        num: i32,
        #[serde(rename = "q", alias = "queueId")]
        queue_id: i32,
        #[serde(rename = "t", alias = "topic")]
        topic: Option<String>,
        #[serde(rename = "c", alias = "cid")]
        cid: Option<String>,
        #[serde(rename = "ro", alias = "reviveOffset")]
        revive_offset: i64,
        #[serde(rename = "d", alias = "queueOffsetDiff")]
        queue_offset_diff: Option<Vec<i32>>,
        #[serde(rename = "bn", alias = "brokerName")]
        broker_name: Option<String>,
        #[serde(rename = "rp", alias = "rePutTimes")]
        re_put_times: Option<String>,
    }

    /// An acknowledgement; with a list of offsets it is Java's `BatchAckMsg`.
    pub struct AckMsg {
        #[serde(rename = "ao", alias = "ackOffset")]
        ack_offset: i64,
        #[serde(rename = "so", alias = "startOffset")]
        start_offset: i64,
        #[serde(rename = "c", alias = "consumerGroup")]
        consumer_group: Option<String>,
        #[serde(rename = "t", alias = "topic")]
        topic: Option<String>,
        #[serde(rename = "q", alias = "queueId")]
        queue_id: i32,
        #[serde(rename = "pt", alias = "popTime")]
        pop_time: i64,
        #[serde(rename = "bn", alias = "brokerName")]
        broker_name: Option<String>,
        #[serde(rename = "aol", alias = "ackOffsetList")]
        ack_offset_list: Option<Vec<i64>>,
    }
}
