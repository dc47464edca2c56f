//! Damaged units of plain queues, which a reader meets: put right from the commit log, or reported.
//!
//! A start does not look at every unit, and the disk may fail later. A unit is damaged when it is none, or when no record is
//! where it points. Its record lies between those of its neighbours.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use protocol::record::{RecordView, sys_flag};

use crate::batch_unit::BatchUnit;
use crate::consume_queue::ConsumeQueue;
use crate::facts::unit_of;
use crate::multi_dispatch;
use crate::walk::walk;
use crate::{QueueType, Store, Unit};

/// Bytes of the commit log that are searched for a record.
const MOST_SEARCHED: u64 = 256 << 20;
/// Units looked at to find a sound neighbour.
const MOST_NEIGHBOURS: i64 = 1000;
/// Damaged units that are remembered, so that each is searched for and reported once.
const MOST_REMEMBERED: usize = 10_000;

/// Units that cannot be put right, by queue and offset.
#[derive(Default)]
pub(crate) struct Lost(Mutex<BTreeSet<(u32, i64)>>);

impl Lost {
    /// False when it is known already, or too many are.
    fn add(&self, queue: &ConsumeQueue, offset: i64) -> bool {
        let mut known = self.0.lock();
        known.len() < MOST_REMEMBERED && known.insert((queue.uid, offset))
    }

    fn has(&self, queue: &ConsumeQueue, offset: i64) -> bool {
        let known = self.0.lock();
        known.len() >= MOST_REMEMBERED || known.contains(&(queue.uid, offset))
    }
}

impl Store {
    /// The unit at `offset`, which is damaged, put right together with its damaged neighbours. `None`, and a line in the log the
    /// first time, when that cannot be done. Waits for the disk.
    pub(crate) fn mended(&self, queue: &Arc<ConsumeQueue>, offset: i64) -> Option<Unit> {
        if self.lost_units.has(queue, offset) {
            return None;
        }
        let mended = if queue.kind == QueueType::Simple { self.mend(queue, offset) } else { None };
        let (topic, id) = (&queue.topic, queue.id);
        match &mended {
            Some(_) => {
                tracing::warn!(%topic, queue = id, offset, "a damaged unit of a consume queue was put right from the commit log")
            }
            None if self.lost_units.add(queue, offset) => tracing::error!(
                %topic, queue = id, offset,
                "a unit of a consume queue or its record is damaged, readers pass over the message; \
                 stop the broker and run `mqbroker store check`"
            ),
            None => {}
        }
        mended
    }

    fn mend(&self, queue: &Arc<ConsumeQueue>, offset: i64) -> Option<Unit> {
        let sound = |at: i64| self.queues.unit(queue, at).filter(|unit| self.is_sound(queue, unit));
        let before = (queue.min()..offset).rev().take(MOST_NEIGHBOURS as usize).find_map(sound);
        let from = before.map_or(self.log.min_offset(), |unit| unit.physical_end());
        let last = queue.end().min(offset + MOST_NEIGHBOURS);
        let behind = (offset + 1..last).find_map(|at| Some((at, sound(at)?.physical_offset)));
        let (end, to) = behind.unwrap_or((last, self.positions.confirmed()));
        let mut failed = None;
        let mut on_record = |at: u64, record: &RecordView<'_>| {
            let unit = self.unit_in(queue, at, record).filter(|unit| (offset..end).contains(&unit.base));
            if let Some(Err(error)) = unit.map(|unit| self.queues.overwrite(queue, &unit)) {
                failed.get_or_insert(error);
            }
        };
        let to = to.min(from.saturating_add(MOST_SEARCHED));
        let walked = walk(&self.log, from, to, self.config.checksums(), &mut on_record, &mut |_, _| None);
        if let Some(error) = walked.err().or(failed) {
            tracing::error!(topic = %queue.topic, queue = queue.id, offset, %error, "putting a damaged unit right failed");
        }
        sound(offset)
    }

    /// Whether the record is where the unit says, and is that message.
    fn is_sound(&self, queue: &Arc<ConsumeQueue>, unit: &Unit) -> bool {
        let Some(record) = self.record_at(unit.physical_offset) else { return false };
        let expected =
            RecordView::parse(&record).ok().and_then(|view| self.unit_in(queue, unit.physical_offset, &view));
        expected.is_some_and(|expected| (expected.base, expected.size) == (unit.queue_offset, unit.size))
    }

    /// The unit of a record in a plain queue; `None` when it is not in that queue.
    fn unit_in(&self, queue: &Arc<ConsumeQueue>, at: u64, record: &RecordView<'_>) -> Option<BatchUnit> {
        if !sys_flag::takes_queue_place(record.sys_flag) || self.deleted.covers(&queue.topic, at) {
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
