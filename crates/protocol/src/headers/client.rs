//! Clients: who is connected, who left, what they run.

crate::headers! {
    /// Asks UNREGISTER_CLIENT (35).
    pub struct UnregisterClientRequest {
        client_id: String => "clientID",
        producer_group: Option<String> => "producerGroup",
        consumer_group: Option<String> => "consumerGroup",
    }

    /// Asks GET_CONSUMER_LIST_BY_GROUP (38).
    pub struct GetConsumerListByGroupRequest {
        consumer_group: String => "consumerGroup",
    }

    /// Asks NOTIFY_CONSUMER_IDS_CHANGED (40).
    pub struct NotifyConsumerIdsChangedRequest {
        consumer_group: String => "consumerGroup",
    }

    /// Asks GET_CONSUMER_CONNECTION_LIST (203).
    pub struct GetConsumerConnectionListRequest {
        consumer_group: String => "consumerGroup",
    }

    /// Asks GET_PRODUCER_CONNECTION_LIST (204).
    pub struct GetProducerConnectionListRequest {
        producer_group: String => "producerGroup",
    }

    /// Asks GET_CONSUMER_RUNNING_INFO (307).
    pub struct GetConsumerRunningInfoRequest {
        consumer_group: String => "consumerGroup",
        client_id: String => "clientId",
        jstack_enable: bool => "jstackEnable" = false,
    }

    /// Asks GET_CONSUMER_STATUS_FROM_CLIENT (221), INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223).
    pub struct GetConsumerStatusRequest {
        topic: String => "topic",
        group: String => "group",
        client_addr: Option<String> => "clientAddr",
    }

    /// Asks CONSUME_MESSAGE_DIRECTLY (309).
    pub struct ConsumeMessageDirectlyResultRequest {
        consumer_group: String => "consumerGroup",
        client_id: Option<String> => "clientId",
        msg_id: Option<String> => "msgId",
        broker_name: Option<String> => "brokerName",
        topic: Option<String> => "topic",
        topic_sys_flag: Option<i32> => "topicSysFlag",
        group_sys_flag: Option<i32> => "groupSysFlag",
    }
}
