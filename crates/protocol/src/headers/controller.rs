//! The controller's requests.

crate::headers! {
    /// Asks CONTROLLER_ALTER_SYNC_STATE_SET (1001).
    pub struct AlterSyncStateSetRequest {
        broker_name: Option<String> => "brokerName",
        master_broker_id: Option<i64> => "masterBrokerId",
        master_epoch: Option<i32> => "masterEpoch",
        invoke_time: i64 => "invokeTime" = 0,
    }

    /// Answers CONTROLLER_ALTER_SYNC_STATE_SET (1001).
    pub struct AlterSyncStateSetResponse {
        new_sync_state_set_epoch: i32 => "newSyncStateSetEpoch" = 0,
    }

    /// Asks CONTROLLER_ELECT_MASTER (1002).
    pub struct ElectMasterRequest {
        cluster_name: String => "clusterName",
        broker_name: String => "brokerName",
        broker_id: i64 => "brokerId" = -1,
        designate_elect: bool => "designateElect" = false,
        invoke_time: Option<i64> => "invokeTime",
    }

    /// Answers CONTROLLER_ELECT_MASTER (1002).
    pub struct ElectMasterResponse {
        master_broker_id: Option<i64> => "masterBrokerId",
        master_address: Option<String> => "masterAddress",
        master_epoch: Option<i32> => "masterEpoch",
        sync_state_set_epoch: Option<i32> => "syncStateSetEpoch",
    }

    /// Asks CONTROLLER_REGISTER_BROKER (1003).
    pub struct RegisterBrokerToControllerRequest {
        cluster_name: Option<String> => "clusterName",
        broker_name: Option<String> => "brokerName",
        broker_id: Option<i64> => "brokerId",
        broker_address: Option<String> => "brokerAddress",
        invoke_time: i64 => "invokeTime" = 0,
    }

    /// Answers CONTROLLER_REGISTER_BROKER (1003).
    pub struct RegisterBrokerToControllerResponse {
        cluster_name: Option<String> => "clusterName",
        broker_name: Option<String> => "brokerName",
        master_broker_id: Option<i64> => "masterBrokerId",
        master_address: Option<String> => "masterAddress",
        master_epoch: Option<i32> => "masterEpoch",
        sync_state_set_epoch: Option<i32> => "syncStateSetEpoch",
    }

    /// Asks CONTROLLER_GET_REPLICA_INFO (1004).
    pub struct GetReplicaInfoRequest {
        broker_name: Option<String> => "brokerName",
    }

    /// Answers CONTROLLER_GET_REPLICA_INFO (1004).
    pub struct GetReplicaInfoResponse {
        master_broker_id: Option<i64> => "masterBrokerId",
        master_address: Option<String> => "masterAddress",
        master_epoch: Option<i32> => "masterEpoch",
    }

    /// Answers CONTROLLER_GET_METADATA_INFO (1005).
    pub struct GetMetaDataResponse {
        group: Option<String> => "group",
        controller_leader_id: Option<String> => "controllerLeaderId",
        controller_leader_address: Option<String> => "controllerLeaderAddress",
        is_leader: bool => "isLeader" = false,
        peers: Option<String> => "peers",
    }

    /// Asks NOTIFY_BROKER_ROLE_CHANGED (1008).
    pub struct NotifyBrokerRoleChangedRequest {
        master_address: Option<String> => "masterAddress",
        master_epoch: Option<i32> => "masterEpoch",
        sync_state_set_epoch: Option<i32> => "syncStateSetEpoch",
        master_broker_id: Option<i64> => "masterBrokerId",
    }

    /// Asks CLEAN_BROKER_DATA (1011).
    pub struct CleanControllerBrokerDataRequest {
        cluster_name: Option<String> => "clusterName",
        broker_name: String => "brokerName",
        broker_controller_ids_to_clean: Option<String> => "brokerControllerIdsToClean",
        is_clean_living_broker: bool => "isCleanLivingBroker" = false,
        invoke_time: i64 => "invokeTime" = 0,
    }

    /// Asks CONTROLLER_GET_NEXT_BROKER_ID (1012).
    pub struct GetNextBrokerIdRequest {
        cluster_name: Option<String> => "clusterName",
        broker_name: Option<String> => "brokerName",
    }

    /// Answers CONTROLLER_GET_NEXT_BROKER_ID (1012).
    pub struct GetNextBrokerIdResponse {
        cluster_name: Option<String> => "clusterName",
        broker_name: Option<String> => "brokerName",
        next_broker_id: Option<i64> => "nextBrokerId",
    }

    /// Asks CONTROLLER_APPLY_BROKER_ID (1013).
    pub struct ApplyBrokerIdRequest {
        cluster_name: Option<String> => "clusterName",
        broker_name: Option<String> => "brokerName",
        applied_broker_id: Option<i64> => "appliedBrokerId",
        register_check_code: Option<String> => "registerCheckCode",
    }

    /// Answers CONTROLLER_APPLY_BROKER_ID (1013).
    pub struct ApplyBrokerIdResponse {
        cluster_name: Option<String> => "clusterName",
        broker_name: Option<String> => "brokerName",
    }
}
