//! REGISTER_BROKER and REGISTER_TOPIC_IN_NAMESRV. The order of the steps is Java's: it can be observed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::RouteTable;
use super::brokers::{BrokerAddr, BrokerGroup, Brokers, MASTER_ID};
use super::live::Live;
use super::topics::{PERM_WRITE, Row, Topics};
use super::types::*;

/// A registration's names, shared by everything that keeps them.
struct Who {
    key: BrokerAddr,
    name: Arc<str>,
    id: i64,
}

/// What the addresses' part of a registration decided for the topics' part.
struct Standing {
    group: BrokerGroup,
    /// The broker name or the id was not known before: every topic is taken.
    first: bool,
    /// The id has become the smallest of its name.
    min_changed: bool,
    /// A slave that speaks for a group without master.
    prime_slave: bool,
}

enum Verdict {
    Stale,
    TooEarly,
    Go(Standing),
}

impl RouteTable {
    pub fn register(&self, registration: &Registration, rules: &Rules, now_ms: i64) -> Registered {
        let _order = self.order.lock();
        let mut events = Vec::new();
        let mut next = self.next_brokers();
        let who = Who {
            key: BrokerAddr {
                cluster: registration.cluster.as_str().into(),
                addr: registration.broker_addr.as_str().into(),
            },
            name: registration.broker_name.as_str().into(),
            id: registration.broker_id,
        };
        let standing = match self.place(&mut next, &who, registration, &mut events) {
            Verdict::Go(standing) => standing,
            verdict => {
                self.publish_if_changed(next);
                let outcome = if matches!(verdict, Verdict::Stale) { Outcome::Stale } else { Outcome::TooEarly };
                return Registered { outcome, notice: None, events, rows_changed: 0 };
            }
        };
        self.publish_if_changed(next);

        let known_version = self.live.lock().get(&who.key).map(|live| live.version);
        let changed = standing.first || known_version != Some(registration.data_version);
        let speaks_for_topics = who.id == MASTER_ID || standing.prime_slave;
        let rows_changed =
            if speaks_for_topics { self.take_topics(registration, &standing, changed, rules) } else { 0 };
        self.enliven(registration, &who, now_ms, &mut events);
        self.take_filter_servers(registration, &who);

        let notice = (standing.min_changed && rules.notify_min_broker_id).then(|| {
            let ha_addr = registration.ha_addr.as_deref().map(Into::into);
            min_broker_id_change(&standing.group.addrs, None, ha_addr)
        });
        let (master_addr, ha_addr) = self.master_of(&standing.group, &who).unzip();
        let outcome = Outcome::Accepted { master_addr, ha_addr: ha_addr.flatten() };
        Registered { outcome, notice: notice.flatten(), events, rows_changed }
    }

    /// Cluster and address tables: who is where, and whether the registration may go on.
    fn place(
        &self,
        next: &mut Brokers,
        who: &Who,
        registration: &Registration,
        events: &mut Vec<BrokerEvent>,
    ) -> Verdict {
        let cluster = &who.key.cluster;
        if next.add_to_cluster(cluster, &who.name) {
            let others = next.other_clusters_of(cluster, &who.name);
            if !others.is_empty() {
                let (cluster, name) = (cluster.clone(), who.name.clone());
                events.push(BrokerEvent::NameInTwoClusters { cluster, name, others });
            }
        }
        let known = next.group(&who.name).cloned();
        let mut group = match &known {
            Some(known) => BrokerGroup::clone(known),
            None => next.new_group(cluster, &who.name),
        };
        group.acting_master = registration.acting_master.unwrap_or(false);
        group.zone = registration.zone.as_deref().map(Into::into);
        let smallest_before = group.smallest_id().unwrap_or(0);
        let id_before = group.addrs.iter().find(|(id, addr)| **addr == who.key.addr && **id != who.id);
        let id_before = id_before.map(|(id, _)| *id);
        // One address has one id: a slave that became master leaves its old one.
        group.addrs.retain(|id, addr| *addr != who.key.addr || *id == who.id);

        let verdict = self.judge(&group, who, registration, events);
        if let Some(verdict) = verdict {
            store_group(next, known.as_deref(), group);
            return verdict;
        }
        let before = group.addrs.insert(who.id, who.key.addr.clone());
        report_place(who, id_before, before.as_ref(), events);
        store_group(next, known.as_deref(), group.clone());
        let smallest = group.smallest_id();
        Verdict::Go(Standing {
            first: known.is_none() || before.as_deref().is_none_or(str::is_empty),
            min_changed: who.id < smallest_before,
            prime_slave: registration.acting_master.is_some() && who.id != MASTER_ID && smallest == Some(who.id),
            group,
        })
    }

    /// The fence against a deposed master, and against a single topic before the whole list.
    fn judge(
        &self,
        group: &BrokerGroup,
        who: &Who,
        registration: &Registration,
        events: &mut Vec<BrokerEvent>,
    ) -> Option<Verdict> {
        let holder = group.addrs.get(&who.id);
        if let Some(holder) = holder.filter(|holder| **holder != who.key.addr) {
            let mut live = self.live.lock();
            let key = BrokerAddr { cluster: who.key.cluster.clone(), addr: holder.clone() };
            let known = live.get(&key).map(|live| live.version.state_version);
            let state_version = registration.data_version.state_version;
            if let Some(known) = known.filter(|known| *known > state_version) {
                live.remove(&who.key);
                events.push(BrokerEvent::Refused {
                    broker: who.key.clone(),
                    name: who.name.clone(),
                    id: who.id,
                    holder: holder.clone(),
                    state_version,
                    known,
                });
                return Some(Verdict::Stale);
            }
        }
        (holder.is_none() && registration.topics.len() == 1).then_some(Verdict::TooEarly)
    }

    /// Topic rows and static-topic mappings. Returns how many rows were written.
    fn take_topics(&self, registration: &Registration, standing: &Standing, changed: bool, rules: &Rules) -> usize {
        if rules.delete_topics_with_registration && registration.mappings.is_empty() {
            self.drop_unlisted(registration, standing);
        }
        let read_only = standing.prime_slave && standing.group.acting_master;
        let mut written = 0;
        for (at, topics) in by_shard(&self.topics, &registration.topics).into_iter().enumerate() {
            if topics.is_empty() {
                continue;
            }
            let shard = &self.topics.shards[at];
            let rows = topics.into_iter().map(|(hash, topic)| {
                let mut row = Row::new(standing.group.id, topic);
                if read_only {
                    row.perm &= !PERM_WRITE;
                }
                (hash, topic.topic.as_str(), row)
            });
            // Only this side changes rows, under `order`: what is read here still holds when it is written below.
            let news: Vec<_> = {
                let shard = shard.read();
                rows.filter(|(hash, topic, row)| {
                    let known = shard.get(*hash, topic).and_then(|rows| rows.of(row.broker));
                    match known {
                        None => true,
                        // The version alone would lose the changes in the later parts of a split registration. A row
                        // whose perm was changed by hand stays so until the broker has something new to say.
                        Some(known) if !changed => !known.same_registration(row),
                        Some(known) => known != row,
                    }
                })
                .collect()
            };
            if news.is_empty() {
                continue;
            }
            written += news.len();
            let mut shard = shard.write();
            for (hash, topic, row) in news {
                shard.put(&self.topics.hasher, hash, topic, row);
            }
        }
        self.take_mappings(registration);
        written
    }

    fn take_mappings(&self, registration: &Registration) {
        for (topic, info) in &registration.mappings {
            let broker = info.broker_name.clone().unwrap_or_default();
            let mut shard = self.topics.shard(self.topics.hasher.hash(topic)).write();
            if shard.mapping(topic).and_then(|known| known.get(&broker)) != Some(info) {
                shard.put_mapping(topic, broker, info.clone());
            }
        }
    }

    /// `deleteTopicWithBrokerRegistration`: what the broker no longer lists goes.
    fn drop_unlisted(&self, registration: &Registration, standing: &Standing) {
        let listed: HashSet<&str> = registration.topics.iter().map(|topic| topic.topic.as_str()).collect();
        let id = standing.group.id;
        for shard in &self.topics.shards {
            let any = shard.read().topics().any(|(topic, rows)| rows.of(id).is_some() && !listed.contains(topic));
            if any {
                let gone = |topic: &str, broker| broker == id && !listed.contains(topic);
                shard.write().remove_rows(&self.topics.hasher, gone);
            }
        }
    }

    fn enliven(&self, registration: &Registration, who: &Who, now_ms: i64, events: &mut Vec<BrokerEvent>) {
        let mut live = Live::new(now_ms, registration.timeout_ms, registration.data_version, registration.connection);
        live.ha_addr = registration.ha_addr.as_deref().map(Into::into);
        let before = self.live.lock().replace(who.key.clone(), live);
        if before.is_none() {
            events.push(BrokerEvent::Joined { broker: who.key.clone(), name: who.name.clone(), id: who.id });
        }
    }

    fn take_filter_servers(&self, registration: &Registration, who: &Who) {
        let Some(servers) = &registration.filter_servers else {
            return;
        };
        let known = self.brokers.load();
        let known = known.filter_servers.get(&who.key);
        if known.map_or(&[][..], |known| known) == servers.as_slice() {
            return;
        }
        let mut next = self.next_brokers();
        next.filter_version = next.version;
        if servers.is_empty() {
            next.filter_servers.remove(&who.key);
        } else {
            next.filter_servers.insert(who.key.clone(), servers.as_slice().into());
        }
        self.publish(next);
    }

    /// For a slave: its master's address and HA address, if the master is alive.
    fn master_of(&self, group: &BrokerGroup, who: &Who) -> Option<(Arc<str>, Option<Arc<str>>)> {
        if who.id == MASTER_ID {
            return None;
        }
        let addr = group.addrs.get(&MASTER_ID)?;
        let key = BrokerAddr { cluster: who.key.cluster.clone(), addr: addr.clone() };
        let live = self.live.lock();
        live.get(&key).map(|live| (addr.clone(), live.ha_addr.clone()))
    }

    /// REGISTER_TOPIC_IN_NAMESRV: rows for one topic, each with its broker's name. Returns whether all were taken. An
    /// unknown broker ends it: a new topic is then not taken at all, and a known one keeps the rows taken so far, as in
    /// Java.
    pub fn register_topic(&self, topic: &str, rows: &[(String, TopicEntry)]) -> bool {
        let _order = self.order.lock();
        let brokers = self.brokers.load();
        let known = rows.iter().map_while(|(broker, entry)| Some(Row::new(brokers.group(broker)?.id, entry)));
        let known: Vec<Row> = known.collect();
        let all = known.len() == rows.len();
        let hash = self.topics.hasher.hash(topic);
        let mut shard = self.topics.shard(hash).write();
        if all || shard.get(hash, topic).is_some() {
            for row in known {
                shard.put(&self.topics.hasher, hash, topic, row);
            }
        }
        all
    }
}

fn store_group(next: &mut Brokers, known: Option<&BrokerGroup>, group: BrokerGroup) {
    if known != Some(&group) {
        next.put(group);
    }
}

fn report_place(who: &Who, id_before: Option<i64>, holder: Option<&Arc<str>>, events: &mut Vec<BrokerEvent>) {
    let (broker, name, id) = (who.key.clone(), who.name.clone(), who.id);
    if let Some(before) = id_before {
        events.push(BrokerEvent::RoleChanged { broker: broker.clone(), name: name.clone(), id, before });
    }
    if let Some(before) = holder.filter(|before| **before != broker.addr) {
        events.push(BrokerEvent::AddressChanged { broker, name, id, before: before.clone() });
    }
}

type Hashed<'a> = (u64, &'a TopicEntry);

/// The topics of a registration, sorted into the shards that hold them. Of a repeated name the last one counts.
fn by_shard<'a>(topics: &Topics, entries: &'a [TopicEntry]) -> Vec<Vec<Hashed<'a>>> {
    let mut sorted: Vec<Vec<Hashed<'a>>> = topics.shards.iter().map(|_| Vec::new()).collect();
    for entry in entries {
        let hash = topics.hasher.hash(&entry.topic);
        if let Some(shard) = sorted.get_mut(Topics::shard_at(hash)) {
            shard.push((hash, entry));
        }
    }
    for shard in &mut sorted {
        let mut last = HashMap::with_capacity(shard.len());
        for (at, (_, entry)) in shard.iter().enumerate() {
            last.insert(entry.topic.as_str(), at);
        }
        if last.len() < shard.len() {
            let mut at = 0;
            shard.retain(|(_, entry)| {
                at += 1;
                last.get(entry.topic.as_str()) == Some(&(at - 1))
            });
        }
    }
    sorted
}

/// Who must hear of a new smallest id: everybody left when one has gone, else everybody but the newcomer.
pub(super) fn min_broker_id_change(
    addrs: &BTreeMap<i64, Arc<str>>,
    offline_addr: Option<Arc<str>>,
    ha_addr: Option<Arc<str>>,
) -> Option<MinBrokerIdChange> {
    let (min_broker_id, min_broker_addr) = addrs.first_key_value().map(|(id, addr)| (*id, addr.clone()))?;
    let everybody = offline_addr.is_some() || addrs.len() == 1;
    let told = addrs.iter().filter(|(id, _)| everybody || **id != min_broker_id);
    let recipients = told.map(|(_, addr)| addr.clone()).collect();
    Some(MinBrokerIdChange { min_broker_id, min_broker_addr, offline_addr, ha_addr, recipients })
}
