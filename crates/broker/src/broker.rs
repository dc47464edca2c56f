//! The broker's parts, in one place.

use std::net::SocketAddr;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use protocol::body::SubscriptionGroupConfig;
use service::config::Live;
use service::keys::{BrokerConfig, BrokerSettings, MessageStoreConfig};
use store::Store;

use crate::clients::ClientRegistry;
use crate::delay::DelayLevels;
use crate::delay_delivery::DelayDelivery;
use crate::dispatch::Lanes;
use crate::groups::SubscriptionGroups;
use crate::long_poll::LongPolls;
use crate::offsets::ConsumerOffsets;
use crate::pull::ParkedPull;
use crate::queue_locks::QueueLocks;
use crate::registration::Registration;
use crate::send_properties::BrokerPairs;
use crate::stats::Stats;
use crate::topics::TopicTable;
use crate::unique_keys::UniqueKeys;

/// Everything a request handler may need.
pub struct Broker {
    pub settings: Live<BrokerSettings>,
    /// `storePathRootDir`.
    pub data_dir: PathBuf,
    /// Milliseconds since 1970.
    pub started_at: i64,
    /// Where clients are told to connect, and what message ids hold.
    pub store_host: SocketAddr,
    /// Sends are answered after the disk has them.
    pub sync_flush: bool,
    pub store: Arc<Store>,
    pub topics: Arc<TopicTable>,
    pub groups: SubscriptionGroups,
    pub offsets: ConsumerOffsets,
    pub clients: ClientRegistry,
    pub locks: QueueLocks,
    pub lanes: Lanes,
    pub stats: Stats,
    pub registration: Registration,
    pub long_polls: Arc<LongPolls<ParkedPull>>,
    pub delay: Arc<DelayDelivery>,
    pub unique_keys: UniqueKeys,
    /// Properties every message gets.
    pub pairs: BrokerPairs,
    /// Set when the stop begins: nothing may be put off any more.
    pub(crate) stopping: AtomicBool,
}

/// The broker's own keys, as they are now. Not to be held across an await.
pub struct ConfigNow(arc_swap::Guard<Arc<BrokerSettings>>);

impl Deref for ConfigNow {
    type Target = BrokerConfig;

    fn deref(&self) -> &BrokerConfig {
        &self.0.broker
    }
}

/// The store's keys, as they are now. Not to be held across an await.
pub struct StoreConfigNow(arc_swap::Guard<Arc<BrokerSettings>>);

impl Deref for StoreConfigNow {
    type Target = MessageStoreConfig;

    fn deref(&self) -> &MessageStoreConfig {
        &self.0.store
    }
}

impl Broker {
    pub fn config(&self) -> ConfigNow {
        ConfigNow(self.settings.load())
    }

    pub fn store_config(&self) -> StoreConfigNow {
        StoreConfigNow(self.settings.load())
    }

    /// The broker is on its way down: what would wait is answered at once.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// `brokerName`.
    pub fn name(&self) -> String {
        self.settings.load().identity.broker_name.clone()
    }

    /// `brokerClusterName`.
    pub fn cluster(&self) -> String {
        self.settings.load().identity.broker_cluster_name.clone()
    }

    /// `brokerIP1:listenPort`.
    pub fn address(&self) -> String {
        address(&self.config().broker_ip1, self.store_host.port())
    }

    /// A group's settings; an unknown group is made if that is allowed.
    pub fn find_group(&self, group: &str, now: i64) -> Option<Arc<SubscriptionGroupConfig>> {
        self.groups.find(group, self.config().auto_create_subscription_group, now)
    }

    pub fn delay_levels(&self) -> &DelayLevels {
        self.delay.table()
    }

    pub fn commit_log_paths(&self) -> Vec<PathBuf> {
        self.store_config().commit_log_paths().into_iter().map(PathBuf::from).collect()
    }
}

/// `host:port`, also for an IPv6 host.
pub(crate) fn address(host: &str, port: u16) -> String {
    if host.contains(':') && !host.starts_with('[') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
