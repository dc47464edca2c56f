//! The compacted log of one queue: the records of its messages in files of their own, of which rounds take out what newer
//! messages with the same key have replaced.
//!
//! It follows the consume queue. What is in it stays readable when the commit log's files have gone.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use protocol::record::RecordView;

use super::files::{Folder, Pair, Sizes};
use super::load::{Source, cut_at, load};
use super::pair::{OpenPair, Writer, key_of};
use super::positions::Positions;
use crate::batch_unit::BatchUnit;
use crate::consume_queue::ConsumeQueue;
use crate::{Store, Unit};

/// Units that are followed in one step, at most.
const STEP: i64 = 1024;
/// How long a stop waits for messages to be copied. The next start goes on.
const STOP_WAITS: Duration = Duration::from_secs(5);

pub(crate) struct CompactionLog {
    pub(super) topic: Arc<str>,
    pub(super) id: i32,
    pub(super) folder: Folder,
    pub(super) sizes: Sizes,
    /// Bytes a round may use for its table of keys.
    pub(super) map_bytes: usize,
    pub(super) positions: Arc<Positions>,
    /// Held while files are written, moved or removed.
    pub(super) writing: Mutex<()>,
    /// Held by a round.
    pub(super) round: Mutex<()>,
    /// `None` before the files were looked at, and after an error that leaves their content uncertain.
    pub(super) state: RwLock<Option<State>>,
    /// Whether the files may be believed without reading all of the last pair; only at the first look, after a clean stop.
    pub(super) trusted: AtomicBool,
    /// Whether all files have to be read wholly at the next look.
    pub(super) suspected: AtomicBool,
    pub(super) dead: AtomicBool,
    /// How often in a row the next unit of the queue could not be read.
    pub(super) unreadable: AtomicU32,
}

/// What the files hold.
pub(super) struct State {
    /// Ascending; none is empty.
    pub(super) pairs: Vec<Pair>,
    /// The messages below this queue offset were copied or left out.
    pub(super) followed: i64,
    /// As far as that is on the disk.
    pub(super) synced: i64,
}

/// What there is to read.
pub(crate) struct Range {
    /// Queue offset of the first message; `None` when there is none.
    pub(crate) first: Option<i64>,
    /// The messages below were copied or left out.
    pub(crate) followed: i64,
    /// End of the last record, in the log.
    pub(crate) end: u64,
}

impl CompactionLog {
    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    pub(super) fn position(&self) -> i64 {
        self.positions.get(&self.topic, self.id)
    }

    pub(super) fn set_position(&self, offset: i64) -> io::Result<()> {
        self.positions.set(&self.topic, self.id, offset)
    }

    /// The pairs that are not written any more.
    pub(super) fn full_pairs(&self) -> Option<Vec<Pair>> {
        let state = self.state.read();
        let (_, full) = state.as_ref()?.pairs.split_last()?;
        Some(full.to_vec())
    }

    /// Looks at the files unless their content is known.
    fn know(&self, source: &Source<'_>) -> io::Result<()> {
        if self.state.read().is_some() {
            return Ok(());
        }
        if self.is_dead() {
            return Err(io::Error::other("the topic was deleted"));
        }
        let state = load(self, source)?;
        *self.state.write() = Some(state);
        Ok(())
    }

    pub(crate) fn range(&self, store: &Store, queue: &ConsumeQueue) -> io::Result<Range> {
        if self.state.read().is_none() {
            let _writing = self.writing.lock();
            self.know(&Source { store, queue })?;
        }
        let state = self.state.read();
        let state = state.as_ref().ok_or_else(unknown)?;
        Ok(Range {
            first: state.pairs.first().map(|pair| pair.first),
            followed: state.followed,
            end: state.pairs.last().map_or(0, |pair| pair.end),
        })
    }

    /// Copies the messages below `until` that are not here yet.
    pub(crate) fn follow(&self, store: &Store, queue: &ConsumeQueue, until: i64) -> io::Result<()> {
        while self.range(store, queue)?.followed < until {
            if must_stop(store) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.follow_step(store, queue, until)?;
        }
        Ok(())
    }

    fn follow_step(&self, store: &Store, queue: &ConsumeQueue, until: i64) -> io::Result<()> {
        let _writing = self.writing.lock();
        self.know(&Source { store, queue })?;
        let (followed, last) = {
            let state = self.state.read();
            let state = state.as_ref().ok_or_else(unknown)?;
            (state.followed, state.pairs.last().cloned())
        };
        let min = queue.min();
        if followed < min && last.is_some() {
            tracing::warn!(topic = %self.topic, queue = self.id, from = followed, to = min, "messages left the commit log before they were copied");
        }
        let mut next = followed.max(min);
        // Somebody else may have been here.
        let wanted = (until - next).clamp(0, STEP);
        let units = if wanted > 0 { store.units_from(queue, next, wanted)? } else { Vec::new() };
        let mut writer = Writer::new(&self.folder, self.sizes, last);
        let copied = units.iter().take_while(|_| !must_stop(store)).try_for_each(|unit| {
            self.copy(store, &mut writer, unit)?;
            next = unit.end();
            Ok(())
        });
        let grown = copied.and_then(|()| writer.finish());
        let mut state = self.state.write();
        match (grown, state.as_mut()) {
            (Ok(grown), Some(state)) => {
                state.pairs.pop();
                state.pairs.extend(grown);
                state.followed = next;
                Ok(())
            }
            (grown, _) => {
                // It may have been a sync that failed.
                self.go_back(&mut state, queue);
                grown.map(|_| ())
            }
        }
    }

    /// Goes on at `to`, behind messages from `from` on that are lost.
    pub(super) fn leave_out(&self, from: i64, to: i64) {
        let _writing = self.writing.lock();
        if let Some(state) = self.state.write().as_mut().filter(|state| state.followed <= from) {
            state.followed = to;
        }
    }

    fn copy(&self, store: &Store, writer: &mut Writer<'_>, unit: &Unit) -> io::Result<()> {
        let bytes = store.record(unit, false);
        let Some(record) = bytes.as_ref().and_then(|bytes| RecordView::parse(bytes).ok()) else {
            if !unit.is_filler() && unit.physical_offset >= store.log.min_offset() {
                tracing::error!(topic = %self.topic, queue = self.id, offset = unit.queue_offset, "a damaged message is not copied");
            }
            return Ok(());
        };
        if key_of(&record).is_empty() {
            tracing::warn!(topic = %self.topic, queue = self.id, offset = unit.queue_offset, "a message without KEYS is not copied");
            return Ok(());
        }
        let place = BatchUnit {
            physical_offset: 0,
            size: unit.size,
            tags_code: unit.tags_code,
            store_time: record.store_timestamp,
            base: unit.queue_offset,
            count: 1,
        };
        if !writer.put(&place, record.bytes)? {
            tracing::error!(
                topic = %self.topic, queue = self.id, offset = unit.queue_offset, size = unit.size,
                "a message is larger than compactionMappedFileSize and is not copied"
            );
        }
        Ok(())
    }

    /// Puts what was copied onto the disk.
    pub(crate) fn sync(&self, queue: &ConsumeQueue) -> io::Result<()> {
        let (open, followed) = {
            let _writing = self.writing.lock();
            let state = self.state.read();
            let Some(state) = state.as_ref().filter(|state| state.synced < state.followed) else { return Ok(()) };
            let open = state.pairs.last().map(|pair| OpenPair::open(&self.folder, pair)).transpose()?;
            (open, state.followed)
        };
        let result = open.map_or(Ok(()), |open| {
            open.log.sync()?;
            open.queue.sync()?;
            self.folder.sync()
        });
        let _writing = self.writing.lock();
        let mut state = self.state.write();
        match (&result, state.as_mut()) {
            (Ok(()), Some(state)) => state.synced = state.synced.max(followed),
            _ => self.go_back(&mut state, queue),
        }
        result
    }

    /// What a failed sync leaves on the disk is unknown: what the commit log has of it is copied once more.
    fn go_back(&self, state: &mut Option<State>, queue: &ConsumeQueue) {
        let Some(known) = state else { return };
        let first = known.pairs.last().map_or(0, |pair| pair.first);
        let from = known.synced.max(queue.min()).max(first).min(known.followed);
        known.followed = from;
        if cut_at(&self.folder, self.sizes, &mut known.pairs, from).is_err() {
            *state = None;
        }
    }

    /// The first pair that has a message at or after a queue offset, open for reading.
    pub(super) fn pair_at(&self, offset: i64) -> io::Result<Option<OpenPair>> {
        let state = self.state.read();
        let state = state.as_ref().ok_or_else(unknown)?;
        let at = state.pairs.partition_point(|pair| pair.last < offset);
        // Opened under the lock: a swap changes what the names mean.
        state.pairs.get(at).map(|pair| OpenPair::open(&self.folder, pair)).transpose()
    }

    /// After a sign of damage the files are read again, and wholly, by the next who needs them.
    pub(super) fn suspect(&self, error: &io::Error) {
        if error.kind() == io::ErrorKind::InvalidData {
            let _writing = self.writing.lock();
            self.suspected.store(true, Ordering::Release);
            *self.state.write() = None;
        }
    }

    /// Finds the first unit for which `reached` is true; it must be true for all units behind it. Also gives the queue offset of
    /// the message before.
    pub(crate) fn first_where(
        &self,
        reached: &dyn Fn(&BatchUnit) -> bool,
    ) -> io::Result<(Option<i64>, Option<BatchUnit>)> {
        let (mut before, mut next) = (None, 0);
        while let Some(open) = self.pair_at(next)? {
            let (mut low, mut high) = (0, open.pair.units);
            while low < high {
                let middle = low + (high - low) / 2;
                let is_reached = open.units(middle, 1)?.first().is_none_or(reached);
                if is_reached { high = middle } else { low = middle + 1 }
            }
            if let Some(at) = low.checked_sub(1) {
                before = open.units(at, 1)?.first().map(|unit| unit.base).or(before);
            }
            if let Some(unit) = open.units(low, 1)?.first() {
                return Ok((before, Some(*unit)));
            }
            next = open.pair.last + 1;
        }
        Ok((before, None))
    }

    /// Makes it unusable and removes its files.
    pub(super) fn delete(&self) -> io::Result<()> {
        let _writing = self.writing.lock();
        let mut state = self.state.write();
        self.dead.store(true, Ordering::Release);
        *state = None;
        self.folder.remove()
    }
}

fn must_stop(store: &Store) -> bool {
    store.compaction_signal.stopping_for().is_some_and(|time| time >= STOP_WAITS)
}

fn unknown() -> io::Error {
    io::Error::other("the files of a compacted log cannot be read for now")
}
