//! Damaged units of plain queues, which a reader meets: put right from the commit log, or reported.
//!
//! A start does not look at every unit, and the disk may fail later. A unit is damaged when it is none, or when no record of its
//! queue is where it points. Its record lies between those of its neighbours.
//!
//! The disk is not trusted here: the log is read with calls, whose errors a process survives, and never through the map.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use protocol::record::{BadReason, BadRecord, RecordView, Scan, scan, sys_flag};

use crate::batch_unit::BatchUnit;
use crate::consume_queue::ConsumeQueue;
use crate::facts::unit_of;
use crate::multi_dispatch;
use crate::walk::{Checksums, look};
use crate::{QueueType, Store, Unit};

/// Bytes of the commit log that are searched for a record.
const MOST_SEARCHED: u64 = 256 << 20;
/// Units looked at, on either side, to find a sound neighbour.
const MOST_NEIGHBOURS: i64 = 1000;
/// Damaged units that are remembered, so that each is searched for and reported once.
const MOST_REMEMBERED: usize = 10_000;
/// Bytes read at once: most records are no longer.
const FIRST_READ: u64 = 4096;

/// Units that cannot be put right, by queue and offset.
#[derive(Default)]
pub(crate) struct Lost {
    units: Mutex<BTreeSet<(u32, i64)>>,
    searching: Mutex<()>,
}

impl Lost {
    /// False when it is known already, or too many are.
    fn add(&self, queue: &ConsumeQueue, offset: i64) -> bool {
        let mut units = self.units.lock();
        let new = units.len() < MOST_REMEMBERED && units.insert((queue.uid, offset));
        if new && units.len() == MOST_REMEMBERED {
            tracing::error!("too many units of consume queues are damaged; no more are put right or reported");
        }
        new
    }

    fn has(&self, queue: &ConsumeQueue, offset: i64) -> bool {
        let units = self.units.lock();
        units.len() >= MOST_REMEMBERED || units.contains(&(queue.uid, offset))
    }

    /// Readers meet the same damage at the same time: the first one searches, and the others find it done.
    fn one_at_a_time(&self) -> MutexGuard<'_, ()> {
        self.searching.lock()
    }
}

/// Damaged units between two sound ones, and the stretch of the commit log that must hold their records.
struct Gap {
    units: Range<i64>,
    log: Range<u64>,
}

impl Store {
    /// The unit at `offset`, which is damaged, put right together with its damaged neighbours. `None` when that cannot be done;
    /// the first time the log says so. Waits for the disk.
    pub(crate) fn mended(&self, queue: &Arc<ConsumeQueue>, offset: i64) -> Option<Unit> {
        if self.lost_units.has(queue, offset) {
            return None;
        }
        let _one = self.lost_units.one_at_a_time();
        if self.lost_units.has(queue, offset) {
            return None;
        }
        let (topic, id) = (&queue.topic, queue.id);
        let searched = match queue.kind {
            QueueType::Simple => self.mend(queue, offset),
            QueueType::Batch => Ok(offset..offset + 1),
        };
        let units = searched.unwrap_or_else(|error| {
            tracing::error!(%topic, queue = id, offset, %error, "putting a damaged unit right failed");
            offset..offset + 1
        });
        let lost =
            units.filter(|at| !self.is_sound_or_empty(queue, *at)).filter(|at| self.lost_units.add(queue, *at)).count();
        if lost > 0 {
            tracing::error!(
                %topic, queue = id, offset, lost,
                "units of a consume queue or their records are damaged, readers pass over the messages; \
                 stop the broker and run `mqbroker store check`"
            );
        }
        if self.lost_units.has(queue, offset) { None } else { self.sound(queue, offset).ok()? }
    }

    /// Writes the damaged units around `offset` anew, as far as their records are found. Returns which ones were looked for.
    fn mend(&self, queue: &Arc<ConsumeQueue>, offset: i64) -> io::Result<Range<i64>> {
        if self.sound(queue, offset)?.is_some() {
            return Ok(offset..offset);
        }
        let Some(gap) = self.gap(queue, offset)? else { return Ok(offset..offset + 1) };
        let mut at = gap.log.start;
        while at < gap.log.end {
            match look(&self.read_record(at)?, at, self.config.checksums()) {
                Ok(Some(record)) => {
                    let unit = self.unit_in(queue, at, &record).filter(|unit| gap.units.contains(&unit.base));
                    unit.map_or(Ok(()), |unit| self.queues.overwrite(queue, &unit))?;
                    at += record.size() as u64;
                }
                Ok(None) => at = self.log.segment_at(at).map_or(gap.log.end, |segment| segment.end()),
                Err(_) => break,
            }
        }
        if self.sound(queue, offset)?.is_some() {
            let (topic, id) = (&queue.topic, queue.id);
            tracing::warn!(%topic, queue = id, offset, "a damaged unit of a consume queue was put right from the commit log");
        }
        Ok(gap.units)
    }

    /// `None` when there is no sound unit near enough to say where in the log to look.
    fn gap(&self, queue: &Arc<ConsumeQueue>, offset: i64) -> io::Result<Option<Gap>> {
        let first = queue.min().max(offset - MOST_NEIGHBOURS);
        let mut before = (first == queue.min()).then_some((first, self.log.min_offset()));
        for at in (first..offset).rev() {
            if let Some(unit) = self.sound(queue, at)? {
                before = Some((at + 1, unit.physical_end()));
                break;
            }
        }
        let Some((begin, from)) = before else { return Ok(None) };
        let last = queue.end().min(offset + MOST_NEIGHBOURS);
        let mut behind = (last, self.positions.confirmed());
        for at in offset + 1..last {
            if let Some(unit) = self.sound(queue, at)? {
                behind = (at, unit.physical_offset);
                break;
            }
        }
        let (end, to) = behind;
        Ok(Some(Gap { units: begin..end, log: from..to.min(from.saturating_add(MOST_SEARCHED)) }))
    }

    /// The unit at `offset`, if there is one and a record of its queue is where it points.
    fn sound(&self, queue: &Arc<ConsumeQueue>, offset: i64) -> io::Result<Option<Unit>> {
        let Some(unit) = self.queues.unit(queue, offset) else { return Ok(None) };
        let bytes = self.read_record(unit.physical_offset)?;
        let record = look(&bytes, unit.physical_offset, Checksums::None).ok().flatten();
        let expected = record.and_then(|record| self.unit_in(queue, unit.physical_offset, &record));
        // Not its offset: a message whose offset did not follow has the next place.
        Ok(expected.is_some_and(|expected| expected.size == unit.size).then_some(unit))
    }

    /// The place of a message that was lost before is no damage either.
    fn is_sound_or_empty(&self, queue: &Arc<ConsumeQueue>, offset: i64) -> bool {
        self.queues.unit(queue, offset).is_some_and(|unit| unit.is_filler())
            || matches!(self.sound(queue, offset), Ok(Some(_)))
    }

    /// What was written at a place of the commit log: a whole record, if one begins there.
    fn read_record(&self, at: u64) -> io::Result<Vec<u8>> {
        let Some(segment) = self.log.segment_at(at) else { return Ok(Vec::new()) };
        let there = segment.end().min(self.positions.written()).saturating_sub(at);
        let read = |len: u64| {
            let mut bytes = vec![0; len as usize];
            let done = segment.file.read_at(&mut bytes, at - segment.start)?;
            bytes.truncate(done);
            io::Result::Ok(bytes)
        };
        let bytes = read(there.min(FIRST_READ))?;
        match scan(&bytes, false) {
            Scan::Bad(BadRecord { reason: BadReason::CutOff { stated, .. }, .. }) if stated as u64 <= there => {
                read(stated as u64)
            }
            _ => Ok(bytes),
        }
    }

    /// The unit of a record in a plain queue; `None` when it is not in that queue.
    fn unit_in(&self, queue: &Arc<ConsumeQueue>, at: u64, record: &RecordView<'_>) -> Option<BatchUnit> {
        if !sys_flag::takes_queue_place(record.sys_flag)
            || self.deleted.covers(&queue.topic, at, record.store_timestamp)
        {
            return None;
        }
        let unit = unit_of(&self.config, queue, at, record);
        if *record.topic == *queue.topic && record.queue_id == queue.id {
            return Some(unit);
        }
        let (_, base) = multi_dispatch::places(record).find(|(name, _)| queue.is_light && *name == &*queue.topic)?;
        Some(BatchUnit { base, ..unit })
    }
}
