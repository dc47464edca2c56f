//! Opening a store: which files are good, where the log ends, what the queues miss.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::batch_unit::BatchUnit;
use crate::checkpoint::{NO_BOOT, Progress, Times};
use crate::commit_log::CommitLog;
use crate::consume_queue::ConsumeQueue;
use crate::deleted::Deleted;
use crate::facts::unit_of;
use crate::multi_dispatch;
use crate::progress::Report;
use crate::queues::{EndSearch, Queues};
use crate::walk::{Checksums, Fault, look, next_record, walk};
use crate::{OpenError, StoreConfig};
use protocol::record::{RecordView, sys_flag};

/// Units kept in memory before they are written.
const SAVE_BYTES: usize = 16 << 20;

/// How the last process ended, as far as the files tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastExit {
    /// In order.
    Clean,
    /// The process died, the machine did not: what was given to the kernel is there.
    Killed,
    /// The machine may have died: only what was synced counts.
    Crashed,
}

/// What recovery knows before it starts.
pub(crate) struct Known {
    pub(crate) exit: LastExit,
    pub(crate) times: Times,
    /// Our own marks, when nobody else wrote to the store since.
    pub(crate) progress: Option<Progress>,
}

impl Known {
    pub(crate) fn new(abort: bool, times: Times, progress: Option<Progress>, boot: [u8; 16]) -> Self {
        let exit = match &progress {
            Some(p) if !abort && p.clean => LastExit::Clean,
            None if !abort => LastExit::Clean,
            Some(p) if p.boot == boot && boot != NO_BOOT => LastExit::Killed,
            _ => LastExit::Crashed,
        };
        Known { exit, times, progress }
    }

    pub(crate) fn end_search(&self) -> EndSearch {
        if self.progress.is_some() && self.exit != LastExit::Crashed { EndSearch::Halving } else { EndSearch::Walking }
    }
}

/// What recovery found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Recovered {
    /// End of the commit log.
    pub(crate) end: u64,
    /// Where the walk began.
    pub(crate) from: u64,
    /// Records walked over.
    pub(crate) records: u64,
    /// Store time of the last record; 0 when none was walked over.
    pub(crate) last_time: i64,
}

pub(crate) struct Recovery<'a> {
    pub(crate) config: &'a StoreConfig,
    pub(crate) log: &'a CommitLog,
    pub(crate) queues: &'a Queues,
    pub(crate) deleted: &'a Deleted,
    pub(crate) known: Known,
}

impl Recovery<'_> {
    /// `lower_marks` is told where the queues are to be built from, before any of them is changed: should this die, too, the
    /// next start must not take older marks for true.
    pub(crate) fn run(
        &self,
        lower_marks: &mut dyn FnMut(u64) -> Result<(), OpenError>,
    ) -> Result<Recovered, OpenError> {
        let damaged = self.queues.load(self.known.end_search(), self.log.min_offset())?;
        let in_log = |e: io::Error| OpenError::io(&self.config.root.join("commitlog"))(e);
        let in_queues = |e: io::Error| OpenError::io(self.queues.root())(e);
        if self.log.segments().is_empty() {
            for queue in self.queues.all() {
                tracing::warn!(topic = %queue.topic, queue = queue.id, "there is no commit log; removing the consume queue");
                self.queues.delete_queue(&queue).map_err(in_queues)?;
            }
            return Ok(Recovered { end: 0, from: 0, records: 0, last_time: 0 });
        }
        let from = self.start(damaged > 0).map_err(in_log)?;
        // Read before the queues are cut: a unit proves that its message was written.
        let proven = self.proven();
        if damaged > 0 || self.known.progress.is_some_and(|p| from < p.queued.max(p.durable)) {
            lower_marks(from)?;
        }
        // Also of a process that died: its last write to a queue may have been a short one.
        if self.known.exit != LastExit::Clean {
            self.queues.truncate_all(from).map_err(in_queues)?;
        }
        // After the cut: a crash may have brought back units of a log that was longer than it was at the deletion.
        self.remove_deleted().map_err(in_queues)?;
        let found = self.walk_from(from, proven).map_err(in_log)?;
        self.save_queues().map_err(in_queues)?;
        self.queues.truncate_all(found.end).map_err(in_queues)?;
        self.log.truncate(found.end).map_err(in_log)?;
        if found.end < proven {
            tracing::error!(end = found.end, proven, "the commit log ends before messages that had been stored");
        }
        for queue in self.queues.all() {
            queue.next.store(queue.end(), Ordering::Release);
        }
        tracing::info!(
            exit = ?self.known.exit, from, end = found.end, records = found.records, queues = self.queues.all().len(),
            "recovered"
        );
        Ok(found)
    }

    /// Removes queues of deleted topics that a death in the middle has left.
    fn remove_deleted(&self) -> io::Result<()> {
        for queue in self.queues.all() {
            if self.is_deleted(&queue) {
                tracing::info!(topic = %queue.topic, queue = queue.id, "removing a queue of a deleted topic");
                self.queues.delete_queue(&queue)?;
            }
        }
        Ok(())
    }

    /// Whether the last message of a queue, and so each of them, is one of a deleted topic.
    fn is_deleted(&self, queue: &ConsumeQueue) -> bool {
        let end = queue.state().max_physical;
        // Files are opened for few queues.
        if end == 0 || !self.deleted.covers(&queue.topic, end - 1, i64::MIN) {
            return false;
        }
        let last = self.queues.unit(queue, queue.end() - 1);
        // A record that cannot be read is as old as any: what lies below an end was on the disk.
        let time = last.and_then(|last| self.time_of(last.physical_offset)).unwrap_or(i64::MIN);
        self.deleted.covers(&queue.topic, end - 1, time)
    }

    /// Without room on the disk the units stay in memory and are readable; the queue thread tries again.
    fn save_queues(&self) -> io::Result<()> {
        match self.queues.save_all() {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                tracing::warn!(%error, "consume queues are not saved for now");
                Ok(())
            }
            result => result,
        }
    }

    /// Messages below were certainly on the disk, so bytes below that are no record are damage, not a torn end.
    fn proven(&self) -> u64 {
        let queued = if self.known.exit == LastExit::Crashed { 0 } else { self.queues.max_physical() };
        self.known.progress.as_ref().map_or(0, |p| p.flushed).max(queued)
    }

    /// Where the walk begins: everything before is in the queues and on the disk.
    fn start(&self, rebuild: bool) -> io::Result<u64> {
        let min = self.log.min_offset();
        let have = self.queues.all().len();
        if rebuild || have == 0 {
            tracing::info!(from = min, "building the consume queues from the commit log");
            return Ok(min);
        }
        let Some(progress) = &self.known.progress else { return self.start_as_java() };
        let (_, last_files) = self.queues.extent();
        if have < progress.queues as usize || last_files < progress.last_files {
            tracing::warn!(
                have,
                had = progress.queues,
                "consume queues or their last files are missing; building them from the commit log"
            );
            return Ok(min);
        }
        let mark = if self.known.exit == LastExit::Crashed { progress.durable } else { progress.queued };
        let last_end = self.log.segments().last().map_or(0, |s| s.end());
        if mark > last_end {
            tracing::error!(mark, last_end, "commit log files are missing at the end");
            return self.start_as_java();
        }
        Ok(mark.max(min))
    }

    /// Java's rule: the last file whose first record is surely in the queues.
    fn start_as_java(&self) -> io::Result<u64> {
        let queued = self.queues.max_physical();
        let safe = self.known.times.safe();
        for segment in self.log.segments().iter().rev() {
            let bytes = segment.bytes()?;
            let Ok(Some(first)) = look(bytes, segment.start, self.config.checksums()) else { continue };
            let good = match self.known.exit {
                LastExit::Clean => segment.start <= queued,
                LastExit::Killed | LastExit::Crashed => first.store_timestamp <= safe,
            };
            if first.store_timestamp > 0 && good {
                return Ok(segment.start);
            }
        }
        Ok(self.log.min_offset())
    }

    fn walk_from(&self, from: u64, proven: u64) -> io::Result<Recovered> {
        let mut records = 0;
        let mut save_error = None;
        let last_end = self.log.segments().last().map_or(0, |s| s.end());
        let mut report = Report::new(self.config.screen.clone());
        // Shared by what looks at records and at faults.
        let last_time = Cell::new(0);
        let end = walk(
            self.log,
            from,
            u64::MAX,
            self.config.checksums(),
            &mut |at, record| {
                if let Err(error) = self.put_unit(at, record) {
                    save_error.get_or_insert(error);
                }
                records += 1;
                last_time.set(record.store_timestamp);
                if records % 4096 == 0 {
                    if self.queues.unsaved_bytes() > SAVE_BYTES {
                        save_error = save_error.take().or(self.save_queues().err());
                    }
                    report.tick(|| format!("recovering the commit log: {records} messages, at {at} of {last_end}"));
                }
            },
            &mut |at, fault| self.judge(at, &fault, proven, last_time.get()),
        )?;
        report.done(|| format!("the commit log is recovered: {records} messages, it ends at {end}"));
        match save_error {
            Some(error) => Err(error),
            None => Ok(Recovered { end, from, records, last_time: last_time.get() }),
        }
    }

    /// Decides what bytes that are no record mean: the end of the log (`None`), or damage to be skipped. `last_time` is the
    /// store time of the record before.
    fn judge(&self, at: u64, fault: &Fault, proven: u64, last_time: i64) -> Option<u64> {
        let path = self.log.segment_at(at).map(|s| s.file.path().display().to_string()).unwrap_or_default();
        let next = match next_record(self.log, at + 1) {
            Ok(next) => next,
            Err(error) => {
                tracing::error!(at, path, %error, "cannot look behind a damaged record");
                None
            }
        };
        let reason = &fault.reason;
        let Some(next) = next else {
            if !fault.unwritten {
                tracing::warn!(at, path, reason, "the last record is torn; the commit log ends before it");
            }
            return None;
        };
        if next < proven || self.was_kept(next, last_time) {
            let skipped = next - at;
            tracing::error!(
                at,
                path,
                reason,
                skipped,
                next,
                "the commit log is damaged in the middle; going on at the next good record"
            );
            return Some(next);
        }
        match crate::aside::keep(self.log, &self.config.root, at) {
            Ok(kept) => tracing::error!(
                at, path, reason, next, kept = %kept.display(),
                "the commit log was not flushed from here on and is torn; it ends here, what follows is set aside"
            ),
            Err(error) => tracing::error!(
                at, path, reason, next, %error,
                "the commit log was not flushed from here on and is torn; it ends here, what follows could not be set aside"
            ),
        }
        None
    }

    /// Whether the record at `at`, behind damage, is known to have followed what is before: then it is real, and not the
    /// leftover of a write that was taken back or of a log that ended earlier.
    fn was_kept(&self, at: u64, last_time: i64) -> bool {
        let Some(time) = self.time_of(at) else { return false };
        // A leftover is older than what was written over its beginning.
        if time < last_time {
            return false;
        }
        match (&self.known.progress, self.known.exit) {
            // Nothing that was handed to the kernel is lost while the machine lives.
            (Some(_), LastExit::Clean | LastExit::Killed) => true,
            (Some(_), LastExit::Crashed) => false,
            // Java's mark of what is on the disk is a time.
            (None, _) => time <= self.known.times.safe(),
        }
    }

    /// Store time of the record at `at`; `None` when there is none.
    fn time_of(&self, at: u64) -> Option<i64> {
        let segment = self.log.segment_at(at)?;
        let bytes = segment.bytes().ok()?.slice((at - segment.start) as usize..);
        let record = look(&bytes, at, Checksums::None).ok()??;
        Some(record.store_timestamp)
    }

    /// Gives a record its place in its queue, if it has none yet.
    fn put_unit(&self, at: u64, record: &RecordView<'_>) -> io::Result<()> {
        if !sys_flag::takes_queue_place(record.sys_flag) {
            return Ok(());
        }
        let is_gone = |topic: &str| self.deleted.covers(topic, at, record.store_timestamp);
        if !is_gone(record.topic) {
            let queue = self.queues.get_or_make(record.topic, record.queue_id);
            let unit = unit_of(self.config, &queue, at, record);
            self.put_in(&queue, &unit)?;
        }
        if self.config.enable_multi_dispatch && multi_dispatch::allowed(self.config, record.topic) {
            for (name, base) in multi_dispatch::places(record).filter(|(name, _)| !is_gone(name)) {
                let light = self.queues.get_or_make(name, 0);
                self.put_in(&light, &BatchUnit { base, ..unit_of(self.config, &light, at, record) })?;
            }
        }
        Ok(())
    }

    fn put_in(&self, queue: &Arc<ConsumeQueue>, unit: &BatchUnit) -> io::Result<()> {
        let at = unit.physical_offset;
        if queue.end() > 0 && at >= queue.state().max_physical {
            // Offsets begin again only when the topic was deleted and made anew: what came before is not in its queue.
            let made_anew = unit.base == 0;
            // A crash took units whose messages have left the commit log. The offsets of those that follow must not shift.
            let lost_units = unit.base > queue.end() && queue.state().max_physical <= self.log.min_offset();
            // A crash took its first files, and the rest was cut off to be built again.
            let lost_begin = unit.base < queue.end() && queue.min() == queue.end();
            if made_anew || lost_units || lost_begin {
                self.queues.restart(queue)?;
            }
        }
        self.queues.put(queue, unit);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_the_last_process_ended() {
        let (boot, other) = ([7; 16], [8; 16]);
        let ours = |clean, boot| Some(Progress { clean, boot, ..Progress::default() });
        let cases = [
            (false, None, LastExit::Clean),
            (true, None, LastExit::Crashed),
            (false, ours(true, other), LastExit::Clean),
            (true, ours(false, boot), LastExit::Killed),
            (true, ours(false, other), LastExit::Crashed),
            // The file `abort` is lost, or somebody removed it.
            (false, ours(false, boot), LastExit::Killed),
            (false, ours(false, other), LastExit::Crashed),
        ];
        for (abort, progress, exit) in cases {
            assert_eq!(Known::new(abort, Times::default(), progress, boot).exit, exit, "{abort} {progress:?}");
        }
        assert_eq!(Known::new(true, Times::default(), ours(false, NO_BOOT), NO_BOOT).exit, LastExit::Crashed);
    }
}
