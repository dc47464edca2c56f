//! The headers of the requests that come by the thousand, read in place.
//!
//! Each has an owned twin of nearly the same name in [`crate::headers`].

use std::borrow::Cow;

use crate::fields::{ExtFields, FieldSink};
use crate::header::{BorrowedValue, HeaderError};

/// Asks SEND_MESSAGE (10), SEND_MESSAGE_V2 (310), SEND_BATCH_MESSAGE (320) and the two SEND_REPLY_MESSAGE (324, 325):
/// reads long and short keys, writes the short ones.
#[derive(Debug, Clone, PartialEq)]
pub struct SendMessage<'a> {
    pub producer_group: Cow<'a, str>,
    pub topic: Cow<'a, str>,
    pub default_topic: Cow<'a, str>,
    pub default_topic_queue_nums: i32,
    pub queue_id: i32,
    pub sys_flag: i32,
    /// Milliseconds since the epoch.
    pub born_timestamp: i64,
    pub flag: i32,
    /// A property string.
    pub properties: Option<Cow<'a, str>>,
    pub reconsume_times: Option<i32>,
    pub unit_mode: bool,
    pub max_reconsume_times: Option<i32>,
    pub batch: bool,
}

/// The long names of the fields `a` to `m`.
const SEND_NAMES: [&str; 13] = [
    "producerGroup",
    "topic",
    "defaultTopic",
    "defaultTopicQueueNums",
    "queueId",
    "sysFlag",
    "bornTimestamp",
    "flag",
    "properties",
    "reconsumeTimes",
    "unitMode",
    "maxReconsumeTimes",
    "batch",
];

impl<'a> SendMessage<'a> {
    /// Reads the header out of a frame's extension fields. By far the most frequent header, so it is told by the one
    /// letter of its keys rather than by comparing names.
    pub fn read(fields: &'a ExtFields) -> Result<Self, HeaderError> {
        let mut read = Self {
            producer_group: Cow::Borrowed(""),
            topic: Cow::Borrowed(""),
            default_topic: Cow::Borrowed(""),
            default_topic_queue_nums: 4,
            queue_id: 0,
            sys_flag: 0,
            born_timestamp: 0,
            flag: 0,
            properties: None,
            reconsume_times: None,
            unit_mode: false,
            max_reconsume_times: None,
            batch: false,
        };
        let (mut has_topic, mut has_queue) = (false, false);
        for (key, value) in fields.raw() {
            let letter = match key.bytes {
                [letter] => *letter,
                _ => SEND_NAMES.iter().position(|name| key.plain() == name.as_bytes()).map_or(0, |at| b'a' + at as u8),
            };
            let invalid = |value: Cow<'_, str>| HeaderError::Invalid {
                field: SEND_NAMES.get(usize::from(letter.wrapping_sub(b'a'))).copied().unwrap_or_default(),
                value: value.into_owned(),
            };
            match letter {
                b'a' => read.producer_group = value.text(),
                b'b' => {
                    has_topic = true;
                    read.topic = value.text();
                }
                b'c' => read.default_topic = value.text(),
                b'd' => read.default_topic_queue_nums = BorrowedValue::parse(value).map_err(invalid)?,
                b'e' => {
                    has_queue = true;
                    read.queue_id = BorrowedValue::parse(value).map_err(invalid)?;
                }
                b'f' => read.sys_flag = BorrowedValue::parse(value).map_err(invalid)?,
                b'g' => read.born_timestamp = BorrowedValue::parse(value).map_err(invalid)?,
                b'h' => read.flag = BorrowedValue::parse(value).map_err(invalid)?,
                b'i' => read.properties = Some(value.text()),
                b'j' => read.reconsume_times = Some(BorrowedValue::parse(value).map_err(invalid)?),
                b'k' => read.unit_mode = BorrowedValue::parse(value).map_err(invalid)?,
                b'l' => read.max_reconsume_times = Some(BorrowedValue::parse(value).map_err(invalid)?),
                b'm' => read.batch = BorrowedValue::parse(value).map_err(invalid)?,
                _ => {}
            }
        }
        match (has_topic, has_queue) {
            (true, true) => Ok(read),
            (false, _) => Err(HeaderError::Missing("topic")),
            (_, false) => Err(HeaderError::Missing("queueId")),
        }
    }

    /// Writes the header under its short keys.
    pub fn write(&self, sink: &mut dyn FieldSink) {
        sink.text("a", &self.producer_group);
        sink.text("b", &self.topic);
        sink.text("c", &self.default_topic);
        sink.int("d", self.default_topic_queue_nums.into());
        sink.int("e", self.queue_id.into());
        sink.int("f", self.sys_flag.into());
        sink.int("g", self.born_timestamp);
        sink.int("h", self.flag.into());
        self.properties.put("i", sink);
        self.reconsume_times.put("j", sink);
        sink.flag("k", self.unit_mode);
        self.max_reconsume_times.put("l", sink);
        sink.flag("m", self.batch);
    }
}

borrowed_headers! {
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
