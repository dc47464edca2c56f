//! What goes into the table and what comes out of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::brokers::BrokerAddr;
use super::live::LiveMark;

/// A connection's number, unique for the life of the process.
pub type ConnectionId = u64;

/// Says which state of its topics a broker speaks of. Equal only when all three parts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DataVersion {
    /// The master's epoch in controller mode, else 0. A registration with a smaller one than the table's is stale.
    pub state_version: i64,
    pub timestamp: i64,
    pub counter: Option<i64>,
}

/// One topic as a broker registers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicEntry {
    pub topic: String,
    pub read_queues: i32,
    pub write_queues: i32,
    pub perm: i32,
    pub sys_flag: i32,
}

/// A static topic's share of one broker: which of its logical queues live there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MappingInfo {
    pub topic: Option<String>,
    pub scope: Option<String>,
    pub total_queues: i32,
    pub broker_name: Option<String>,
    pub epoch: i64,
    pub dirty: bool,
    pub current_ids: Option<BTreeMap<i32, i32>>,
}

/// REGISTER_BROKER, decoded.
#[derive(Debug, Clone, Default)]
pub struct Registration {
    pub cluster: String,
    pub broker_name: String,
    pub broker_addr: String,
    pub broker_id: i64,
    pub ha_addr: Option<String>,
    pub zone: Option<String>,
    pub timeout_ms: Option<i64>,
    /// `None` marks a broker too old to know of acting masters.
    pub acting_master: Option<bool>,
    pub data_version: DataVersion,
    pub topics: Vec<TopicEntry>,
    pub mappings: Vec<(String, MappingInfo)>,
    /// `None` leaves the known list, an empty one removes it.
    pub filter_servers: Option<Vec<String>>,
    pub connection: ConnectionId,
}

/// Switches that an operator may change while the table lives.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules {
    pub delete_topics_with_registration: bool,
    pub notify_min_broker_id: bool,
}

/// What a registration came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Applied. A slave is told its master's addresses, when the master is alive.
    Accepted { master_addr: Option<Arc<str>>, ha_addr: Option<Arc<str>> },
    /// The id belongs to a broker of a later epoch; nothing was applied.
    Stale,
    /// A single topic came before the broker's first whole registration.
    TooEarly,
}

/// A registration's answer and what else must happen.
#[derive(Debug, Clone)]
pub struct Registered {
    pub outcome: Outcome,
    pub notice: Option<MinBrokerIdChange>,
    pub events: Vec<BrokerEvent>,
    /// Rows written: new ones and those whose content changed.
    pub rows_changed: usize,
}

/// NOTIFY_MIN_BROKER_ID_CHANGE, to be sent to `recipients`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinBrokerIdChange {
    pub min_broker_id: i64,
    pub min_broker_addr: Arc<str>,
    pub offline_addr: Option<Arc<str>>,
    pub ha_addr: Option<Arc<str>>,
    pub recipients: Vec<Arc<str>>,
}

/// Why a broker is to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveReason {
    /// It said so.
    Unregistered,
    /// Its connection closed.
    ConnectionClosed,
    /// It stayed silent for longer than its time-out.
    Expired,
}

impl LeaveReason {
    pub fn name(self) -> &'static str {
        match self {
            Self::Unregistered => "unregistered",
            Self::ConnectionClosed => "connection closed",
            Self::Expired => "expired",
        }
    }
}

/// A request to remove one broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unregistration {
    pub cluster: Arc<str>,
    pub broker_addr: Arc<str>,
    /// `None` when no broker name holds the address any more: only the live entry goes.
    pub broker_name: Option<Arc<str>>,
    pub broker_id: i64,
    pub reason: LeaveReason,
    /// Set when the server itself asks: the removal counts only while the live entry is still that one.
    pub expected: Option<LiveMark>,
}

/// What a batch of unregistrations came to.
#[derive(Debug, Clone, Default)]
pub struct Unregistered {
    pub notices: Vec<MinBrokerIdChange>,
    pub events: Vec<BrokerEvent>,
}

/// Something an operator wants to read in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokerEvent {
    Joined {
        broker: BrokerAddr,
        name: Arc<str>,
        id: i64,
    },
    Left {
        broker: BrokerAddr,
        name: Arc<str>,
        id: i64,
        reason: LeaveReason,
    },
    /// The id moved to another address.
    AddressChanged {
        broker: BrokerAddr,
        name: Arc<str>,
        id: i64,
        before: Arc<str>,
    },
    /// The address took another id: 0 is the master.
    RoleChanged {
        broker: BrokerAddr,
        name: Arc<str>,
        id: i64,
        before: i64,
    },
    /// A registration of an older epoch was turned away.
    Refused {
        broker: BrokerAddr,
        name: Arc<str>,
        id: i64,
        holder: Arc<str>,
        state_version: i64,
        known: i64,
    },
    /// Two clusters use one broker name and overwrite each other.
    NameInTwoClusters {
        cluster: Arc<str>,
        name: Arc<str>,
        others: Vec<Arc<str>>,
    },
}
