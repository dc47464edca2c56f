//! Finding messages by place, time and key.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use protocol::record::RecordView;

use crate::consume_queue::ConsumeQueue;
use crate::keys::{key_hash, key_prefix, tag_key_hash};
use crate::retention::{used_bytes, used_ratio};
use crate::{Boundary, Store, StoreStats, Unit};

/// Answer of a key query.
#[derive(Debug, Clone, Default)]
pub struct KeyQueryResult {
    /// Whole stored records, by physical offset.
    pub messages: Vec<Bytes>,
    /// Last update of the index: store time of its last entry, milliseconds since 1970.
    pub index_last_update_timestamp: i64,
    pub index_last_update_physical_offset: u64,
}

impl Store {
    /// The record that starts at a commit log offset. `None` when there is none. May wait for the disk.
    pub fn record_at(&self, physical_offset: u64) -> Option<Bytes> {
        let segment = self.log.segment_at(physical_offset)?;
        let rest = segment.bytes().ok()?.slice((physical_offset - segment.start) as usize..);
        let record = RecordView::parse(&rest).ok()?;
        let (size, claims) = (record.size(), record.physical_offset);
        let ours = claims == physical_offset as i64 && physical_offset + size as u64 <= self.positions.written();
        ours.then(|| rest.slice(..size))
    }

    /// Store time of the message at a queue offset, milliseconds since 1970; −1 when it does not exist.
    pub fn store_time_at(&self, topic: &str, queue: i32, offset: i64) -> i64 {
        let Some(queue) = self.queues.get(topic, queue) else { return -1 };
        let there = if offset < queue.min() { None } else { self.time_at(&queue, offset) };
        let compacted = || self.compacted_time(&queue, offset).filter(|(at, _)| *at == offset);
        there.or_else(|| Some(compacted()?.1)).unwrap_or(-1)
    }

    /// Store time of the first message of a queue, milliseconds since 1970; −1 when it has none.
    pub fn earliest_time(&self, topic: &str, queue: i32) -> i64 {
        let Some(queue) = self.queues.get(topic, queue) else { return -1 };
        if let Some((_, time)) = self.compacted_time(&queue, 0) {
            return time;
        }
        self.time_at(&queue, queue.min()).unwrap_or(-1)
    }

    fn time_at(&self, queue: &ConsumeQueue, offset: i64) -> Option<i64> {
        let unit = self.queues.unit(queue, offset).filter(|u| !u.is_filler())?;
        self.time_of(&unit)
    }

    fn time_of(&self, unit: &Unit) -> Option<i64> {
        Some(RecordView::parse(&self.record_at(unit.physical_offset)?).ok()?.store_timestamp)
    }

    /// Queue offset by store time (milliseconds since 1970); of an inner batch the offset of its first message. May wait for the
    /// disk.
    ///
    /// `Lower`: the first message at or after the time, or the maximum. `Upper`: the last one at or before it, or 0.
    /// 0 for a queue that does not exist.
    pub fn offset_by_time(&self, topic: &str, queue: i32, timestamp: i64, boundary: Boundary) -> i64 {
        let Some(queue) = self.queues.get(topic, queue) else { return 0 };
        if let Some(log) = self.compacted(&queue) {
            return self.compacted_by_time(&queue, log, timestamp, boundary);
        }
        let (min, max) = (queue.min(), queue.end());
        let (first, end) = (self.queues.index_of(&queue, min, true).unwrap_or(0), queue.end_index());
        // Messages that are gone count as older than any time.
        let time = |index| self.queues.unit_at(&queue, index).filter(|u| !u.is_filler()).and_then(|u| self.time_of(&u));
        let before = |index: i64, limit: i64| time(index).is_none_or(|t| t < limit);
        let first_not = |limit: i64| {
            let (mut low, mut high) = (first, end);
            while low < high {
                let middle = low + (high - low) / 2;
                if before(middle, limit) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            low
        };
        let offset_of = |index| self.queues.offset_of(&queue, index);
        match boundary {
            Boundary::Lower => offset_of(first_not(timestamp)),
            Boundary::Upper => {
                let after = first_not(timestamp.saturating_add(1));
                if after == first { 0_i64.clamp(min, max) } else { offset_of(after - 1) }
            }
        }
    }

    /// Messages whose key hash matches, by physical offset. Keys with the same hash are not told apart, as in Java; the unique
    /// key is a key like others. `begin` and `end` bound the store time in milliseconds since 1970. May wait for the disk.
    pub fn query_key(&self, topic: &str, key: &str, max: usize, begin: i64, end: i64) -> KeyQueryResult {
        self.query_hash(key_hash(key_prefix(topic), key.as_bytes()), max, begin, end)
    }

    /// The same by the whole text of a message's tags.
    pub fn query_tags(&self, topic: &str, tags: &str, max: usize, begin: i64, end: i64) -> KeyQueryResult {
        self.query_hash(tag_key_hash(key_prefix(topic), tags.as_bytes()), max, begin, end)
    }

    fn query_hash(&self, hash: i32, max: usize, begin: i64, end: i64) -> KeyQueryResult {
        if let Err(error) = self.index.catch_up(&self.log, self.positions.confirmed()) {
            tracing::warn!(%error, "the key index is incomplete");
        }
        let found = self.index.find(hash, max.min(self.config.max_msgs_num_batch), begin, end);
        let (time, offset) = self.index.last_update();
        KeyQueryResult {
            messages: found.into_iter().filter_map(|at| self.record_at(at)).collect(),
            index_last_update_timestamp: time,
            index_last_update_physical_offset: offset,
        }
    }

    /// Numbers for runtime information and metrics.
    pub fn stats(&self) -> StoreStats {
        let counted = self.counters.read();
        let written = self.positions.written();
        let ratios = self.log.dirs().iter().map(|dir| used_ratio(dir));
        let earliest = self.log.segments().first().and_then(|s| {
            let record = self.record_at(s.start)?;
            Some(RecordView::parse(&record).ok()?.store_timestamp)
        });
        StoreStats {
            commit_log_min_offset: self.log.min_offset(),
            commit_log_max_offset: written,
            flushed_offset: self.positions.flushed(),
            confirm_offset: self.positions.confirmed(),
            dispatch_behind_bytes: written.saturating_sub(self.positions.confirmed()),
            index_behind_bytes: written.saturating_sub(self.index.position()),
            flush_behind_bytes: self.positions.appended().saturating_sub(self.positions.flushed()),
            messages_appended: counted.messages,
            bytes_appended: counted.bytes,
            groups_written: counted.groups,
            put_max_us: counted.max_us,
            put_waited_us: counted.waited_us,
            put_distribution: counted.distribution,
            commit_log_disk_ratio: ratios.fold(f64::INFINITY, f64::min),
            consume_queue_disk_ratio: used_ratio(self.queues.root()),
            disk_used_bytes: used_bytes(&self.config.root),
            start_timestamp: self.start_timestamp,
            last_flushed_timestamp: self.last_flushed_time.load(Ordering::Acquire),
            earliest_message_timestamp: earliest.unwrap_or(-1),
            writable: self.gate.check().is_ok(),
            disk_full: self.gate.is_disk_full(),
        }
    }
}
