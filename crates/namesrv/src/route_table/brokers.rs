//! Who is in which cluster at which address: an immutable picture that readers load without waiting.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The master's broker id.
pub const MASTER_ID: i64 = 0;

/// Identifies a broker name for as long as it is known. Never used again for another name.
pub(crate) type BrokerNameId = u32;

/// All addresses registered under one broker name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerGroup {
    pub(crate) id: BrokerNameId,
    /// The cluster of the first registration; another cluster that uses the same broker name does not change it.
    pub cluster: Arc<str>,
    pub name: Arc<str>,
    /// Broker id to `host:port`.
    pub addrs: BTreeMap<i64, Arc<str>>,
    pub zone: Option<Arc<str>>,
    pub acting_master: bool,
    /// The [`Brokers::version`] at which this group last changed.
    pub(crate) version: u64,
}

impl BrokerGroup {
    pub(crate) fn smallest_id(&self) -> Option<i64> {
        self.addrs.keys().next().copied()
    }

    pub(crate) fn has_master(&self) -> bool {
        self.addrs.contains_key(&MASTER_ID)
    }
}

/// Cluster and address of one broker process: the key of its live entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BrokerAddr {
    pub cluster: Arc<str>,
    pub addr: Arc<str>,
}

/// One picture of all brokers. Changing it means making a new one, which is cheap at the size of any cluster: the
/// groups themselves are shared.
#[derive(Debug, Clone, Default)]
pub struct Brokers {
    pub(crate) by_name: HashMap<Arc<str>, Arc<BrokerGroup>>,
    by_id: HashMap<BrokerNameId, Arc<BrokerGroup>>,
    pub(crate) clusters: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    pub(crate) filter_servers: HashMap<BrokerAddr, Arc<[String]>>,
    /// Grows with every change.
    pub(crate) version: u64,
    /// The version at which the filter servers last changed: routes made before are stale, whichever their brokers.
    pub(crate) filter_version: u64,
    next_id: BrokerNameId,
}

impl Brokers {
    pub fn group(&self, name: &str) -> Option<&Arc<BrokerGroup>> {
        self.by_name.get(name)
    }

    pub(crate) fn group_by_id(&self, id: BrokerNameId) -> Option<&Arc<BrokerGroup>> {
        self.by_id.get(&id)
    }

    /// Every broker name with its group, in no order.
    pub fn groups(&self) -> impl Iterator<Item = &Arc<BrokerGroup>> {
        self.by_name.values()
    }

    /// Every cluster with its broker names, sorted.
    pub fn clusters(&self) -> impl Iterator<Item = (&Arc<str>, &BTreeSet<Arc<str>>)> {
        self.clusters.iter()
    }

    pub fn cluster(&self, name: &str) -> Option<&BTreeSet<Arc<str>>> {
        self.clusters.get(name)
    }

    /// A fresh group without addresses. It is not part of the picture until [`Self::put`].
    pub(crate) fn new_group(&mut self, cluster: &Arc<str>, name: &Arc<str>) -> BrokerGroup {
        let id = self.next_id;
        self.next_id += 1;
        BrokerGroup {
            id,
            cluster: cluster.clone(),
            name: name.clone(),
            addrs: BTreeMap::new(),
            zone: None,
            acting_master: false,
            version: 0,
        }
    }

    /// Stores a group and stamps it with this picture's version.
    pub(crate) fn put(&mut self, mut group: BrokerGroup) {
        group.version = self.version;
        let group = Arc::new(group);
        self.by_id.insert(group.id, group.clone());
        self.by_name.insert(group.name.clone(), group);
    }

    pub(crate) fn remove_group(&mut self, name: &str) {
        if let Some(group) = self.by_name.remove(name) {
            self.by_id.remove(&group.id);
        }
    }

    /// Returns whether the cluster had not held the name before.
    pub(crate) fn add_to_cluster(&mut self, cluster: &Arc<str>, name: &Arc<str>) -> bool {
        self.clusters.entry(cluster.clone()).or_default().insert(name.clone())
    }

    pub(crate) fn remove_from_cluster(&mut self, cluster: &str, name: &str) {
        if let Some(names) = self.clusters.get_mut(cluster) {
            names.remove(name);
            if names.is_empty() {
                self.clusters.remove(cluster);
            }
        }
    }

    /// Other clusters that list the same broker name.
    pub(crate) fn other_clusters_of(&self, cluster: &str, name: &str) -> Vec<Arc<str>> {
        let others = self.clusters.iter().filter(|(known, names)| known.as_ref() != cluster && names.contains(name));
        others.map(|(known, _)| known.clone()).collect()
    }
}
