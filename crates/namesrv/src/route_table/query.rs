//! Everything else that is asked of the table, and the admin's changes to rows.

use std::sync::Arc;

use super::RouteTable;
use super::brokers::BrokerAddr;
use super::json_text::{Dialect, JsonText};
use super::route::write_group;
use super::topics::{PERM_READ, PERM_WRITE, Rows};
use super::types::DataVersion;

const FLAG_UNIT: u16 = 1;
const FLAG_UNIT_SUB: u16 = 2;

/// QUERY_DATA_VERSION's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionCheck {
    pub changed: bool,
    /// What the table holds, if it knows the broker.
    pub known: Option<DataVersion>,
}

/// Which topics a list names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitFilter {
    Unit,
    UnitSub,
    UnitSubButNotUnit,
}

impl UnitFilter {
    fn takes(self, rows: &Rows) -> bool {
        // The first row speaks for all, as in Java.
        let flag = rows.as_slice().first().map_or(0, |row| row.sys_flag);
        match self {
            Self::Unit => flag & FLAG_UNIT != 0,
            Self::UnitSub => flag & FLAG_UNIT_SUB != 0,
            Self::UnitSubButNotUnit => flag & FLAG_UNIT_SUB != 0 && flag & FLAG_UNIT == 0,
        }
    }
}

/// How large the tables are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableSizes {
    pub clusters: usize,
    pub broker_names: usize,
    pub brokers_alive: usize,
    pub topics: usize,
    pub rows: usize,
    /// Queues that can be read, over all rows.
    pub queues: usize,
    pub static_topics: usize,
    /// Bytes of rows and names.
    pub table_bytes: usize,
    /// Bytes of encoded answers.
    pub encoded_bytes: usize,
    pub routes_encoded: u64,
}

impl RouteTable {
    /// QUERY_DATA_VERSION: compares, and counts as a sign of life whatever comes of it.
    pub fn check_version(&self, broker: &BrokerAddr, version: DataVersion, now_ms: i64) -> VersionCheck {
        let mut live = self.live.lock();
        let known = live.touch(broker, now_ms).map(|live| live.version);
        VersionCheck { changed: known != Some(version), known }
    }

    /// BROKER_HEARTBEAT. Returns whether the broker is known.
    pub fn heartbeat(&self, broker: &BrokerAddr, now_ms: i64) -> bool {
        self.live.lock().touch(broker, now_ms).is_some()
    }

    /// GET_BROKER_MEMBER_GROUP's body. The cluster is the asker's, and the addresses may be none.
    pub fn member_group(&self, cluster: Option<&str>, broker_name: Option<&str>) -> Vec<u8> {
        let brokers = self.brokers.load();
        let mut out = JsonText::new(Dialect::Legacy, 256);
        out.open(b'{');
        out.field("brokerMemberGroup");
        out.open(b'{');
        out.field("brokerAddrs");
        out.open(b'{');
        for (id, addr) in broker_name.and_then(|name| brokers.group(name)).iter().flat_map(|group| &group.addrs) {
            out.int_key(*id);
            out.text(addr);
        }
        out.close(b'}');
        for (field, value) in [("brokerName", broker_name), ("cluster", cluster)] {
            if let Some(value) = value {
                out.field(field);
                out.text(value);
            }
        }
        out.close(b'}');
        out.close(b'}');
        out.finish()
    }

    /// GET_BROKER_CLUSTER_INFO's body, always in the legacy dialect.
    pub fn cluster_info(&self) -> Vec<u8> {
        let brokers = self.brokers.load();
        let mut groups: Vec<_> = brokers.groups().collect();
        groups.sort_by(|one, other| one.name.cmp(&other.name));
        let mut out = JsonText::new(Dialect::Legacy, 64 + 160 * groups.len());
        out.open(b'{');
        out.field("brokerAddrTable");
        out.open(b'{');
        for group in groups {
            out.key(&group.name);
            write_group(&mut out, group, None);
        }
        out.close(b'}');
        out.field("clusterAddrTable");
        out.open(b'{');
        for (cluster, names) in brokers.clusters() {
            out.key(cluster);
            out.open(b'[');
            for name in names {
                out.item();
                out.text(name);
            }
            out.close(b']');
        }
        out.close(b'}');
        out.close(b'}');
        out.finish()
    }

    /// GET_ALL_TOPIC_LIST_FROM_NAMESERVER's body.
    pub fn all_topics(&self) -> Vec<u8> {
        self.topic_list(|_| true)
    }

    /// A number that changes when a topic appears or goes.
    pub fn topics_version(&self) -> u64 {
        self.topics.shards.iter().map(|shard| shard.read().topics_version).sum()
    }

    /// GET_TOPICS_BY_CLUSTER's body.
    pub fn topics_of_cluster(&self, cluster: &str) -> Vec<u8> {
        let brokers = self.brokers.load();
        let names = brokers.cluster(cluster).into_iter().flatten();
        let ids: std::collections::HashSet<u32> =
            names.filter_map(|name| brokers.group(name)).map(|group| group.id).collect();
        self.topic_list(|rows| rows.as_slice().iter().any(|row| ids.contains(&row.broker)))
    }

    /// The bodies of GET_UNIT_TOPIC_LIST and its two sisters.
    pub fn unit_topics(&self, filter: UnitFilter) -> Vec<u8> {
        self.topic_list(|rows| filter.takes(rows))
    }

    /// GET_SYSTEM_TOPIC_LIST_FROM_NS's body: clusters and broker names are topics, too.
    pub fn system_topics(&self) -> Vec<u8> {
        let brokers = self.brokers.load();
        let mut names: Vec<&Arc<str>> =
            brokers.clusters().flat_map(|(cluster, names)| names.iter().chain([cluster])).collect();
        names.sort_unstable();
        names.dedup();
        let mut groups: Vec<_> = brokers.groups().filter(|group| !group.addrs.is_empty()).collect();
        groups.sort_by(|one, other| one.name.cmp(&other.name));
        let addr = groups.first().and_then(|group| group.addrs.values().next());
        let mut out = JsonText::new(Dialect::Legacy, 64 + 32 * names.len());
        out.open(b'{');
        if let Some(addr) = addr {
            out.field("brokerAddr");
            out.text(addr);
        }
        out.field("topicList");
        out.open(b'[');
        for name in names {
            out.item();
            out.text(name);
        }
        out.close(b']');
        out.close(b'}');
        out.finish()
    }

    /// Shards are read one after the other, never for longer than it takes to copy their names.
    fn topic_list(&self, takes: impl Fn(&Rows) -> bool) -> Vec<u8> {
        let mut out = JsonText::new(Dialect::Legacy, 4096);
        out.open(b'{');
        out.field("topicList");
        out.open(b'[');
        for shard in &self.topics.shards {
            let (mut text, mut ends) = (String::new(), Vec::new());
            for (topic, _) in shard.read().topics().filter(|(_, rows)| takes(rows)) {
                text.push_str(topic);
                ends.push(text.len());
            }
            let mut start = 0;
            for end in ends {
                out.item();
                out.text(text.get(start..end).unwrap_or_default());
                start = end;
            }
        }
        out.close(b']');
        out.close(b'}');
        out.finish()
    }

    /// WIPE_WRITE_PERM_OF_BROKER. Returns the number of the broker's rows.
    pub fn wipe_write_perm(&self, broker_name: &str) -> usize {
        self.change_perms(broker_name, |perm| perm & !PERM_WRITE)
    }

    /// ADD_WRITE_PERM_OF_BROKER: to read and write, and nothing else, as in Java.
    pub fn add_write_perm(&self, broker_name: &str) -> usize {
        self.change_perms(broker_name, |_| PERM_READ | PERM_WRITE)
    }

    fn change_perms(&self, broker_name: &str, change: impl Fn(u8) -> u8) -> usize {
        let _order = self.order.lock();
        let Some(id) = self.brokers.load().group(broker_name).map(|group| group.id) else {
            return 0;
        };
        self.topics.shards.iter().map(|shard| shard.write().change_perms(id, &change)).sum()
    }

    /// DELETE_TOPIC_IN_NAMESRV: everywhere, or on the brokers of one cluster.
    pub fn delete_topic(&self, topic: &str, cluster: Option<&str>) {
        let _order = self.order.lock();
        let hash = self.topics.hasher.hash(topic);
        let Some(cluster) = cluster else {
            self.topics.shard(hash).write().remove_topic(&self.topics.hasher, hash, topic);
            return;
        };
        let brokers = self.brokers.load();
        let names = brokers.cluster(cluster).into_iter().flatten();
        let ids: Vec<u32> = names.filter_map(|name| brokers.group(name)).map(|group| group.id).collect();
        self.topics.shard(hash).write().remove_topic_rows(&self.topics.hasher, hash, topic, &ids);
    }

    pub fn sizes(&self) -> TableSizes {
        let brokers = self.brokers.load();
        let mut sizes = TableSizes {
            clusters: brokers.clusters.len(),
            broker_names: brokers.by_name.len(),
            brokers_alive: self.live.lock().len(),
            routes_encoded: self.routes_encoded.load(std::sync::atomic::Ordering::Relaxed),
            ..TableSizes::default()
        };
        for shard in &self.topics.shards {
            let shard = shard.read();
            sizes.topics += shard.topic_count();
            sizes.rows += shard.row_count();
            sizes.queues += shard.queue_count();
            sizes.static_topics += shard.mapping_count();
            sizes.table_bytes += shard.bytes();
            sizes.encoded_bytes += shard.encoded.read().bytes();
        }
        sizes
    }
}
