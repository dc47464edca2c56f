//! Statistics of topics, groups and brokers.

crate::headers! {
    /// Asks GET_TOPIC_STATS_INFO (202).
    pub struct GetTopicStatsInfoRequest {
        topic: String => "topic",
    }

    /// Asks GET_CONSUME_STATS (208).
    pub struct GetConsumeStatsRequest {
        consumer_group: String => "consumerGroup",
        topic: Option<String> => "topic",
        topic_list: Option<String> => "topicList",
    }

    /// Asks GET_BROKER_CONSUME_STATS (317).
    pub struct GetConsumeStatsInBroker {
        is_order: bool => "isOrder" = false,
    }

    /// Asks QUERY_TOPIC_CONSUME_BY_WHO (300).
    pub struct QueryTopicConsumeByWhoRequest {
        topic: String => "topic",
    }

    /// Asks QUERY_TOPICS_BY_CONSUMER (343).
    pub struct QueryTopicsByConsumerRequest {
        group: String => "group",
    }

    /// Asks QUERY_SUBSCRIPTION_BY_CONSUMER (345).
    pub struct QuerySubscriptionByConsumerRequest {
        group: String => "group",
        topic: Option<String> => "topic",
    }

    /// Asks QUERY_CONSUME_TIME_SPAN (303).
    pub struct QueryConsumeTimeSpanRequest {
        topic: String => "topic",
        group: String => "group",
    }

    /// Asks VIEW_BROKER_STATS_DATA (315).
    pub struct ViewBrokerStatsDataRequest {
        stats_name: String => "statsName",
        stats_key: String => "statsKey" = String::new(),
    }

    /// The header of the request of that name.
    pub struct StatisticsMessagesRequest {
        consumer_group: String => "consumerGroup",
        topic: String => "topic",
        queue_id: i32 => "queueId" = 0,
        from_time: i64 => "fromTime" = 0,
        to_time: i64 => "toTime" = 0,
    }
}
