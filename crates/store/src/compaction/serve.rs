//! Compacted logs as parts of the store: following, rounds, reading.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::log::Range;
use super::pair::{OpenPair, intact};
use super::{CompactionLog, CompactionRound, Schedule};
use crate::batch_unit::BatchUnit;
use crate::consume_queue::ConsumeQueue;
use crate::get::Limits;
use crate::queues::UnitRead;
use crate::signal::side_by_side;
use crate::{Boundary, GetRequest, GetResult, GetStatus, OpenError, Store, Unit};

/// How often logs follow their queues when nobody reads them.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);
/// How often new queues of compaction topics are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How often what was copied goes to the disk.
const SYNC_EVERY: Duration = Duration::from_secs(10);
/// How often in a row a unit could not be read when it is taken for lost: about a minute.
const UNREADABLE_TRIES: u32 = 60;
/// Units looked at once by a reader.
const UNITS_AT_ONCE: u64 = 32;

impl Store {
    /// The compacted log of a queue, if its topic is compacted.
    pub(crate) fn compacted<'a>(&self, queue: &'a ConsumeQueue) -> Option<&'a CompactionLog> {
        self.compaction.log_of(queue, &*self.topics)
    }

    /// Looks at the files of all compacted logs. Queues whose own files have gone go on where the log ends.
    pub(crate) fn load_compaction(&self) -> Result<(), OpenError> {
        let root = self.config.root.join("compaction");
        if !self.compaction.enabled {
            return Ok(());
        }
        for (topic, id) in self.compaction.on_disk().map_err(OpenError::io(&root))? {
            if !self.topics.is_compaction(&topic) {
                continue;
            }
            let queue = self.queues.get_or_make(&topic, id);
            let Some(log) = self.compacted(&queue) else { continue };
            let followed = match log.range(self, &queue) {
                Ok(Range { followed, .. }) => followed,
                // Whoever needs it loads it once there is room. Its queue is there, so offsets go on.
                Err(error) if error.kind() == io::ErrorKind::StorageFull && queue.end() > 0 => {
                    tracing::warn!(%topic, queue = id, %error, "a compacted log cannot be loaded for now");
                    continue;
                }
                Err(error) => return Err(OpenError::io(&log.folder.log)(error)),
            };
            if queue.end() < followed {
                // Its last units are gone, and their messages have left the commit log: offsets must go on nevertheless.
                self.queues.restart(&queue).map_err(OpenError::io(&root))?;
                queue.next.store(followed, Ordering::Release);
            }
        }
        self.compaction.trusted.store(false, Ordering::Release);
        Ok(())
    }

    /// Units from an offset on, at least one.
    pub(crate) fn units_from(&self, queue: &ConsumeQueue, from: i64, max: i64) -> io::Result<Vec<Unit>> {
        let mut units = Vec::new();
        let read = self.queues.read(queue, from, usize::try_from(max).unwrap_or(0), true, &mut units);
        if read != UnitRead::Found || units.is_empty() {
            return Err(io::Error::other("the consume queue cannot be read"));
        }
        Ok(units)
    }

    // ---- following and rounds ----

    /// Looks for queues of compaction topics and lets every log follow its queue. Returns the offset of the commit log below
    /// which everything was copied.
    pub(crate) fn follow_queues(&self) -> u64 {
        if !self.compaction.enabled {
            return u64::MAX;
        }
        let mut queues = self.queues.all();
        queues.retain(|queue| !queue.is_dead() && self.compacted(queue).is_some());
        self.compaction.followed.lock().clone_from(&queues);
        queues.iter().map(|queue| self.follow_queue(queue)).min().unwrap_or(u64::MAX)
    }

    fn follow_queue(&self, queue: &ConsumeQueue) -> u64 {
        let Some(log) = self.compacted(queue) else { return u64::MAX };
        match log.follow(self, queue, queue.end()) {
            Ok(()) => log.unreadable.store(0, Ordering::Relaxed),
            Err(_) if queue.is_dead() => {}
            Err(error) => {
                tracing::error!(topic = %queue.topic, queue = queue.id, %error, "messages are not copied into the compacted log for now");
                return self.not_copied_from(queue, log);
            }
        }
        u64::MAX
    }

    /// Where in the commit log the first message lies that is not copied. When its unit cannot be read for long it is lost.
    fn not_copied_from(&self, queue: &ConsumeQueue, log: &CompactionLog) -> u64 {
        let Ok(range) = log.range(self, queue) else { return 0 };
        let from = range.followed.max(queue.min());
        if let Some(unit) = self.queues.unit(queue, from) {
            return unit.physical_offset;
        }
        if from < queue.end() && log.unreadable.fetch_add(1, Ordering::Relaxed) + 1 >= UNREADABLE_TRIES {
            let to = self.behind_hole(queue, from);
            tracing::error!(topic = %queue.topic, queue = queue.id, from, to, "units cannot be read: their messages are lost for the compacted log");
            log.leave_out(from, to);
            log.unreadable.store(0, Ordering::Relaxed);
        }
        0
    }

    /// Offset of the next unit that can be read; the queue's end when there is none.
    fn behind_hole(&self, queue: &ConsumeQueue, from: i64) -> i64 {
        let mut at = from;
        while at < queue.end() && self.queues.unit(queue, at).is_none() {
            let next = self.queues.after_hole(queue, at);
            at = if next > at { next } else { queue.end() };
        }
        at
    }

    /// The offset of the commit log below which all messages of compacted topics are in their logs, on the disk.
    pub(crate) fn copied_until(&self) -> u64 {
        let copied = self.follow_queues();
        if self.sync_compaction() { copied } else { 0 }
    }

    pub(crate) fn sync_compaction(&self) -> bool {
        let queues = self.compaction.followed.lock().clone();
        let mut all = true;
        for queue in &queues {
            let Some(log) = self.compacted(queue) else { continue };
            if let Err(error) = log.sync(queue) {
                all = log.is_dead() && all;
                tracing::error!(topic = %log.topic, queue = log.id, %error, "flushing a compacted log failed");
            }
        }
        all
    }

    /// A pass of the thread of compaction.
    pub(crate) fn compaction_pass(&self, schedule: &mut Schedule) -> Duration {
        let now = Instant::now();
        if now >= schedule.next_look {
            schedule.next_look = now + LOOK_EVERY;
            self.follow_queues();
        } else {
            let queues = self.compaction.followed.lock().clone();
            for queue in &queues {
                self.follow_queue(queue);
            }
        }
        if now >= schedule.next_sync {
            schedule.next_sync = now + SYNC_EVERY;
            self.sync_compaction();
        }
        if now >= schedule.next_round {
            self.compact_rounds();
            schedule.next_round = Instant::now() + self.config.compaction_interval;
        }
        FOLLOW_EVERY
    }

    /// A round for each queue that has something new, several at once.
    fn compact_rounds(&self) -> Vec<io::Result<CompactionRound>> {
        let queues: Vec<Arc<ConsumeQueue>> = self.compaction.followed.lock().clone();
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::new());
        let work = || {
            while let Some(queue) = queues.get(next.fetch_add(1, Ordering::Relaxed)) {
                let result = self.compact_queue(queue);
                results.lock().push(result);
            }
        };
        side_by_side(self.compaction.threads.min(queues.len()), &work);
        results.into_inner()
    }

    fn compact_queue(&self, queue: &ConsumeQueue) -> io::Result<CompactionRound> {
        let Some(log) = self.compacted(queue) else { return Ok(CompactionRound::default()) };
        let stop = || self.compaction_signal.is_stopping();
        let end = self.positions.flushed();
        // What is no longer in the commit log was flushed long ago.
        let flushed = |offset| self.queues.unit(queue, offset).is_none_or(|unit| unit.physical_end() <= end);
        let result = log.compact(&flushed, &stop);
        let (topic, id) = (&queue.topic, queue.id);
        match &result {
            Ok(round) if round.dropped > 0 => {
                tracing::info!(%topic, queue = id, kept = round.kept, dropped = round.dropped, "compacted");
            }
            Ok(_) => {}
            Err(error) if log.is_dead() || stop() => tracing::debug!(%error, "a round was given up"),
            Err(error) => {
                tracing::error!(%topic, queue = id, %error, "compaction failed; the files stay as they were");
                log.suspect(error);
            }
        }
        result
    }

    /// Compacts all logs now, as far as the messages are flushed. Runs by itself every `compactionScheduleInternal`. Returns
    /// what was kept and dropped, or the first error.
    pub fn compact_now(&self) -> io::Result<CompactionRound> {
        self.follow_queues();
        let mut sum = CompactionRound::default();
        for round in self.compact_rounds() {
            let round = round?;
            sum.kept += round.kept;
            sum.dropped += round.dropped;
        }
        Ok(sum)
    }

    // ---- reading ----

    /// Java's rules for the offsets of compacted topics; no filter is applied.
    pub(crate) fn get_compacted(
        &self,
        queue: &ConsumeQueue,
        log: &CompactionLog,
        request: &GetRequest<'_>,
        result: &mut GetResult,
    ) {
        let offset = request.offset;
        // Without leave to wait nothing but a wait for a new message can be answered.
        if !request.may_block && offset < queue.end() {
            (result.cold, result.max_offset) = (true, queue.end());
            return;
        }
        let limits = Limits::new(&self.config, request);
        let until = queue.end().min(offset.max(0).saturating_add(limits.messages as i64));
        if request.may_block
            && let Err(error) = log.follow(self, queue, until)
            && !queue.is_dead()
        {
            tracing::error!(topic = %queue.topic, queue = queue.id, %error, "messages are not copied into the compacted log for now");
        }
        let Ok(range) = log.range(self, queue) else {
            (result.status, result.next_offset) = (GetStatus::OffsetFoundNull, offset);
            return;
        };
        let max = range.followed.max(queue.end());
        (result.min_offset, result.max_offset) = (range.first.unwrap_or(0), max);
        let correct = |to: i64| if self.config.slave && !self.config.offset_check_in_slave { offset } else { to };
        (result.status, result.next_offset) = match offset {
            _ if max == 0 => (GetStatus::NoMessageInQueue, correct(0)),
            _ if offset > max => {
                (GetStatus::OffsetOverflowBadly, correct(if result.min_offset == 0 { 0 } else { max }))
            }
            // Also what cannot be copied for now: it comes later.
            _ if offset >= range.followed => (GetStatus::OffsetOverflowOne, correct(offset)),
            _ => (GetStatus::NoMatchedMessage, range.followed),
        };
        if offset >= range.followed {
            return;
        }
        match self.collect_compacted(log, offset, range.end, &limits, result) {
            Err(error) if result.messages.is_empty() => {
                tracing::error!(topic = %queue.topic, queue = queue.id, offset, %error, "reading a compacted log failed");
                log.suspect(&error);
                (result.status, result.next_offset) = (GetStatus::OffsetFoundNull, offset);
            }
            // What comes before the damage is good.
            _ => {}
        }
    }

    fn collect_compacted(
        &self,
        log: &CompactionLog,
        offset: i64,
        log_end: u64,
        limits: &Limits,
        result: &mut GetResult,
    ) -> io::Result<()> {
        let memory = self.in_memory_bytes();
        let mut next = offset;
        while let Some(open) = log.pair_at(next)? {
            let mut index = open.index_of(next)?;
            while index < open.pair.units {
                let units = open.units(index, UNITS_AT_ONCE)?;
                if units.is_empty() {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                let behind = |unit: &BatchUnit| log_end.saturating_sub(unit.physical_offset);
                let (mut count, mut bytes) = (result.count, result.bytes);
                let fits = |unit: &&BatchUnit| {
                    let full = limits.full((count, bytes), (1, unit.size as usize), behind(unit) <= memory);
                    (count, bytes) = (count + 1, bytes + unit.size as usize);
                    !full
                };
                let fit = units.iter().take_while(fits).count();
                take(&open, units.get(..fit).unwrap_or_default(), result)?;
                if let Some(last) = fit.checked_sub(1).and_then(|at| units.get(at)) {
                    result.suggest_slave = behind(last) > memory;
                }
                if fit < units.len() {
                    return Ok(());
                }
                index += units.len() as u64;
            }
            next = open.pair.last + 1;
        }
        Ok(())
    }

    /// First offset a reader finds, and the end of the queue.
    pub(crate) fn readable_range(&self, queue: &ConsumeQueue) -> (i64, i64) {
        let plain = (queue.min(), queue.end());
        let Some(log) = self.compacted(queue) else { return plain };
        match log.range(self, queue) {
            Ok(Range { first: Some(first), followed, .. }) => (first, followed.max(plain.1)),
            _ => plain,
        }
    }

    /// `offset_by_time` among the messages that are left.
    pub(crate) fn compacted_by_time(
        &self,
        queue: &ConsumeQueue,
        log: &CompactionLog,
        time: i64,
        boundary: Boundary,
    ) -> i64 {
        let (min, max) = self.readable_range(queue);
        let reached = |unit: &BatchUnit| match boundary {
            Boundary::Lower => unit.store_time >= time,
            Boundary::Upper => unit.store_time > time,
        };
        let found = log.follow(self, queue, queue.end()).and_then(|()| log.first_where(&reached));
        match (boundary, found) {
            (Boundary::Lower, Ok((_, Some(unit)))) => unit.base,
            (Boundary::Lower, _) => max,
            (Boundary::Upper, Ok((Some(before), _))) => before,
            (Boundary::Upper, _) => 0_i64.clamp(min, max),
        }
    }

    /// Store time of the first message at or after a queue offset, if it is in the compacted log.
    pub(crate) fn compacted_time(&self, queue: &ConsumeQueue, offset: i64) -> Option<(i64, i64)> {
        let log = self.compacted(queue)?;
        log.range(self, queue).ok()?;
        let open = log.pair_at(offset).ok()??;
        let unit = *open.units(open.index_of(offset).ok()?, 1).ok()?.first()?;
        Some((unit.base, unit.store_time))
    }
}

/// Adds the records of units to an answer.
fn take(open: &OpenPair, units: &[BatchUnit], result: &mut GetResult) -> io::Result<()> {
    let mut rest = units;
    while !rest.is_empty() {
        let (bytes, count) = open.records(rest, usize::MAX)?;
        let (now, later) = rest.split_at(count);
        let base = now.first().map_or(0, |unit| unit.physical_offset);
        for unit in now {
            let at = (unit.physical_offset - base) as usize;
            if at + unit.size as usize > bytes.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let record = bytes.slice(at..at + unit.size as usize);
            if intact(unit, &record).is_none() {
                return Err(io::ErrorKind::InvalidData.into());
            }
            result.next_offset = unit.end();
            result.count += 1;
            result.bytes += record.len();
            result.messages.push(record);
            result.status = GetStatus::Found;
        }
        rest = later;
    }
    Ok(())
}
