//! One consume queue, of one of two kinds. A plain queue has units of 20 bytes, `8 physical offset | 4 size | 8 tags code`, at
//! byte `20 * queue offset`. A batch queue has units of 46 bytes for records of one or more messages, one behind another
//! from byte 0, and each says which queue offsets it covers. The *index* of a unit is its place in the files: in a plain queue
//! the queue offset.
//!
//! New units stay in memory (the tail) and are written to the files in batches by the queue thread; readers look in the tail
//! first. What a crash takes with the tail is dispatched again from the commit log. A queue nobody uses holds no file and no
//! memory but this struct.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};

use crate::batch_unit::{BATCH_UNIT, BatchUnit};
use crate::compaction::CompactionLog;
use crate::ext::Ext;
use crate::keys::key_prefix;
use crate::read::{QueueType, Unit};
use protocol::record::SMALLEST_RECORD;

/// Bytes of a plain unit.
pub(crate) const UNIT: usize = 20;
/// Size value of the units that fill the file of a queue that was created at an offset other than 0, and the places of lost
/// messages.
pub(crate) const FILLER_SIZE: u32 = 0x7FFF_FFFF;
/// No queue gets as far. Beyond it the byte of a unit would not be a number of 63 bits.
const HIGHEST_OFFSET: i64 = i64::MAX / BATCH_UNIT as i64;
/// Written units the tail keeps for readers that follow closely.
const KEEP_UNITS: usize = 1024;
/// Places that may be left empty for lost messages. No checksum covers a record's queue offset: more is taken for a wrong one.
const MOST_LOST: u64 = 1 << 24;

impl QueueType {
    /// Bytes of a unit.
    pub(crate) fn unit_len(self) -> usize {
        match self {
            QueueType::Simple => UNIT,
            QueueType::Batch => BATCH_UNIT,
        }
    }

    /// Reads the unit at an index; what is none becomes a unit that is not valid.
    pub(crate) fn decode(self, index: i64, bytes: &[u8]) -> Unit {
        match self {
            QueueType::Simple => decode_unit(index, bytes),
            QueueType::Batch => BatchUnit::decode(bytes).map_or_else(|| decode_unit(index, &[]), Unit::from),
        }
    }
}

impl From<BatchUnit> for Unit {
    fn from(unit: BatchUnit) -> Self {
        Unit {
            queue_offset: unit.base,
            physical_offset: unit.physical_offset,
            size: unit.size,
            tags_code: unit.tags_code,
            count: unit.count,
        }
    }
}

pub(crate) fn encode_unit(physical: u64, size: u32, tags_code: i64) -> [u8; UNIT] {
    let mut out = [0; UNIT];
    out[..8].copy_from_slice(&physical.to_be_bytes());
    out[8..12].copy_from_slice(&size.to_be_bytes());
    out[12..].copy_from_slice(&tags_code.to_be_bytes());
    out
}

/// Reads a plain unit; `bytes` shorter than one give zeros, which is no valid unit.
fn decode_unit(queue_offset: i64, bytes: &[u8]) -> Unit {
    let mut raw = [0; UNIT];
    if let Some(bytes) = bytes.get(..UNIT) {
        raw.copy_from_slice(bytes);
    }
    let [a, b, c, d, e, f, g, h, s0, s1, s2, s3, t0, t1, t2, t3, t4, t5, t6, t7] = raw;
    Unit {
        queue_offset,
        physical_offset: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        size: u32::from_be_bytes([s0, s1, s2, s3]),
        tags_code: i64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
        count: 1,
    }
}

impl Unit {
    pub(crate) fn is_valid(&self) -> bool {
        self.physical_offset <= i64::MAX as u64 && self.size > 0 && self.size <= i32::MAX as u32
    }

    pub(crate) fn is_filler(&self) -> bool {
        self.size == FILLER_SIZE && self.physical_offset == 0
    }

    /// Queue offset after the record's last message.
    pub(crate) fn end(&self) -> i64 {
        self.queue_offset + i64::from(self.count)
    }

    /// End of the record in the commit log; 0 for fillers.
    pub(crate) fn physical_end(&self) -> u64 {
        if self.is_filler() { 0 } else { self.physical_offset + u64::from(self.size) }
    }
}

pub(crate) struct ConsumeQueue {
    /// Even. Tells queues of one process apart, also when a topic is deleted and made again.
    pub(crate) uid: u32,
    pub(crate) topic: Arc<str>,
    pub(crate) id: i32,
    pub(crate) kind: QueueType,
    /// Java hash of `topic#`, from which key hashes go on.
    pub(crate) key_prefix: i32,
    /// SCHEDULE_TOPIC_XXXX: the tags code is the deliver time.
    pub(crate) is_schedule: bool,
    /// Its units never point into the extension, as in Java.
    pub(crate) is_light: bool,
    /// Offset of the next append; changed under the put lock only.
    pub(crate) next: AtomicI64,
    end: AtomicI64,
    min: AtomicI64,
    dead: AtomicBool,
    /// The change of topics after which its topic was not compacted; 0 when nobody has asked.
    pub(crate) not_compacted: AtomicU64,
    /// Its compacted log, once its topic is known to be compacted; `None` for good when the topic was deleted.
    pub(crate) compaction: OnceLock<Option<Box<CompactionLog>>>,
    state: Mutex<State>,
}

/// The part under the queue's lock.
pub(crate) struct State {
    /// First byte of each file, ascending.
    pub(crate) files: Vec<u64>,
    tail: Vec<u8>,
    /// Index of the tail's first unit.
    tail_start: i64,
    /// Units below this index are in the files.
    saved: i64,
    /// The extension, if there is one.
    pub(crate) ext: Option<Box<Ext>>,
    /// End of the last unit's record.
    pub(crate) max_physical: u64,
    /// In the list of queues to be saved.
    pub(crate) listed: bool,
    /// In the list of queues whose tail takes memory.
    pub(crate) warm: bool,
    /// Changed since the last look at the warm ones.
    touched: bool,
}

/// What became of a unit.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Put {
    /// It is in the queue; `first` asks the caller to list the queue for saving.
    Done {
        first: bool,
    },
    /// The queue has it already.
    Repeat,
    /// No queue has such an offset.
    Impossible,
    Dead,
}

impl ConsumeQueue {
    pub(crate) fn new(uid: u32, topic: Arc<str>, id: i32, kind: QueueType) -> Self {
        let key_prefix = key_prefix(&topic);
        let is_schedule = &*topic == crate::SCHEDULE_TOPIC;
        let is_light = topic.starts_with(crate::multi_dispatch::LIGHT_PREFIX);
        let state = State {
            files: Vec::new(),
            tail: Vec::new(),
            tail_start: 0,
            saved: 0,
            ext: None,
            max_physical: 0,
            listed: false,
            warm: false,
            touched: false,
        };
        ConsumeQueue {
            uid,
            topic,
            id,
            kind,
            key_prefix,
            is_schedule,
            is_light,
            next: AtomicI64::new(0),
            end: AtomicI64::new(0),
            min: AtomicI64::new(0),
            dead: AtomicBool::new(false),
            not_compacted: AtomicU64::new(0),
            compaction: OnceLock::new(),
            state: Mutex::new(state),
        }
    }

    /// Offset after the last readable unit.
    pub(crate) fn end(&self) -> i64 {
        self.end.load(Ordering::Acquire)
    }

    pub(crate) fn min(&self) -> i64 {
        self.min.load(Ordering::Acquire).min(self.end())
    }

    pub(crate) fn set_min(&self, min: i64) {
        self.min.store(min, Ordering::Release);
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    pub(crate) fn kill(&self) {
        self.dead.store(true, Ordering::Release);
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Tells the files of the extension from those of the queue.
    pub(crate) fn ext_uid(&self) -> u32 {
        self.uid + 1
    }

    /// Adds a record's unit at the end, by Java's rules for repeats, gaps and queues that begin at an offset. With an
    /// `ext_file_size` the tags code goes into the extension.
    pub(crate) fn put(&self, unit: &BatchUnit, units_per_file: i64, ext_file_size: Option<u64>) -> Put {
        if self.is_dead() {
            return Put::Dead;
        }
        let mut state = self.state.lock();
        if unit.physical_end() <= state.max_physical {
            return Put::Repeat;
        }
        let possible = (0..HIGHEST_OFFSET).contains(&unit.base);
        if !possible && self.kind == QueueType::Batch {
            tracing::error!(
                topic = %self.topic, queue = self.id, found = unit.base, physical = unit.physical_offset,
                "a message's queue offset cannot be; the message is left out"
            );
            return Put::Impossible;
        }
        let end = self.end();
        let is_new = end == 0 && state.files.is_empty() && state.tail.is_empty();
        if unit.base < end && (unit.base != 0 || self.kind == QueueType::Batch) {
            return Put::Repeat;
        }
        let end = match self.kind {
            QueueType::Simple => {
                let end = if unit.base > end && is_new && possible {
                    state.fill(unit.base, units_per_file);
                    self.set_min(unit.base);
                    unit.base
                } else {
                    end
                };
                let lost = state.leave_out(unit, end);
                if lost > 0 && self.min() == end {
                    self.set_min(unit.base);
                }
                let end = end + lost;
                if unit.base != end {
                    tracing::error!(
                        topic = %self.topic, queue = self.id, expected = end, found = unit.base,
                        physical = unit.physical_offset,
                        "a message's queue offset does not follow the one before; it gets the next place"
                    );
                }
                let tags_code = match ext_file_size {
                    Some(size) => {
                        let ext = state.ext.get_or_insert_with(|| Box::new(Ext::new(size, Vec::new(), 0)));
                        ext.put(unit.tags_code, unit.store_time)
                    }
                    None => unit.tags_code,
                };
                state.tail.extend_from_slice(&encode_unit(unit.physical_offset, unit.size, tags_code));
                end + 1
            }
            QueueType::Batch => {
                if is_new {
                    self.set_min(unit.base);
                }
                state.tail.extend_from_slice(&unit.encode());
                unit.end()
            }
        };
        state.max_physical = unit.physical_end();
        state.touched = true;
        let first = !std::mem::replace(&mut state.listed, true);
        self.end.store(end, Ordering::Release);
        Put::Done { first }
    }

    /// Copies up to `max` units from an index on out of the tail. `None` when the index is not in it.
    pub(crate) fn tail_units(&self, index: i64, max: usize, into: &mut Vec<Unit>) -> Option<()> {
        let state = self.state.lock();
        let len = self.kind.unit_len();
        let at = usize::try_from(index - state.tail_start).ok()? * len;
        let bytes = state.tail.get(at..)?;
        into.extend(bytes.chunks_exact(len).take(max).zip(index..).map(|(raw, at)| self.kind.decode(at, raw)));
        Some(())
    }

    /// Index of the unit of a batch queue that holds `offset`, or of the first behind it. `Err`, with the index of the tail's first
    /// unit, when that is not after all units in the files.
    pub(crate) fn search_tail(&self, offset: i64) -> Result<i64, i64> {
        let state = self.state.lock();
        let unit = |n: usize| {
            let bytes = state.tail.get(n * BATCH_UNIT..).unwrap_or_default();
            QueueType::Batch.decode(0, bytes)
        };
        let (mut low, mut high) = (0, state.tail.len() / BATCH_UNIT);
        if high == 0 || unit(0).queue_offset > offset {
            return Err(state.tail_start);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if unit(middle).end() <= offset {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(state.tail_start + low as i64)
    }

    /// First index that is only in memory or held there too.
    pub(crate) fn tail_start(&self) -> i64 {
        self.state.lock().tail_start
    }

    /// Index after the last unit.
    pub(crate) fn end_index(&self) -> i64 {
        let state = self.state.lock();
        state.tail_start + (state.tail.len() / self.kind.unit_len()) as i64
    }

    /// The units that are not in the files yet: first index and bytes.
    pub(crate) fn unsaved(&self) -> (i64, Vec<u8>) {
        let mut state = self.state.lock();
        state.listed = false;
        let from = state.saved.max(state.tail_start);
        let at = (from - state.tail_start) as usize * self.kind.unit_len();
        (from, state.tail.get(at..).unwrap_or_default().to_vec())
    }

    /// Everything below `saved` is in the files now; shortens the tail. True when the queue has to be listed as warm.
    pub(crate) fn set_saved(&self, saved: i64) -> bool {
        let len = self.kind.unit_len();
        let mut state = self.state.lock();
        state.saved = state.saved.max(saved);
        let held = state.tail.len() / len;
        let written = usize::try_from(state.saved - state.tail_start).unwrap_or(0).min(held);
        if held > 2 * KEEP_UNITS {
            let drop = written.min(held - KEEP_UNITS);
            state.tail.drain(..drop * len);
            state.tail_start += drop as i64;
            state.tail.shrink_to(4 * KEEP_UNITS * len);
        }
        !std::mem::replace(&mut state.warm, true)
    }

    /// Gives the tail's memory back when nothing was added since the last call and all of it is saved. True when it did.
    pub(crate) fn cool(&self) -> bool {
        let mut state = self.state.lock();
        let end = state.tail_start + (state.tail.len() / self.kind.unit_len()) as i64;
        if std::mem::replace(&mut state.touched, false) || state.saved < end {
            return false;
        }
        state.tail = Vec::new();
        state.tail_start = end;
        state.warm = false;
        true
    }

    /// Sets what the files hold, after loading or truncation: the tail is empty then. `end_index` is that after the unit `last`.
    pub(crate) fn reset(&self, files: Vec<u64>, end_index: i64, last: Option<Unit>) {
        let end = match self.kind {
            QueueType::Simple => end_index,
            QueueType::Batch => last.map_or(0, |unit| unit.end()),
        };
        let mut state = self.state.lock();
        state.files = files;
        state.tail = Vec::new();
        state.tail_start = end_index;
        state.saved = end_index;
        state.max_physical = last.map_or(0, |unit| unit.physical_end());
        self.end.store(end, Ordering::Release);
        self.next.store(end, Ordering::Release);
        self.min.fetch_min(end, Ordering::AcqRel);
    }
}

impl State {
    /// Leaves the places of lost messages empty when `unit` does not follow `end`. Their number is the result.
    fn leave_out(&mut self, unit: &BatchUnit, end: i64) -> i64 {
        let lost = unit.base - end;
        let room = unit.physical_offset.saturating_sub(self.max_physical) / SMALLEST_RECORD as u64;
        if lost <= 0 || lost as u64 > room.min(MOST_LOST) {
            return 0;
        }
        tracing::error!(first = end, lost, physical = unit.physical_offset, "messages of a queue are lost");
        for _ in 0..lost {
            self.tail.extend_from_slice(&encode_unit(0, FILLER_SIZE, 0));
        }
        lost
    }

    /// Fills the file of a queue that begins at `offset` with units nobody may read.
    fn fill(&mut self, offset: i64, units_per_file: i64) {
        self.tail_start = offset - offset % units_per_file;
        self.saved = self.tail_start;
        for _ in self.tail_start..offset {
            self.tail.extend_from_slice(&encode_unit(0, FILLER_SIZE, 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_lost_messages_stay_empty_unless_no_log_could_have_held_so_many() {
        let put = |physical_offset, base| {
            let queue = ConsumeQueue::new(0, "T".into(), 0, QueueType::Simple);
            for (physical_offset, base) in [(0, 0), (physical_offset, base)] {
                let unit = BatchUnit { physical_offset, size: 100, tags_code: 0, store_time: 1, base, count: 1 };
                assert_eq!(queue.put(&unit, 1000, None), Put::Done { first: base == 0 });
            }
            queue.end()
        };
        assert_eq!(put(100, 1), 2);
        assert_eq!(put(100 + 9 * 91, 10), 11, "room for nine of the smallest records");
        assert_eq!(put(100 + 9 * 91 - 1, 10), 2);
        assert_eq!(put(1 << 50, 1 << 40), 2, "a terabyte of empty places");
    }
}
