//! Pulling.

crate::headers! {
    /// Asks PULL_MESSAGE (11), LITE_PULL_MESSAGE (361).
    pub struct PullMessageRequest {
        consumer_group: String => "consumerGroup",
        topic: String => "topic",
        queue_id: i32 => "queueId",
        queue_offset: i64 => "queueOffset",
        max_msg_nums: i32 => "maxMsgNums",
        sys_flag: i32 => "sysFlag",
        commit_offset: i64 => "commitOffset",
        /// How long the broker may hold the request when there is nothing to return.
        suspend_timeout_millis: i64 => "suspendTimeoutMillis",
        subscription: Option<String> => "subscription",
        sub_version: i64 => "subVersion",
        expression_type: Option<String> => "expressionType",
        max_msg_bytes: Option<i32> => "maxMsgBytes",
        request_source: Option<i32> => "requestSource",
        proxy_forward_client_id: Option<String> => "proxyFrowardClientId",
    }

    /// Answers PULL_MESSAGE (11), LITE_PULL_MESSAGE (361).
    pub struct PullMessageResponse {
        suggest_which_broker_id: i64 => "suggestWhichBrokerId",
        next_begin_offset: i64 => "nextBeginOffset",
        min_offset: i64 => "minOffset",
        max_offset: i64 => "maxOffset",
        offset_delta: Option<i64> => "offsetDelta",
        topic_sys_flag: Option<i32> => "topicSysFlag",
        group_sys_flag: Option<i32> => "groupSysFlag",
        forbidden_type: Option<i32> => "forbiddenType",
    }
}
