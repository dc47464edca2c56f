//! The topic rows: many small tables, so that a reader waits for a slice of a registration at most.
//!
//! The cost of a million rows decides the shape: a row is 16 bytes, a topic with one row needs no allocation but its
//! name's, the entries stand side by side and are found through a table of 32-bit places.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;
use parking_lot::RwLock;

use super::brokers::BrokerNameId;
use super::encoded::EncodedRoutes;
use super::types::{MappingInfo, TopicEntry};

pub(super) const PERM_WRITE: u8 = 2;
pub(super) const PERM_READ: u8 = 4;

/// The queues of one topic on one broker name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub broker: BrokerNameId,
    pub read_queues: i32,
    pub write_queues: i32,
    pub sys_flag: u16,
    /// What routes show.
    pub perm: u8,
    /// What the broker registered. It differs from `perm` once the right to write was wiped or added by hand, or taken
    /// from a group without master.
    pub registered_perm: u8,
}

impl Row {
    pub(crate) fn new(broker: BrokerNameId, topic: &TopicEntry) -> Self {
        // Four bits of perm and two of flags have a meaning; values past the types' ends are cut to them.
        let perm = topic.perm.clamp(0, u8::MAX.into()) as u8;
        Self {
            broker,
            read_queues: topic.read_queues,
            write_queues: topic.write_queues,
            sys_flag: topic.sys_flag.clamp(0, u16::MAX.into()) as u16,
            perm,
            registered_perm: perm,
        }
    }

    pub(crate) fn same_registration(&self, other: &Self) -> bool {
        self.read_queues == other.read_queues
            && self.write_queues == other.write_queues
            && self.sys_flag == other.sys_flag
            && self.registered_perm == other.registered_perm
    }
}

/// The rows of one topic, in the order of their brokers' first registrations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rows {
    One(Row),
    Many(Box<[Row]>),
}

impl Rows {
    pub(crate) fn as_slice(&self) -> &[Row] {
        match self {
            Self::One(row) => std::slice::from_ref(row),
            Self::Many(rows) => rows,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [Row] {
        match self {
            Self::One(row) => std::slice::from_mut(row),
            Self::Many(rows) => rows,
        }
    }

    pub(crate) fn of(&self, broker: BrokerNameId) -> Option<&Row> {
        self.as_slice().iter().find(|row| row.broker == broker)
    }

    fn from_vec(rows: Vec<Row>) -> Option<Self> {
        match rows.as_slice() {
            [] => None,
            [one] => Some(Self::One(*one)),
            _ => Some(Self::Many(rows.into_boxed_slice())),
        }
    }

    fn put(&mut self, row: Row) -> bool {
        match self.as_mut_slice().iter_mut().find(|known| known.broker == row.broker) {
            Some(known) => {
                *known = row;
                false
            }
            None => {
                let mut rows = Vec::with_capacity(self.as_slice().len() + 1);
                rows.extend_from_slice(self.as_slice());
                rows.push(row);
                *self = Self::Many(rows.into_boxed_slice());
                true
            }
        }
    }
}

#[derive(Debug)]
struct Entry {
    topic: Box<str>,
    rows: Rows,
}

/// The share of one broker name in a static topic.
pub(crate) type Mappings = std::collections::BTreeMap<String, MappingInfo>;

/// One slice of all topics.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    entries: Vec<Entry>,
    places: HashTable<u32>,
    mappings: std::collections::HashMap<Box<str>, Arc<Mappings>>,
    /// Under a lock of its own: queries keep answers while a registration reads rows.
    pub(crate) encoded: RwLock<EncodedRoutes>,
    rows: usize,
    /// Grows when a topic appears or goes.
    pub(crate) topics_version: u64,
}

/// Hashes topic names; keyed at random, for the names come from the network.
#[derive(Debug, Default, Clone)]
pub(crate) struct TopicHasher(RandomState);

impl TopicHasher {
    pub(crate) fn hash(&self, topic: &str) -> u64 {
        self.0.hash_one(topic)
    }
}

impl Shard {
    pub(crate) fn get(&self, hash: u64, topic: &str) -> Option<&Rows> {
        let place = self.places.find(hash, |place| self.is_at(*place, topic))?;
        self.entries.get(*place as usize).map(|entry| &entry.rows)
    }

    pub(crate) fn mapping(&self, topic: &str) -> Option<&Arc<Mappings>> {
        self.mappings.get(topic)
    }

    pub(crate) fn topics(&self) -> impl Iterator<Item = (&str, &Rows)> {
        self.entries.iter().map(|entry| (entry.topic.as_ref(), &entry.rows))
    }

    pub(crate) fn topic_count(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn row_count(&self) -> usize {
        self.rows
    }

    pub(crate) fn queue_count(&self) -> usize {
        let rows = self.entries.iter().flat_map(|entry| entry.rows.as_slice());
        rows.map(|row| usize::try_from(row.read_queues).unwrap_or(0)).sum()
    }

    pub(crate) fn mapping_count(&self) -> usize {
        self.mappings.len()
    }

    /// Bytes held by the rows, names and the look-up table, cached answers not counted.
    pub(crate) fn bytes(&self) -> usize {
        let names: usize = self.entries.iter().map(|entry| entry.topic.len()).sum();
        let many: usize = self.entries.iter().map(|entry| heap_bytes(&entry.rows)).sum();
        self.entries.capacity() * size_of::<Entry>() + names + many + self.places.capacity() * 5
    }

    fn is_at(&self, place: u32, topic: &str) -> bool {
        self.entries.get(place as usize).is_some_and(|entry| entry.topic.as_ref() == topic)
    }

    /// Writes one row, whatever stood there.
    pub(crate) fn put(&mut self, hasher: &TopicHasher, hash: u64, topic: &str, row: Row) {
        self.encoded.get_mut().forget(topic);
        let place = self.places.find(hash, |place| self.is_at(*place, topic)).copied();
        if let Some(entry) = place.and_then(|place| self.entries.get_mut(place as usize)) {
            self.rows += usize::from(entry.rows.put(row));
            return;
        }
        if self.entries.len() == self.entries.capacity() {
            // Doubling would leave half of a large table empty.
            self.entries.reserve_exact(self.entries.len() / 8 + 4);
        }
        let place = self.entries.len() as u32;
        self.entries.push(Entry { topic: topic.into(), rows: Rows::One(row) });
        let entries = &self.entries;
        self.places.insert_unique(hash, place, |place| rehash(hasher, entries, *place));
        self.rows += 1;
        self.topics_version += 1;
    }

    pub(crate) fn remove_topic(&mut self, hasher: &TopicHasher, hash: u64, topic: &str) -> bool {
        let entries = &self.entries;
        let found = self
            .places
            .find_entry(hash, |place| entries.get(*place as usize).is_some_and(|entry| entry.topic.as_ref() == topic));
        let Ok(found) = found else {
            return false;
        };
        let (place, _) = found.remove();
        self.encoded.get_mut().forget(topic);
        self.take_entry(hasher, place);
        true
    }

    /// The place's mark is gone already; the last entry moves into the hole.
    fn take_entry(&mut self, hasher: &TopicHasher, place: u32) {
        let last = self.entries.len() as u32 - 1;
        if place != last {
            let hash = rehash(hasher, &self.entries, last);
            if let Some(mark) = self.places.find_mut(hash, |known| *known == last) {
                *mark = place;
            }
        }
        let entry = self.entries.swap_remove(place as usize);
        self.rows -= entry.rows.as_slice().len();
        self.topics_version += 1;
        if self.entries.capacity() > 64 && self.entries.len() < self.entries.capacity() / 2 {
            self.entries.shrink_to(self.entries.len() + self.entries.len() / 8);
            let entries = &self.entries;
            self.places.shrink_to(entries.len(), |place| rehash(hasher, entries, *place));
        }
    }

    /// Removes the rows that `gone` names; topics left empty go. Returns how many rows went.
    pub(crate) fn remove_rows(&mut self, hasher: &TopicHasher, gone: impl Fn(&str, BrokerNameId) -> bool) -> usize {
        let before = self.rows;
        let mut place = 0;
        while let Some(entry) = self.entries.get_mut(place) {
            let rows = entry.rows.as_slice();
            if !rows.iter().any(|row| gone(&entry.topic, row.broker)) {
                place += 1;
                continue;
            }
            let kept: Vec<Row> = rows.iter().filter(|row| !gone(&entry.topic, row.broker)).copied().collect();
            let removed = rows.len() - kept.len();
            match Rows::from_vec(kept) {
                Some(kept) => {
                    self.encoded.get_mut().forget(&entry.topic);
                    self.rows -= removed;
                    entry.rows = kept;
                    place += 1;
                }
                None => self.unmark_and_take(hasher, place as u32),
            }
        }
        before - self.rows
    }

    /// Removes one topic's rows of the given brokers.
    pub(crate) fn remove_topic_rows(&mut self, hasher: &TopicHasher, hash: u64, topic: &str, brokers: &[u32]) {
        let Some(place) = self.places.find(hash, |place| self.is_at(*place, topic)).copied() else {
            return;
        };
        let Some(entry) = self.entries.get_mut(place as usize) else {
            return;
        };
        let rows = entry.rows.as_slice();
        let kept: Vec<Row> = rows.iter().filter(|row| !brokers.contains(&row.broker)).copied().collect();
        let removed = rows.len() - kept.len();
        match Rows::from_vec(kept) {
            _ if removed == 0 => {}
            Some(kept) => {
                self.rows -= removed;
                entry.rows = kept;
                self.encoded.get_mut().forget(topic);
            }
            None => self.unmark_and_take(hasher, place),
        }
    }

    fn unmark_and_take(&mut self, hasher: &TopicHasher, place: u32) {
        let hash = rehash(hasher, &self.entries, place);
        if let Ok(mark) = self.places.find_entry(hash, |known| *known == place) {
            mark.remove();
        }
        if let Some(entry) = self.entries.get(place as usize) {
            self.encoded.get_mut().forget(&entry.topic);
        }
        self.take_entry(hasher, place);
    }

    /// Lets `change` give each row of `broker` a new perm. Returns how many rows there were.
    pub(crate) fn change_perms(&mut self, broker: BrokerNameId, change: impl Fn(u8) -> u8) -> usize {
        let mut seen = 0;
        for entry in &mut self.entries {
            let Some(row) = entry.rows.as_mut_slice().iter_mut().find(|row| row.broker == broker) else {
                continue;
            };
            seen += 1;
            let perm = change(row.perm);
            if perm != row.perm {
                row.perm = perm;
                self.encoded.get_mut().forget(&entry.topic);
            }
        }
        seen
    }

    pub(crate) fn put_mapping(&mut self, topic: &str, broker: String, info: MappingInfo) {
        self.encoded.get_mut().forget(topic);
        let known = self.mappings.entry(topic.into()).or_default();
        Arc::make_mut(known).insert(broker, info);
    }
}

fn heap_bytes(rows: &Rows) -> usize {
    match rows {
        Rows::One(_) => 0,
        Rows::Many(rows) => size_of_val::<[Row]>(rows),
    }
}

fn rehash(hasher: &TopicHasher, entries: &[Entry], place: u32) -> u64 {
    entries.get(place as usize).map_or(0, |entry| hasher.hash(&entry.topic))
}

/// How many slices there are. A registration of 10,000 topics then holds each lock for some 150 of them.
pub(crate) const SHARDS: usize = 64;

/// All topics.
#[derive(Debug)]
pub(crate) struct Topics {
    pub hasher: TopicHasher,
    pub shards: Box<[RwLock<Shard>]>,
}

impl Topics {
    pub(crate) fn new() -> Self {
        Self { hasher: TopicHasher::default(), shards: (0..SHARDS).map(|_| RwLock::default()).collect() }
    }

    /// The look-up tables inside the shards use the lowest and the highest bits.
    pub(crate) fn shard_at(hash: u64) -> usize {
        (hash >> 40) as usize % SHARDS
    }

    pub(crate) fn shard(&self, hash: u64) -> &RwLock<Shard> {
        &self.shards[Self::shard_at(hash)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(broker: u32) -> Row {
        Row { broker, read_queues: 4, write_queues: 4, sys_flag: 0, perm: 6, registered_perm: 6 }
    }

    #[test]
    fn a_row_and_an_entry_stay_small() {
        assert_eq!(size_of::<Row>(), 16);
        assert_eq!(size_of::<Rows>(), 24);
        assert_eq!(size_of::<Entry>(), 40);
    }

    /// Random puts and removals against a plain map.
    #[test]
    fn a_shard_agrees_with_a_plain_map() {
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (hasher, mut shard) = (TopicHasher::default(), Shard::default());
            let mut model: std::collections::BTreeMap<String, Vec<u32>> = Default::default();
            for _ in 0..2000 {
                let topic = format!("topic-{}", random.u32(0..300));
                let (hash, broker) = (hasher.hash(&topic), random.u32(0..4));
                match random.u32(0..10) {
                    0 => {
                        let removed = shard.remove_topic(&hasher, hash, &topic);
                        assert_eq!(removed, model.remove(&topic).is_some());
                    }
                    1 if random.u32(0..20) == 0 => {
                        let removed = shard.remove_rows(&hasher, |_, known| known == broker);
                        let before: usize = model.values().map(Vec::len).sum();
                        model.values_mut().for_each(|rows| rows.retain(|known| *known != broker));
                        model.retain(|_, rows| !rows.is_empty());
                        assert_eq!(removed, before - model.values().map(Vec::len).sum::<usize>());
                    }
                    _ => {
                        shard.put(&hasher, hash, &topic, row(broker));
                        let rows = model.entry(topic).or_default();
                        if !rows.contains(&broker) {
                            rows.push(broker);
                        }
                    }
                }
                assert_eq!(shard.row_count(), model.values().map(Vec::len).sum::<usize>(), "seed {seed}");
            }
            assert_eq!(shard.topic_count(), model.len());
            for (topic, brokers) in &model {
                let rows = shard.get(hasher.hash(topic), topic).expect("the topic is known");
                assert_eq!(rows.as_slice().iter().map(|row| row.broker).collect::<Vec<_>>(), *brokers, "seed {seed}");
            }
        }
    }
}
