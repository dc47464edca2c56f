//! Statistics of topics, groups and brokers.

use std::collections::BTreeMap;

use super::{MessageQueue, SubscriptionData};

bodies! {
    /// The ends of a queue.
    pub struct TopicOffset {
        min_offset: i64,
        max_offset: i64,
        /// The store time of the last message, in milliseconds; 0 when there is none.
        last_update_timestamp: i64,
    }

    /// Answers GET_TOPIC_STATS_INFO (202).
    pub struct TopicStatsTable {
        topic_put_tps: f64,
        offset_table: BTreeMap<MessageQueue, TopicOffset>,
    }

    /// How far a group has got in a queue.
    pub struct OffsetWrapper {
        broker_offset: i64,
        consumer_offset: i64,
        pull_offset: i64,
        /// The store time of the last message consumed, in milliseconds.
        last_timestamp: i64,
    }

    /// Answers GET_CONSUME_STATS (208).
    pub struct ConsumeStats {
        offset_table: BTreeMap<MessageQueue, OffsetWrapper>,
        consume_tps: f64,
    }

    /// Answers GET_BROKER_CONSUME_STATS (317).
    pub struct ConsumeStatsList {
        consume_stats_list: Vec<BTreeMap<String, Vec<ConsumeStats>>>,
        broker_addr: Option<String>,
        total_diff: i64,
        total_inflight_diff: i64,
    }

    pub struct BrokerStatsItem {
        sum: i64,
        tps: f64,
        avgpt: f64,
    }

    /// Answers VIEW_BROKER_STATS_DATA (315).
    pub struct BrokerStatsData {
        stats_minute: Option<BrokerStatsItem>,
        stats_hour: Option<BrokerStatsItem>,
        stats_day: Option<BrokerStatsItem>,
    }

    /// The times, in milliseconds, of the first and last message of a queue and of the one consumed last. The texts are
    /// for people and never read.
    pub struct QueueTimeSpan {
        message_queue: Option<MessageQueue>,
        min_time_stamp: i64,
        min_time_stamp_str: Option<String>,
        max_time_stamp: i64,
        max_time_stamp_str: Option<String>,
        consume_time_stamp: i64,
        consume_time_stamp_str: Option<String>,
        delay_time: i64,
    }

    /// Answers QUERY_CONSUME_TIME_SPAN (303).
    pub struct QueryConsumeTimeSpanBody {
        consume_time_span_set: Vec<QueueTimeSpan>,
    }

    /// One entry of a consume queue.
    pub struct ConsumeQueueData {
        physic_offset: i64,
        physic_size: i32,
        tags_code: i64,
        extend_data_json: Option<String>,
        bit_map: Option<String>,
        eval: bool,
        msg: Option<String>,
    }

    /// Answers QUERY_CONSUME_QUEUE (321).
    pub struct QueryConsumeQueueResponseBody {
        subscription_data: Option<SubscriptionData>,
        filter_data: Option<String>,
        queue_data: Option<Vec<ConsumeQueueData>>,
        max_queue_index: i64,
        min_queue_index: i64,
    }
}
