//! The name server's requests.

crate::headers! {
    /// Asks REGISTER_BROKER (103).
    pub struct RegisterBrokerRequest {
        broker_name: String => "brokerName",
        broker_addr: String => "brokerAddr",
        cluster_name: String => "clusterName",
        ha_server_addr: String => "haServerAddr" = String::new(),
        broker_id: i64 => "brokerId",
        heartbeat_timeout_millis: Option<i64> => "heartbeatTimeoutMillis",
        enable_acting_master: Option<bool> => "enableActingMaster",
        compressed: bool => "compressed" = false,
        body_crc32: i32 => "bodyCrc32" = 0,
    }

    /// Answers REGISTER_BROKER (103).
    pub struct RegisterBrokerResponse {
        ha_server_addr: Option<String> => "haServerAddr",
        master_addr: Option<String> => "masterAddr",
    }

    /// Asks UNREGISTER_BROKER (104).
    pub struct UnRegisterBrokerRequest {
        broker_name: String => "brokerName",
        broker_addr: String => "brokerAddr",
        cluster_name: String => "clusterName",
        broker_id: i64 => "brokerId",
    }

    /// Asks BROKER_HEARTBEAT (904).
    pub struct BrokerHeartbeatRequest {
        cluster_name: String => "clusterName" = String::new(),
        broker_addr: String => "brokerAddr",
        broker_name: String => "brokerName" = String::new(),
        broker_id: Option<i64> => "brokerId",
        epoch: Option<i32> => "epoch",
        max_offset: Option<i64> => "maxOffset",
        confirm_offset: Option<i64> => "confirmOffset",
        heartbeat_timeout_mills: Option<i64> => "heartbeatTimeoutMills",
        election_priority: Option<i32> => "electionPriority",
    }

    /// Asks QUERY_DATA_VERSION (322).
    pub struct QueryDataVersionRequest {
        broker_name: String => "brokerName",
        broker_addr: String => "brokerAddr",
        cluster_name: String => "clusterName" = String::new(),
        broker_id: i64 => "brokerId",
    }

    /// Answers QUERY_DATA_VERSION (322).
    pub struct QueryDataVersionResponse {
        changed: bool => "changed",
    }

    /// Asks GET_ROUTEINFO_BY_TOPIC (105).
    pub struct GetRouteInfoRequest {
        topic: String => "topic",
        accept_standard_json_only: bool => "acceptStandardJsonOnly" = false,
    }

    /// Asks REGISTER_TOPIC_IN_NAMESRV (217).
    pub struct RegisterTopicRequest {
        topic: String => "topic",
    }

    /// Asks DELETE_TOPIC_IN_NAMESRV (216).
    pub struct DeleteTopicFromNamesrvRequest {
        topic: String => "topic",
        cluster_name: Option<String> => "clusterName",
    }

    /// Asks GET_TOPICS_BY_CLUSTER (224).
    pub struct GetTopicsByClusterRequest {
        cluster: String => "cluster",
    }

    /// Asks GET_BROKER_MEMBER_GROUP (901).
    pub struct GetBrokerMemberGroupRequest {
        cluster_name: String => "clusterName",
        broker_name: String => "brokerName",
    }

    /// Asks WIPE_WRITE_PERM_OF_BROKER (205).
    pub struct WipeWritePermOfBrokerRequest {
        broker_name: String => "brokerName",
    }

    /// Answers WIPE_WRITE_PERM_OF_BROKER (205).
    pub struct WipeWritePermOfBrokerResponse {
        wipe_topic_count: i32 => "wipeTopicCount",
    }

    /// Asks ADD_WRITE_PERM_OF_BROKER (327).
    pub struct AddWritePermOfBrokerRequest {
        broker_name: String => "brokerName",
    }

    /// Answers ADD_WRITE_PERM_OF_BROKER (327).
    pub struct AddWritePermOfBrokerResponse {
        add_topic_count: i32 => "addTopicCount",
    }

    /// Asks PUT_KV_CONFIG (100).
    pub struct PutKVConfigRequest {
        namespace: Option<String> => "namespace",
        key: Option<String> => "key",
        value: String => "value" = String::new(),
    }

    /// Asks GET_KV_CONFIG (101).
    pub struct GetKVConfigRequest {
        namespace: String => "namespace",
        key: String => "key",
    }

    /// Answers GET_KV_CONFIG (101).
    pub struct GetKVConfigResponse {
        value: Option<String> => "value",
    }

    /// Asks DELETE_KV_CONFIG (102).
    pub struct DeleteKVConfigRequest {
        namespace: String => "namespace",
        key: String => "key",
    }

    /// Asks GET_KVLIST_BY_NAMESPACE (219).
    pub struct GetKVListByNamespaceRequest {
        namespace: String => "namespace",
    }
}
