//! One consume queue: units of 20 bytes, `8 physical offset | 4 size | 8 tags code`, at byte `20 * queue offset`.
//!
//! New units stay in memory (the tail) and are written to the files in batches by the queue thread; readers look in the tail
//! first. What a crash takes with the tail is dispatched again from the commit log. A queue nobody uses holds no file and no
//! memory but this struct.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};

use crate::compaction::CompactionLog;
use crate::read::Unit;

/// Bytes of a unit.
pub(crate) const UNIT: usize = 20;
/// Size value of the units that fill the file of a queue that was created at an offset other than 0.
pub(crate) const FILLER_SIZE: u32 = 0x7FFF_FFFF;
/// Written units the tail keeps for readers that follow closely.
const KEEP_UNITS: usize = 1024;

pub(crate) fn encode_unit(physical: u64, size: u32, tags_code: i64) -> [u8; UNIT] {
    let mut out = [0; UNIT];
    out[..8].copy_from_slice(&physical.to_be_bytes());
    out[8..12].copy_from_slice(&size.to_be_bytes());
    out[12..].copy_from_slice(&tags_code.to_be_bytes());
    out
}

/// Reads a unit; `bytes` shorter than one give zeros, which is no valid unit.
pub(crate) fn decode_unit(queue_offset: i64, bytes: &[u8]) -> Unit {
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
    }
}

impl Unit {
    pub(crate) fn is_valid(&self) -> bool {
        self.physical_offset <= i64::MAX as u64 && self.size > 0 && self.size <= i32::MAX as u32
    }

    pub(crate) fn is_filler(&self) -> bool {
        self.size == FILLER_SIZE && self.physical_offset == 0
    }

    /// End of the record in the commit log; 0 for fillers.
    pub(crate) fn physical_end(&self) -> u64 {
        if self.is_filler() { 0 } else { self.physical_offset + u64::from(self.size) }
    }
}

pub(crate) struct ConsumeQueue {
    /// Tells queues of one process apart, also when a topic is deleted and made again.
    pub(crate) uid: u32,
    pub(crate) topic: Arc<str>,
    pub(crate) id: i32,
    /// Java hash of `topic#`, from which key hashes go on.
    pub(crate) key_prefix: i32,
    /// SCHEDULE_TOPIC_XXXX: the tags code is the deliver time.
    pub(crate) is_schedule: bool,
    /// Offset of the next append; changed under the put lock only.
    pub(crate) next: AtomicI64,
    end: AtomicI64,
    min: AtomicI64,
    dead: AtomicBool,
    /// Its compacted log, once somebody has asked whether its topic is compacted.
    pub(crate) compaction: OnceLock<Option<Box<CompactionLog>>>,
    state: Mutex<State>,
}

/// The part under the queue's lock.
pub(crate) struct State {
    /// First byte of each file, ascending.
    pub(crate) files: Vec<u64>,
    tail: Vec<u8>,
    /// Offset of the tail's first unit.
    tail_start: i64,
    /// Units below are in the files.
    saved: i64,
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
    Dead,
}

impl ConsumeQueue {
    pub(crate) fn new(uid: u32, topic: Arc<str>, id: i32) -> Self {
        let key_prefix = protocol::record::java_hash(&topic).wrapping_mul(31).wrapping_add(i32::from(b'#'));
        let is_schedule = &*topic == crate::SCHEDULE_TOPIC;
        let state = State {
            files: Vec::new(),
            tail: Vec::new(),
            tail_start: 0,
            saved: 0,
            max_physical: 0,
            listed: false,
            warm: false,
            touched: false,
        };
        ConsumeQueue {
            uid,
            topic,
            id,
            key_prefix,
            is_schedule,
            next: AtomicI64::new(0),
            end: AtomicI64::new(0),
            min: AtomicI64::new(0),
            dead: AtomicBool::new(false),
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

    /// Adds a unit at the end, by Java's rules for repeats, gaps and queues that begin at an offset.
    pub(crate) fn put(&self, queue_offset: i64, physical: u64, size: u32, tags_code: i64, units_per_file: i64) -> Put {
        if self.is_dead() {
            return Put::Dead;
        }
        let mut state = self.state.lock();
        if physical + u64::from(size) <= state.max_physical {
            return Put::Repeat;
        }
        let end = self.end();
        if queue_offset != end {
            if queue_offset < end && queue_offset != 0 {
                return Put::Repeat;
            }
            if queue_offset > end && end == 0 && state.files.is_empty() && state.tail.is_empty() {
                state.fill(queue_offset, units_per_file);
                self.set_min(queue_offset);
            } else {
                tracing::error!(
                    topic = %self.topic, queue = self.id, expected = end, found = queue_offset, physical,
                    "a message's queue offset does not follow the one before; it gets the next place"
                );
            }
        }
        if state.tail.is_empty() {
            state.tail_start = self.end();
        }
        let end = state.tail_start + (state.tail.len() / UNIT) as i64;
        state.tail.extend_from_slice(&encode_unit(physical, size, tags_code));
        state.max_physical = physical + u64::from(size);
        state.touched = true;
        let first = !std::mem::replace(&mut state.listed, true);
        self.end.store(end + 1, Ordering::Release);
        Put::Done { first }
    }

    /// Copies up to `max` units from `offset` on out of the tail. `None` when `offset` is before the tail.
    pub(crate) fn tail_units(&self, offset: i64, max: usize, into: &mut Vec<Unit>) -> Option<()> {
        let state = self.state.lock();
        let at = usize::try_from(offset - state.tail_start).ok()? * UNIT;
        let bytes = state.tail.get(at..).unwrap_or_default();
        into.extend(bytes.chunks_exact(UNIT).take(max).zip(offset..).map(|(raw, at)| decode_unit(at, raw)));
        if at > state.tail.len() { None } else { Some(()) }
    }

    /// First offset that is only in memory or held there too.
    pub(crate) fn tail_start(&self) -> i64 {
        let state = self.state.lock();
        if state.tail.is_empty() { self.end() } else { state.tail_start }
    }

    /// The units that are not in the files yet: first offset and bytes.
    pub(crate) fn unsaved(&self) -> (i64, Vec<u8>) {
        let mut state = self.state.lock();
        state.listed = false;
        let from = state.saved.max(state.tail_start);
        let at = (from - state.tail_start) as usize * UNIT;
        (from, state.tail.get(at..).unwrap_or_default().to_vec())
    }

    /// Everything below `saved` is in the files now; shortens the tail. True when the queue has to be listed as warm.
    pub(crate) fn set_saved(&self, saved: i64) -> bool {
        let mut state = self.state.lock();
        state.saved = state.saved.max(saved);
        let held = state.tail.len() / UNIT;
        let written = usize::try_from(state.saved - state.tail_start).unwrap_or(0).min(held);
        if held > 2 * KEEP_UNITS {
            let drop = written.min(held - KEEP_UNITS);
            state.tail.drain(..drop * UNIT);
            state.tail_start += drop as i64;
            state.tail.shrink_to(4 * KEEP_UNITS * UNIT);
        }
        !std::mem::replace(&mut state.warm, true)
    }

    /// Gives the tail's memory back when nothing was added since the last call and all of it is saved. True when it did.
    pub(crate) fn cool(&self) -> bool {
        let mut state = self.state.lock();
        let end = self.end();
        if std::mem::replace(&mut state.touched, false) || state.saved < end {
            return false;
        }
        state.tail = Vec::new();
        state.tail_start = end;
        state.warm = false;
        true
    }

    /// Sets what the files hold, after loading or truncation: the tail is empty then.
    pub(crate) fn reset(&self, files: Vec<u64>, end: i64, max_physical: u64) {
        let mut state = self.state.lock();
        state.files = files;
        state.tail = Vec::new();
        state.tail_start = end;
        state.saved = end;
        state.max_physical = max_physical;
        self.end.store(end, Ordering::Release);
        self.next.store(end, Ordering::Release);
        self.min.fetch_min(end, Ordering::AcqRel);
    }
}

impl State {
    /// Fills the file of a queue that begins at `offset` with units nobody may read.
    fn fill(&mut self, offset: i64, units_per_file: i64) {
        self.tail_start = offset - offset % units_per_file;
        self.saved = self.tail_start;
        for _ in self.tail_start..offset {
            self.tail.extend_from_slice(&encode_unit(0, FILLER_SIZE, 0));
        }
    }
}
