//! GET_ROUTEINFO_BY_TOPIC's answer: which brokers serve a topic, and where they are.

use std::sync::Arc;

use bytes::Bytes;

use super::RouteTable;
use super::brokers::{BrokerAddr, BrokerGroup, Brokers, MASTER_ID};
use super::encoded::RouteForm;
use super::json_text::JsonText;
use super::topics::{Mappings, PERM_WRITE, Row, Rows};
use super::types::MappingInfo;

/// Topics of this prefix show the true broker ids whatever `supportActingMaster` says: brokers read their group's
/// members from them.
const SYNC_BROKER_MEMBER_PREFIX: &str = "rmq_sys_SYNC_BROKER_MEMBER_";

impl RouteTable {
    /// The encoded answer, or `None` for a topic without route. Encodes at most once per change and form, and never
    /// while holding a lock.
    pub fn route(&self, topic: &str, form: &RouteForm<'_>) -> Option<Bytes> {
        let hash = self.topics.hasher.hash(topic);
        let shard = self.topics.shard(hash);
        let (rows, mappings, brokers) = {
            let shard = shard.read();
            let brokers = self.brokers.load_full();
            if let Some(known) = shard.encoded.read().get(topic) {
                let fresh = known.checked() == brokers.version
                    || shard.get(hash, topic).is_some_and(|rows| is_fresh(known.checked(), rows, &brokers));
                if fresh {
                    known.set_checked(brokers.version);
                    if let Some(body) = known.body(form) {
                        return Some(body);
                    }
                }
            }
            (shard.get(hash, topic)?.clone(), shard.mapping(topic).cloned(), brokers)
        };
        self.routes_encoded.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let body = Bytes::from(encode(topic, &rows, mappings.as_deref(), &brokers, form)?);
        // Reading keeps the rows as they are. Whoever asks to write would hold up all readers until the registration
        // that reads here is done.
        let shard = shard.read();
        let same_mappings = match (&mappings, shard.mapping(topic)) {
            (Some(used), Some(now)) => Arc::ptr_eq(used, now),
            (None, None) => true,
            _ => false,
        };
        if same_mappings && shard.get(hash, topic) == Some(&rows) {
            let mut encoded = shard.encoded.write();
            encoded.keep(topic, form, brokers.version, body.clone(), self.encoded_limit_per_shard);
        }
        Some(body)
    }
}

/// Whether nothing that an answer of brokers' version `checked` shows has changed since.
fn is_fresh(checked: u64, rows: &Rows, brokers: &Brokers) -> bool {
    checked <= brokers.version
        && checked >= brokers.filter_version
        && rows
            .as_slice()
            .iter()
            .all(|row| brokers.group_by_id(row.broker).is_some_and(|group| group.version <= checked))
}

/// One broker name's part of an answer.
struct Part<'a> {
    row: &'a Row,
    group: &'a BrokerGroup,
    /// The id shown as 0 in the place of a lost master.
    acting: Option<i64>,
}

fn encode(
    topic: &str,
    rows: &Rows,
    mappings: Option<&Mappings>,
    brokers: &Brokers,
    form: &RouteForm<'_>,
) -> Option<Vec<u8>> {
    // A row whose broker name is gone is about to be removed.
    let known = rows.as_slice().iter().filter_map(|row| {
        let group = brokers.group_by_id(row.broker)?;
        Some(Part { row, group, acting: acting_id(topic, row, group, form) })
    });
    let all: Vec<Part<'_>> = known.collect();
    if all.is_empty() {
        return None;
    }
    let shown: Vec<&Part<'_>> = all.iter().filter(|part| in_zone(part, form.zone)).collect();
    let mut out = JsonText::new(form.dialect, 128 + 256 * shown.len());
    out.open(b'{');
    out.field("brokerDatas");
    out.open(b'[');
    for part in &shown {
        out.item();
        write_group(&mut out, part.group, part.acting);
    }
    out.close(b']');
    out.field("filterServerTable");
    write_filter_servers(&mut out, &shown, brokers);
    if let Some(conf) = form.order_conf {
        out.field("orderTopicConf");
        out.text(conf);
    }
    out.field("queueDatas");
    out.open(b'[');
    for part in &shown {
        out.item();
        write_queues(&mut out, part);
    }
    out.close(b']');
    if let Some(mappings) = mappings {
        out.field("topicQueueMappingByBroker");
        write_mappings(&mut out, mappings);
    }
    out.close(b'}');
    Some(out.finish())
}

/// The slave that stands in: the smallest, when the switch, the brokers and the row's lost right to write agree.
fn acting_id(topic: &str, row: &Row, group: &BrokerGroup, form: &RouteForm<'_>) -> Option<i64> {
    let applies = form.acting_master
        && group.acting_master
        && !group.has_master()
        && row.perm & PERM_WRITE == 0
        && !topic.starts_with(SYNC_BROKER_MEMBER_PREFIX);
    if applies { group.smallest_id() } else { None }
}

/// Brokers without master are shown in every zone, so that their messages can still be read.
fn in_zone(part: &Part<'_>, zone: Option<&str>) -> bool {
    let Some(zone) = zone else {
        return true;
    };
    let has_master = part.group.has_master() || part.acting.is_some();
    !has_master || part.group.zone.as_deref().is_some_and(|own| equal_ignoring_case(own, zone))
}

fn equal_ignoring_case(one: &str, other: &str) -> bool {
    one.chars().flat_map(char::to_lowercase).eq(other.chars().flat_map(char::to_lowercase))
}

pub(super) fn write_group(out: &mut JsonText, group: &BrokerGroup, acting: Option<i64>) {
    out.open(b'{');
    out.field("brokerAddrs");
    out.open(b'{');
    if let Some(addr) = acting.and_then(|id| group.addrs.get(&id)) {
        out.int_key(MASTER_ID);
        out.text(addr);
    }
    for (id, addr) in group.addrs.iter().filter(|(id, _)| Some(**id) != acting) {
        out.int_key(*id);
        out.text(addr);
    }
    out.close(b'}');
    out.field("brokerName");
    out.text(&group.name);
    out.field("cluster");
    out.text(&group.cluster);
    out.field("enableActingMaster");
    out.flag(group.acting_master);
    if let Some(zone) = &group.zone {
        out.field("zoneName");
        out.text(zone);
    }
    out.close(b'}');
}

fn write_filter_servers(out: &mut JsonText, parts: &[&Part<'_>], brokers: &Brokers) {
    out.open(b'{');
    if !brokers.filter_servers.is_empty() {
        for part in parts {
            for addr in part.group.addrs.values() {
                let key = BrokerAddr { cluster: part.group.cluster.clone(), addr: addr.clone() };
                let Some(servers) = brokers.filter_servers.get(&key) else {
                    continue;
                };
                out.key(addr);
                out.open(b'[');
                for server in servers.iter() {
                    out.item();
                    out.text(server);
                }
                out.close(b']');
            }
        }
    }
    out.close(b'}');
}

fn write_queues(out: &mut JsonText, part: &Part<'_>) {
    out.open(b'{');
    out.field("brokerName");
    out.text(&part.group.name);
    out.field("perm");
    out.int(part.row.perm.into());
    out.field("readQueueNums");
    out.int(part.row.read_queues.into());
    out.field("topicSysFlag");
    out.int(part.row.sys_flag.into());
    out.field("writeQueueNums");
    out.int(part.row.write_queues.into());
    out.close(b'}');
}

fn write_mappings(out: &mut JsonText, mappings: &Mappings) {
    out.open(b'{');
    for (broker, info) in mappings {
        out.key(broker);
        write_mapping(out, info);
    }
    out.close(b'}');
}

fn write_mapping(out: &mut JsonText, info: &MappingInfo) {
    out.open(b'{');
    if let Some(name) = &info.broker_name {
        out.field("bname");
        out.text(name);
    }
    if let Some(ids) = &info.current_ids {
        out.field("currIdMap");
        out.open(b'{');
        for (logical, physical) in ids {
            out.int_key((*logical).into());
            out.int((*physical).into());
        }
        out.close(b'}');
    }
    out.field("dirty");
    out.flag(info.dirty);
    out.field("epoch");
    out.int(info.epoch);
    if let Some(scope) = &info.scope {
        out.field("scope");
        out.text(scope);
    }
    if let Some(topic) = &info.topic {
        out.field("topic");
        out.text(topic);
    }
    out.field("totalQueues");
    out.int(info.total_queues.into());
    out.close(b'}');
}
