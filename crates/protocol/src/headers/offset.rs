//! Consumer offsets and the offsets of queues.

use crate::fields::FieldSink;
use crate::header::FieldValue;

/// Which of several messages with one store time a look-up by time means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BoundaryType {
    /// The first of them.
    #[default]
    Lower,
    /// The last of them.
    Upper,
}

impl FieldValue for BoundaryType {
    fn parse(text: &str) -> Option<Self> {
        // Java takes every other text for the lower end.
        Some(if text.trim().eq_ignore_ascii_case("upper") { Self::Upper } else { Self::Lower })
    }

    fn put(&self, key: &'static str, sink: &mut dyn FieldSink) {
        sink.text(key, if *self == Self::Upper { "UPPER" } else { "LOWER" });
    }
}

crate::headers! {
    /// Asks QUERY_CONSUMER_OFFSET (14).
    pub struct QueryConsumerOffsetRequest {
        consumer_group: String => "consumerGroup",
        topic: String => "topic",
        queue_id: i32 => "queueId",
        set_zero_if_not_found: bool => "setZeroIfNotFound" = true,
    }

    /// Answers QUERY_CONSUMER_OFFSET (14).
    pub struct QueryConsumerOffsetResponse {
        offset: i64 => "offset",
    }

    /// Asks UPDATE_CONSUMER_OFFSET (15).
    pub struct UpdateConsumerOffsetRequest {
        consumer_group: String => "consumerGroup",
        topic: String => "topic",
        queue_id: i32 => "queueId",
        commit_offset: i64 => "commitOffset",
    }

    /// Asks SEARCH_OFFSET_BY_TIMESTAMP (29).
    pub struct SearchOffsetRequest {
        topic: String => "topic",
        queue_id: i32 => "queueId",
        timestamp: i64 => "timestamp",
        /// Which end of equal store times is meant.
        boundary_type: BoundaryType => "boundaryType" = BoundaryType::Lower,
    }

    /// Answers SEARCH_OFFSET_BY_TIMESTAMP (29).
    pub struct SearchOffsetResponse {
        offset: i64 => "offset",
    }

    /// Asks GET_MAX_OFFSET (30).
    pub struct GetMaxOffsetRequest {
        topic: String => "topic",
        queue_id: i32 => "queueId",
        committed: bool => "committed" = true,
    }

    /// Answers GET_MAX_OFFSET (30).
    pub struct GetMaxOffsetResponse {
        offset: i64 => "offset",
    }

    /// Asks GET_MIN_OFFSET (31).
    pub struct GetMinOffsetRequest {
        topic: String => "topic",
        queue_id: i32 => "queueId",
    }

    /// Answers GET_MIN_OFFSET (31).
    pub struct GetMinOffsetResponse {
        offset: i64 => "offset",
    }

    /// Asks GET_EARLIEST_MSG_STORETIME (32).
    pub struct GetEarliestMsgStoretimeRequest {
        topic: String => "topic",
        queue_id: i32 => "queueId",
    }

    /// Answers GET_EARLIEST_MSG_STORETIME (32).
    pub struct GetEarliestMsgStoretimeResponse {
        timestamp: i64 => "timestamp",
    }

    /// Asks RESET_CONSUMER_CLIENT_OFFSET (220), INVOKE_BROKER_TO_RESET_OFFSET (222).
    pub struct ResetOffsetRequest {
        group: String => "group",
        topic: String => "topic",
        queue_id: i32 => "queueId" = -1,
        offset: Option<i64> => "offset",
        timestamp: i64 => "timestamp" = 0,
        is_force: bool => "isForce" = false,
    }

    /// Asks CLONE_GROUP_OFFSET (314).
    pub struct CloneGroupOffsetRequest {
        src_group: String => "srcGroup",
        dest_group: String => "destGroup",
        topic: Option<String> => "topic",
        offline: bool => "offline" = false,
    }

    /// Asks QUERY_CORRECTION_OFFSET (308).
    pub struct QueryCorrectionOffset {
        filter_groups: Option<String> => "filterGroups",
        compare_group: String => "compareGroup",
        topic: String => "topic",
    }
}
