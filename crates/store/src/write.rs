//! Writing the group out: one caller does it for all that wait.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::consume_queue::Put;
use crate::group::{Entry, Group};
use crate::index::KeyBatch;
use crate::{Arrival, FlushDiskType, Store, WriteError};

/// Queue units in memory from which the queue thread is woken before its time.
const SAVE_SOON_BYTES: usize = 4 << 20;
/// Queue units in memory from which the writer saves them itself.
const SAVE_NOW_BYTES: usize = 64 << 20;
/// Refused ranges that are remembered for callers that have not asked yet.
const REFUSED_KEPT: usize = 65_536;

/// The state under the write lock.
#[derive(Default)]
pub(crate) struct Writer {
    spare: Group,
}

/// Units and arrivals of a written group that are not readable yet.
pub(crate) struct Dispatch {
    pub(crate) entries: Vec<Entry>,
    pub(crate) end: u64,
    pub(crate) last_store_time: i64,
}

/// Tickets whose bytes were refused.
#[derive(Default)]
pub(crate) struct Refused {
    /// Ascending: tickets only grow.
    ranges: VecDeque<(u64, u64, WriteError)>,
}

impl Refused {
    fn find(&self, ticket: u64) -> Option<WriteError> {
        let at = self.ranges.partition_point(|(_, to, _)| *to < ticket);
        self.ranges.get(at).filter(|(after, ..)| *after < ticket).map(|(_, _, error)| error.clone())
    }

    fn add(&mut self, (after, to): (u64, u64), error: WriteError) {
        if self.ranges.len() >= REFUSED_KEPT {
            self.ranges.pop_front();
        }
        self.ranges.push_back((after, to, error));
    }
}

impl Store {
    /// Returns when everything appended up to the ticket `end` has been handed to the kernel. One caller writes for all.
    pub fn write_out(&self, end: u64) -> Result<(), WriteError> {
        if self.written_ticket.load(Ordering::Acquire) < end {
            let mut writer = self.writer.lock();
            if self.written_ticket.load(Ordering::Acquire) < end {
                self.write_group(&mut writer);
            }
        }
        self.outcome(end)
    }

    /// What became of a ticket at or below `written_ticket`.
    pub(crate) fn outcome(&self, ticket: u64) -> Result<(), WriteError> {
        if self.refusals.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        self.refused.lock().find(ticket).map_or(Ok(()), Err)
    }

    /// Writes whatever is in the group.
    pub(crate) fn write_all(&self) {
        let mut writer = self.writer.lock();
        self.write_group(&mut writer);
    }

    fn write_group(&self, writer: &mut Writer) {
        let mut group = std::mem::take(&mut writer.spare);
        {
            let mut appender = self.appender.lock();
            if appender.group.is_empty() {
                drop(appender);
                writer.spare = group;
                return;
            }
            std::mem::swap(&mut appender.group, &mut group);
        }
        let begin = Instant::now();
        let result = if self.gate.is_stopped() {
            Err(WriteError::Stopped("an earlier write or flush failed".into()))
        } else {
            self.write_parts(&group)
        };
        match result {
            Ok(()) => {
                self.counters.wrote(&group, begin.elapsed());
                self.publish(&mut group);
            }
            Err(error) => self.refuse(&group, error),
        }
        group.clear();
        writer.spare = group;
    }

    fn write_parts(&self, group: &Group) -> Result<(), WriteError> {
        for (physical, bytes) in group.parts().filter(|(_, bytes)| !bytes.is_empty()) {
            let segment = self.log.segment_for_write(physical).map_err(|error| self.gate.write_failed(&error, true))?;
            segment
                .file
                .write_all_at(bytes, physical - segment.start)
                .map_err(|error: io::Error| self.gate.write_failed(&error, false))?;
        }
        Ok(())
    }

    /// The group is with the kernel: move the marks, tell queues, index and readers.
    fn publish(&self, group: &mut Group) {
        self.gate.lawful(self.positions.advance_written(group.end));
        self.last_written_time.store(group.last_store_time, Ordering::Release);
        if self.index.enabled() {
            let batch = KeyBatch { start: group.start, end: group.end, entries: std::mem::take(&mut group.keys) };
            if self.index.hand_over(batch) {
                self.index_signal.wake();
            }
        }
        if self.shows_flushed_only() {
            let entries = std::mem::take(&mut group.entries);
            let dispatch = Dispatch { entries, end: group.end, last_store_time: group.last_store_time };
            self.unflushed.lock().push_back(dispatch);
            self.written_ticket.store(group.ticket, Ordering::Release);
            self.flush_signal.wake();
        } else {
            self.dispatch(&group.entries, group.end, group.last_store_time);
            self.written_ticket.store(group.ticket, Ordering::Release);
        }
    }

    /// Whether messages become readable by the flush alone.
    pub(crate) fn shows_flushed_only(&self) -> bool {
        self.config.flush_disk_type == FlushDiskType::Sync && !self.config.read_uncommitted
    }

    /// Makes messages readable: units into their queues, then the arrivals.
    pub(crate) fn dispatch(&self, entries: &[Entry], end: u64, last_store_time: i64) {
        for entry in entries {
            let unit = &entry.unit;
            if !matches!(self.queues.put(&entry.queue, unit), Put::Done { .. }) {
                continue;
            }
            self.listener.arrived(&Arrival {
                topic: &entry.queue.topic,
                queue: entry.queue.id,
                next_offset: entry.queue.end(),
                tags_code: unit.tags_code,
                store_timestamp: unit.store_time,
                physical_offset: unit.physical_offset,
                size: unit.size,
            });
        }
        self.last_dispatched_time.store(last_store_time, Ordering::Release);
        self.gate.lawful(self.positions.advance_confirmed(end, self.shows_flushed_only()));
        self.listener.group_done();
        let unsaved = self.queues.unsaved_bytes();
        if unsaved > SAVE_NOW_BYTES {
            // The queue thread reports an error and tries again.
            let _ = self.queues.save_all();
        } else if unsaved > SAVE_SOON_BYTES {
            self.queue_signal.wake();
        }
    }

    /// Nothing of the group, nor of what was appended behind it, will ever be at its offset.
    fn refuse(&self, group: &Group, error: WriteError) {
        let mut appender = self.appender.lock();
        group.give_back_offsets();
        let tickets = appender.take_back(self.positions.written());
        self.gate.lawful(self.positions.set_appended(appender.position));
        self.deleted.lower(self.positions.written());
        self.log.erase_refused(self.positions.written());
        self.refused.lock().add(tickets, error);
        self.refusals.fetch_add(1, Ordering::AcqRel);
        self.written_ticket.store(tickets.1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refused_ticket_finds_its_own_error_and_no_other_ticket_finds_one() {
        let mut refused = Refused::default();
        refused.add((10, 20), WriteError::DiskFull);
        refused.add((30, 40), WriteError::Stopped("no".into()));
        for (ticket, error) in [
            (10, None),
            (11, Some(WriteError::DiskFull)),
            (20, Some(WriteError::DiskFull)),
            (21, None),
            (30, None),
            (31, Some(WriteError::Stopped("no".into()))),
            (40, Some(WriteError::Stopped("no".into()))),
            (41, None),
        ] {
            assert_eq!(refused.find(ticket), error, "{ticket}");
        }
    }
}
