//! What operators ask of clients and brokers.

use std::collections::BTreeMap;

use super::{MessageQueue, SubscriptionData};

bodies! {
    /// Answers GET_CONSUMER_RUNNING_INFO (307). Brokers pass the bytes on; this is for those who look inside.
    pub struct ConsumerRunningInfo {
        properties: BTreeMap<String, String>,
        subscription_set: Vec<SubscriptionData>,
        mq_table: BTreeMap<MessageQueue, ProcessQueueInfo>,
        mq_pop_table: BTreeMap<MessageQueue, PopProcessQueueInfo>,
        status_table: BTreeMap<String, ConsumeStatus>,
        user_consumer_info: BTreeMap<String, String>,
        jstack: Option<String>,
    }

    pub struct ProcessQueueInfo {
        commit_offset: i64,
        cached_msg_min_offset: i64,
        cached_msg_max_offset: i64,
        cached_msg_count: i32,
        #[serde(rename = "cachedMsgSizeInMiB")]
        cached_msg_size_in_mib: i32,
        transaction_msg_min_offset: i64,
        transaction_msg_max_offset: i64,
        transaction_msg_count: i32,
        locked: bool,
        try_unlock_times: i64,
        last_lock_timestamp: i64,
        droped: bool,
        last_pull_timestamp: i64,
        last_consume_timestamp: i64,
    }

    pub struct PopProcessQueueInfo {
        wait_ack_count: i32,
        droped: bool,
        last_pop_timestamp: i64,
    }

    pub struct ConsumeStatus {
        #[serde(rename = "pullRT")]
        pull_rt: f64,
        #[serde(rename = "pullTPS")]
        pull_tps: f64,
        #[serde(rename = "consumeRT")]
        consume_rt: f64,
        #[serde(rename = "consumeOKTPS")]
        consume_ok_tps: f64,
        #[serde(rename = "consumeFailedTPS")]
        consume_failed_tps: f64,
        consume_failed_msgs: i64,
    }

    /// Answers CONSUME_MESSAGE_DIRECTLY (309).
    pub struct ConsumeMessageDirectlyResult {
        order: bool,
        auto_commit: bool = true,
        /// The result's name in Java's spelling.
        consume_result: Option<String>,
        remark: Option<String>,
        spent_time_mills: i64,
    }

    /// Answers GET_BROKER_HA_STATUS (907).
    pub struct HaRuntimeInfo {
        master: bool,
        master_commit_log_max_offset: i64,
        in_sync_slave_nums: i32,
        ha_connection_info: Vec<HaConnectionRuntimeInfo>,
        ha_client_runtime_info: HaClientRuntimeInfo,
    }

    pub struct HaConnectionRuntimeInfo {
        addr: Option<String>,
        slave_ack_offset: i64,
        diff: i64,
        in_sync: bool,
        transferred_byte_in_second: i64,
        transfer_from_where: i64,
    }

    pub struct HaClientRuntimeInfo {
        master_addr: Option<String>,
        transferred_byte_in_second: i64,
        max_offset: i64,
        last_read_timestamp: i64,
        last_write_timestamp: i64,
        master_flush_offset: i64,
    }

    /// A master's addresses and flushed offset, as replicas exchange them.
    pub struct BrokerSyncInfo {
        master_address: Option<String>,
        master_flush_offset: i64,
        master_ha_address: Option<String>,
    }
}
