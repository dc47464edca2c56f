//! The headers of the requests that come by the thousand, read in place.
//!
//! Each has an owned twin of nearly the same name in [`crate::headers`].

use std::borrow::Cow;

borrowed_headers! {
    /// Asks SEND_MESSAGE (10), SEND_MESSAGE_V2 (310), SEND_BATCH_MESSAGE (320) and the two SEND_REPLY_MESSAGE
    /// (324, 325): reads long and short keys, writes the short ones.
    pub struct SendMessage<'a> {
        producer_group: Cow<'a, str> => "a" | "producerGroup" = Cow::Borrowed(""),
        topic: Cow<'a, str> => "b" | "topic",
        default_topic: Cow<'a, str> => "c" | "defaultTopic" = Cow::Borrowed(""),
        default_topic_queue_nums: i32 => "d" | "defaultTopicQueueNums" = 4,
        queue_id: i32 => "e" | "queueId",
        sys_flag: i32 => "f" | "sysFlag" = 0,
        /// Milliseconds since the epoch.
        born_timestamp: i64 => "g" | "bornTimestamp" = 0,
        flag: i32 => "h" | "flag" = 0,
        /// A property string.
        properties: Option<Cow<'a, str>> => "i" | "properties" = None,
        reconsume_times: Option<i32> => "j" | "reconsumeTimes" = None,
        unit_mode: bool => "k" | "unitMode" = false,
        max_reconsume_times: Option<i32> => "l" | "maxReconsumeTimes" = None,
        batch: bool => "m" | "batch" = false,
    }

    /// Answers all kinds of sending.
    pub struct SendMessageAnswer<'a> {
        msg_id: Cow<'a, str> => "msgId" = Cow::Borrowed(""),
        queue_id: i32 => "queueId",
        queue_offset: i64 => "queueOffset",
        transaction_id: Option<Cow<'a, str>> => "transactionId" = None,
        batch_uniq_id: Option<Cow<'a, str>> => "batchUniqId" = None,
        recall_handle: Option<Cow<'a, str>> => "recallHandle" = None,
    }

    /// Asks PULL_MESSAGE (11), LITE_PULL_MESSAGE (361).
    pub struct PullMessage<'a> {
        consumer_group: Cow<'a, str> => "consumerGroup",
        topic: Cow<'a, str> => "topic",
        queue_id: i32 => "queueId",
        queue_offset: i64 => "queueOffset",
        max_msg_nums: i32 => "maxMsgNums",
        /// See [`crate::headers::pull_sys_flag`].
        sys_flag: i32 => "sysFlag",
        commit_offset: i64 => "commitOffset",
        /// How long the broker may hold the request when there is nothing to return.
        suspend_timeout_millis: i64 => "suspendTimeoutMillis",
        subscription: Option<Cow<'a, str>> => "subscription" = None,
        sub_version: i64 => "subVersion",
        expression_type: Option<Cow<'a, str>> => "expressionType" = None,
        max_msg_bytes: Option<i32> => "maxMsgBytes" = None,
        request_source: Option<i32> => "requestSource" = None,
        proxy_forward_client_id: Option<Cow<'a, str>> => "proxyFrowardClientId" = None,
    }

    /// Asks QUERY_CONSUMER_OFFSET (14).
    pub struct QueryConsumerOffset<'a> {
        consumer_group: Cow<'a, str> => "consumerGroup",
        topic: Cow<'a, str> => "topic",
        queue_id: i32 => "queueId",
        set_zero_if_not_found: bool => "setZeroIfNotFound" = true,
    }

    /// Asks UPDATE_CONSUMER_OFFSET (15).
    pub struct UpdateConsumerOffset<'a> {
        consumer_group: Cow<'a, str> => "consumerGroup",
        topic: Cow<'a, str> => "topic",
        queue_id: i32 => "queueId",
        commit_offset: i64 => "commitOffset",
    }
}

/// Answers pulls of both kinds. Has no texts, so there is no other form.
pub use super::PullMessageResponse as PullMessageAnswer;
