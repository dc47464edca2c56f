//! Topics of a broker.

crate::headers! {
    /// Asks UPDATE_AND_CREATE_TOPIC (17), UPDATE_AND_CREATE_STATIC_TOPIC (513).
    pub struct CreateTopicRequest {
        topic: String => "topic",
        default_topic: String => "defaultTopic" = String::new(),
        read_queue_nums: i32 => "readQueueNums",
        write_queue_nums: i32 => "writeQueueNums",
        perm: i32 => "perm",
        topic_filter_type: String => "topicFilterType" = String::from("SINGLE_TAG"),
        topic_sys_flag: i32 => "topicSysFlag" = 0,
        order: bool => "order" = false,
        attributes: Option<String> => "attributes",
        force: bool => "force" = false,
    }

    /// Asks DELETE_TOPIC_IN_BROKER (215).
    pub struct DeleteTopicRequest {
        topic: String => "topic",
    }

    /// Asks GET_TOPIC_CONFIG (351).
    pub struct GetTopicConfigRequest {
        topic: String => "topic",
    }

    /// Asks GET_ALL_TOPIC_CONFIG (21).
    pub struct GetAllTopicConfigRequest {
        topic_seq: Option<i32> => "topicSeq",
        data_version: Option<String> => "dataVersion",
        max_topic_num: Option<i32> => "maxTopicNum",
    }

    /// Answers GET_ALL_TOPIC_CONFIG (21).
    pub struct GetAllTopicConfigResponse {
        total_topic_num: i32 => "totalTopicNum",
    }
}
