//! What queues and index need of a message's properties.

use protocol::record::{RecordView, java_hash, properties, property, sys_flag};

use crate::StoreConfig;
use crate::batch_unit::BatchUnit;
use crate::consume_queue::ConsumeQueue;
use crate::keys::{Keys, key_hashes};
use crate::read::QueueType;

/// Of a message about to be appended.
#[derive(Default)]
pub(crate) struct Facts {
    tags_code: i64,
    delay_level: i64,
    /// It names light queues.
    pub(crate) multi_dispatch: bool,
    pub(crate) hashes: Hashes,
}

/// Key hashes; nearly always few.
#[derive(Default)]
pub(crate) struct Hashes {
    few: [i32; 4],
    count: usize,
    more: Vec<i32>,
}

impl Hashes {
    fn push(&mut self, hash: i32) {
        match self.few.get_mut(self.count) {
            Some(place) => *place = hash,
            None => self.more.push(hash),
        }
        self.count += 1;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = i32> {
        self.few.iter().take(self.count).chain(&self.more).copied()
    }
}

impl Facts {
    /// Looks through two property strings, of which the second follows the first.
    pub(crate) fn find(queue: &ConsumeQueue, flags: i32, first: &[u8], second: &[u8], with_keys: bool) -> Self {
        let mut keys = Keys::default();
        let mut facts = Facts::default();
        for (key, value) in properties::iter(first).chain(properties::iter(second)) {
            match key {
                b"TAGS" => keys.tags = Some(value),
                b"KEYS" => keys.keys = Some(value),
                b"UNIQ_KEY" => keys.unique = Some(value),
                b"INNER_MULTI_DISPATCH" => facts.multi_dispatch = true,
                b"DELAY" if queue.is_schedule => facts.delay_level = parse_level(value),
                _ => {}
            }
        }
        facts.tags_code = tags_hash(keys.tags);
        if with_keys {
            key_hashes(queue.key_prefix, flags, &keys, &mut |hash| facts.hashes.push(hash));
        }
        facts
    }

    /// The unit's tags code.
    pub(crate) fn code(&self, config: &StoreConfig, queue: &ConsumeQueue, store_time: i64) -> i64 {
        unit_code(config, queue, self.tags_code, self.delay_level, store_time)
    }
}

/// The unit of a record that is read again.
pub(crate) fn unit_of(config: &StoreConfig, queue: &ConsumeQueue, at: u64, record: &RecordView<'_>) -> BatchUnit {
    let (mut tags, mut level) = (None, 0);
    let (mut base, mut count) = (None, None);
    for (key, value) in properties::iter(record.properties) {
        match key {
            b"TAGS" => tags = Some(value),
            b"DELAY" => level = parse_level(value),
            b"INNER_BASE" => base = parse(value),
            b"INNER_NUM" => count = parse(value),
            _ => {}
        }
    }
    // Without the mark, which only the store sets, these are a producer's words.
    let inner_batch = queue.kind == QueueType::Batch && record.sys_flag & sys_flag::INNER_BATCH != 0;
    let (base, count) = match (inner_batch, base, count) {
        (true, Some(base), Some(count)) => (base, i16::max(count, 1)),
        _ => (record.queue_offset, 1),
    };
    BatchUnit {
        physical_offset: at,
        size: record.size() as u32,
        tags_code: unit_code(config, queue, tags_hash(tags), level, record.store_timestamp),
        store_time: record.store_timestamp,
        base,
        count,
    }
}

/// The tag hash, or the deliver time in the delay queue.
fn unit_code(config: &StoreConfig, queue: &ConsumeQueue, hash: i64, delay_level: i64, store_time: i64) -> i64 {
    if !queue.is_schedule || delay_level <= 0 {
        return hash;
    }
    let levels = &config.delay_levels_ms;
    let level = delay_level.min(levels.len() as i64);
    let delay = usize::try_from(level - 1).ok().and_then(|i| levels.get(i)).copied().unwrap_or(1000);
    store_time + delay
}

/// The tag hash of a record's properties.
pub(crate) fn tags_code(record_properties: &[u8]) -> i64 {
    tags_hash(properties::get_bytes(record_properties, property::TAGS))
}

/// The tag hash of the stored TAGS property.
fn tags_hash(tags: Option<&[u8]>) -> i64 {
    tags.map_or(0, |tags| i64::from(java_hash(&String::from_utf8_lossy(tags))))
}

/// The delay level of the stored DELAY property; 0 when it is no number.
fn parse_level(value: &[u8]) -> i64 {
    parse::<i32>(value).map_or(0, i64::from)
}

fn parse<N: std::str::FromStr>(value: &[u8]) -> Option<N> {
    std::str::from_utf8(value).ok()?.parse().ok()
}
