//! What brokers and the controller tell each other.

use std::collections::{BTreeMap, BTreeSet};

use super::BrokerMemberGroup;

bodies! {
    /// The replicas that hold everything acknowledged.
    pub struct SyncStateSet {
        sync_state_set: BTreeSet<i64>,
        sync_state_set_epoch: i32,
    }

    /// Answers CONTROLLER_ELECT_MASTER (1002).
    pub struct ElectMasterResponseBody {
        broker_member_group: Option<BrokerMemberGroup>,
        sync_state_set: Option<BTreeSet<i64>>,
    }

    /// Answers CONTROLLER_GET_SYNC_STATE_DATA (1006).
    pub struct BrokerReplicasInfo {
        replicas_info_table: BTreeMap<String, ReplicasInfo>,
    }

    pub struct ReplicasInfo {
        master_broker_id: Option<i64>,
        master_address: Option<String>,
        master_epoch: Option<i32>,
        sync_state_set_epoch: Option<i32>,
        in_sync_replicas: Vec<ReplicaIdentity>,
        not_in_sync_replicas: Vec<ReplicaIdentity>,
    }

    pub struct ReplicaIdentity {
        broker_name: Option<String>,
        broker_id: Option<i64>,
        broker_address: Option<String>,
        alive: Option<bool>,
    }

    /// Answers GET_BROKER_EPOCH_CACHE (1007).
    pub struct EpochEntryCache {
        cluster_name: Option<String>,
        broker_name: Option<String>,
        broker_id: i64,
        epoch_list: Vec<EpochEntry>,
        max_offset: i64,
    }

    pub struct EpochEntry {
        epoch: i32,
        start_offset: i64,
        end_offset: i64 = i64::MAX,
    }
}
