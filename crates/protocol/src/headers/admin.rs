//! Brokers: configuration and replication.

crate::headers! {
    /// Answers GET_BROKER_CONFIG (26).
    pub struct GetBrokerConfigResponse {
        version: String => "version",
    }

    /// Asks NOTIFY_MIN_BROKER_ID_CHANGE (905).
    pub struct NotifyMinBrokerIdChangeRequest {
        min_broker_id: Option<i64> => "minBrokerId",
        broker_name: Option<String> => "brokerName",
        min_broker_addr: Option<String> => "minBrokerAddr",
        offline_broker_addr: Option<String> => "offlineBrokerAddr",
        ha_broker_addr: Option<String> => "haBrokerAddr",
    }

    /// Asks EXCHANGE_BROKER_HA_INFO (906).
    pub struct ExchangeHAInfoRequest {
        master_ha_address: Option<String> => "masterHaAddress",
        master_flush_offset: Option<i64> => "masterFlushOffset",
        master_address: Option<String> => "masterAddress",
    }

    /// Answers EXCHANGE_BROKER_HA_INFO (906).
    pub struct ExchangeHAInfoResponse {
        master_ha_address: Option<String> => "masterHaAddress",
        master_flush_offset: Option<i64> => "masterFlushOffset",
        master_address: Option<String> => "masterAddress",
    }

    /// Asks RESET_MASTER_FLUSH_OFFSET (908).
    pub struct ResetMasterFlushOffset {
        master_flush_offset: i64 => "masterFlushOffset",
    }

    /// Asks CHECK_ROCKSDB_CQ_WRITE_PROGRESS (354).
    pub struct CheckRocksdbCqWriteProgressRequest {
        topic: String => "topic",
        check_store_time: i64 => "checkStoreTime" = 0,
    }

    /// Asks EXPORT_ROCKSDB_CONFIG_TO_JSON (355).
    pub struct ExportRocksDBConfigToJsonRequest {
        config_type: String => "configType",
    }

    /// Asks ADD_BROKER (902).
    pub struct AddBrokerRequest {
        config_path: Option<String> => "configPath",
    }

    /// Asks REMOVE_BROKER (903).
    pub struct RemoveBrokerRequest {
        broker_name: String => "brokerName",
        broker_cluster_name: String => "brokerClusterName",
        broker_id: i64 => "brokerId",
    }
}
