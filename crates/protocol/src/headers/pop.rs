//! Popping, acknowledging and waiting for messages.

crate::headers! {
    /// Asks POP_MESSAGE (200050).
    pub struct PopMessageRequest {
        consumer_group: String => "consumerGroup",
        topic: String => "topic",
        queue_id: i32 => "queueId" = 0,
        max_msg_nums: i32 => "maxMsgNums" = 0,
        invisible_time: i64 => "invisibleTime" = 0,
        poll_time: i64 => "pollTime" = 0,
        born_time: i64 => "bornTime" = 0,
        init_mode: i32 => "initMode" = 0,
        exp_type: Option<String> => "expType",
        exp: Option<String> => "exp",
        order: bool => "order" = false,
        attempt_id: Option<String> => "attemptId",
    }

    /// Answers POP_MESSAGE (200050), PEEK_MESSAGE (200052).
    pub struct PopMessageResponse {
        pop_time: i64 => "popTime" = 0,
        invisible_time: i64 => "invisibleTime" = 0,
        revive_qid: i32 => "reviveQid" = 0,
        rest_num: i64 => "restNum" = 0,
        start_offset_info: Option<String> => "startOffsetInfo",
        msg_offset_info: Option<String> => "msgOffsetInfo",
        order_count_info: Option<String> => "orderCountInfo",
    }

    /// Asks PEEK_MESSAGE (200052).
    pub struct PeekMessageRequest {
        topic: String => "topic",
        queue_id: i32 => "queueId" = 0,
        max_msg_nums: i32 => "maxMsgNums" = 0,
        consumer_group: String => "consumerGroup",
    }

    /// Asks ACK_MESSAGE (200051).
    pub struct AckMessageRequest {
        consumer_group: String => "consumerGroup",
        topic: String => "topic",
        queue_id: i32 => "queueId",
        extra_info: String => "extraInfo",
        offset: i64 => "offset",
    }

    /// Asks CHANGE_MESSAGE_INVISIBLETIME (200053).
    pub struct ChangeInvisibleTimeRequest {
        consumer_group: String => "consumerGroup",
        topic: String => "topic",
        queue_id: i32 => "queueId",
        extra_info: String => "extraInfo",
        offset: i64 => "offset",
        invisible_time: i64 => "invisibleTime",
    }

    /// Answers CHANGE_MESSAGE_INVISIBLETIME (200053).
    pub struct ChangeInvisibleTimeResponse {
        pop_time: i64 => "popTime" = 0,
        invisible_time: i64 => "invisibleTime" = 0,
        revive_qid: i32 => "reviveQid" = 0,
    }

    /// Asks NOTIFICATION (200054).
    pub struct NotificationRequest {
        consumer_group: String => "consumerGroup",
        topic: String => "topic",
        queue_id: i32 => "queueId" = 0,
        poll_time: i64 => "pollTime" = 0,
        born_time: i64 => "bornTime" = 0,
        order: bool => "order" = false,
        attempt_id: Option<String> => "attemptId",
    }

    /// Answers NOTIFICATION (200054).
    pub struct NotificationResponse {
        has_msg: bool => "hasMsg" = false,
        polling_full: bool => "pollingFull" = false,
    }

    /// Asks POLLING_INFO (200055).
    pub struct PollingInfoRequest {
        consumer_group: String => "consumerGroup",
        topic: String => "topic",
        queue_id: i32 => "queueId" = 0,
    }

    /// Answers POLLING_INFO (200055).
    pub struct PollingInfoResponse {
        polling_num: i32 => "pollingNum" = 0,
    }

    /// The header of the request of that name.
    pub struct InitConsumerOffsetRequest {
        topic: Option<String> => "topic",
        init_mode: i32 => "initMode" = 0,
    }
}
