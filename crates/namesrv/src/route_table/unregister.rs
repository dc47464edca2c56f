//! How brokers leave: by their own word, with their connection, or by silence. Always in batches, under one lock.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::RouteTable;
use super::brokers::{BrokerAddr, BrokerGroup, Brokers, MASTER_ID};
use super::live::{Live, LiveMark};
use super::register::min_broker_id_change;
use super::topics::PERM_WRITE;
use super::types::*;

/// Broker names touched by a batch.
#[derive(Default)]
struct Touched {
    /// Lost their last address: their ids.
    removed: HashSet<u32>,
    reduced: HashSet<Arc<str>>,
    /// Lost their smallest id: the address that left.
    min_left: BTreeMap<Arc<str>, Arc<str>>,
}

impl RouteTable {
    /// Applies a batch of removals.
    pub fn unregister(&self, batch: &[Unregistration], rules: &Rules) -> Unregistered {
        let _order = self.order.lock();
        let mut next = self.next_brokers();
        let mut touched = Touched::default();
        let mut events = Vec::new();
        for request in batch {
            self.remove_broker(&mut next, request, &mut touched, &mut events);
        }
        // The names go first: from here on no route shows them, while their rows are still being removed.
        self.publish_if_changed(next);
        self.clean_topics(&touched);
        let notices = if rules.notify_min_broker_id { self.min_notices(&touched) } else { Vec::new() };
        Unregistered { notices, events }
    }

    fn remove_broker(
        &self,
        next: &mut Brokers,
        request: &Unregistration,
        touched: &mut Touched,
        events: &mut Vec<BrokerEvent>,
    ) {
        let key = BrokerAddr { cluster: request.cluster.clone(), addr: request.broker_addr.clone() };
        {
            let mut live = self.live.lock();
            if let Some(mark) = &request.expected
                && !live.get(&key).is_some_and(|live| live.is_still(mark))
            {
                return;
            }
            live.remove(&key);
        }
        if next.filter_servers.remove(&key).is_some() {
            next.filter_version = next.version;
        }
        let Some(name) = request.broker_name.clone() else {
            return;
        };
        let Some(group) = next.group(&name).cloned() else {
            return;
        };
        let smallest_left = group.smallest_id() == Some(request.broker_id);
        let mut left = BrokerGroup::clone(&group);
        // The address decides, not the id: a slave that was promoted on its address goes by its old request, too.
        left.addrs.retain(|id, addr| {
            let goes = *addr == request.broker_addr;
            if goes {
                let (broker, name) = (key.clone(), name.clone());
                events.push(BrokerEvent::Left { broker, name, id: *id, reason: request.reason });
            }
            !goes
        });
        if left.addrs.is_empty() {
            next.remove_group(&name);
            next.remove_from_cluster(&request.cluster, &name);
            touched.removed.insert(group.id);
            return;
        }
        if left != *group {
            next.put(left);
        }
        if smallest_left {
            touched.min_left.insert(name.clone(), request.broker_addr.clone());
        }
        touched.reduced.insert(name);
    }

    fn clean_topics(&self, touched: &Touched) {
        if !touched.removed.is_empty() {
            for shard in &self.topics.shards {
                shard.write().remove_rows(&self.topics.hasher, |_, broker| touched.removed.contains(&broker));
            }
        }
        let brokers = self.brokers.load();
        for name in &touched.reduced {
            let Some(group) = brokers.group(name) else {
                continue;
            };
            if group.acting_master && group.smallest_id().is_some_and(|smallest| smallest > MASTER_ID) {
                for shard in &self.topics.shards {
                    shard.write().change_perms(group.id, |perm| perm & !PERM_WRITE);
                }
            }
        }
    }

    fn min_notices(&self, touched: &Touched) -> Vec<MinBrokerIdChange> {
        let brokers = self.brokers.load();
        let notices = touched.min_left.iter().filter_map(|(name, offline)| {
            let group = brokers.group(name).filter(|group| group.acting_master)?;
            min_broker_id_change(&group.addrs, Some(offline.clone()), None)
        });
        notices.collect()
    }

    /// The removals that a closed connection asks for: every broker whose latest registration came over it.
    pub fn connection_closed(&self, connection: ConnectionId) -> Vec<Unregistration> {
        self.removals(LeaveReason::ConnectionClosed, |live| live.connection == connection)
            .into_iter()
            .map(|(removal, _)| removal)
            .collect()
    }

    /// The removals of brokers that were silent for too long, each with the connection to close.
    pub fn expired(&self, now_ms: i64) -> Vec<(Unregistration, ConnectionId)> {
        self.removals(LeaveReason::Expired, |live| live.expired(now_ms))
    }

    fn removals(&self, reason: LeaveReason, goes: impl Fn(&Live) -> bool) -> Vec<(Unregistration, ConnectionId)> {
        let found: Vec<(BrokerAddr, LiveMark, ConnectionId)> = {
            let live = self.live.lock();
            let found = live.iter().filter(|(_, live)| goes(live));
            let silent = reason == LeaveReason::Expired;
            found.map(|(key, live)| (key.clone(), live.mark(silent), live.connection)).collect()
        };
        let brokers = self.brokers.load();
        let mut removals = Vec::with_capacity(found.len());
        for (key, mark, connection) in found {
            let mut names = names_of(&brokers, &key);
            if names.is_empty() {
                names.push((None, MASTER_ID));
            }
            for (broker_name, broker_id) in names {
                let (cluster, broker_addr) = (key.cluster.clone(), key.addr.clone());
                let expected = Some(mark);
                let removal = Unregistration { cluster, broker_addr, broker_name, broker_id, reason, expected };
                removals.push((removal, connection));
            }
        }
        removals
    }
}

/// The broker names, with the id, under which an address is registered in its cluster: one, if nobody was renamed.
fn names_of(brokers: &Brokers, key: &BrokerAddr) -> Vec<(Option<Arc<str>>, i64)> {
    let listed = brokers.cluster(&key.cluster);
    let groups = brokers
        .groups()
        .filter(|group| group.cluster == key.cluster || listed.is_some_and(|names| names.contains(&group.name)));
    groups
        .filter_map(|group| {
            let (id, _) = group.addrs.iter().find(|(_, addr)| **addr == key.addr)?;
            Some((Some(group.name.clone()), *id))
        })
        .collect()
}
