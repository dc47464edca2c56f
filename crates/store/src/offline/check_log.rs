//! Checking the commit log: every record, blank and gap.

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use protocol::record::{RecordView, property, sys_flag};

use super::OfflineStore;
use super::findings::{Finding, Findings, Remedy};
use super::scan::Place;
use crate::checkpoint::boot_id;
use crate::progress::Report;
use crate::recovery::{Known, LastExit};
use crate::walk::Fault;

/// What the log says about each queue, by topic and id.
#[derive(Default)]
pub(super) struct Seen {
    queues: HashMap<String, HashMap<i32, SeenQueue>>,
    /// Bytes that are no records, `[from, to)`, ascending.
    pub(super) damaged: Vec<(u64, u64)>,
}

/// One queue as the log has it, since it last began at 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenQueue {
    /// Queue offset of the first message.
    pub(super) first: i64,
    /// Queue offset after the last message.
    pub(super) next: i64,
    /// Commit log offset of the last message.
    pub(super) last: u64,
    /// Queue offset of the first message that the next start puts into its queue.
    pub(super) redone: Option<i64>,
}

impl Seen {
    pub(super) fn queue(&self, topic: &str, id: i32) -> Option<SeenQueue> {
        self.queues.get(topic)?.get(&id).copied()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, i32, SeenQueue)> {
        self.queues.iter().flat_map(|(topic, ids)| ids.iter().map(|(id, seen)| (topic.as_str(), *id, *seen)))
    }

    pub(super) fn is_damaged(&self, at: u64) -> bool {
        let behind = self.damaged.partition_point(|(from, _)| *from <= at);
        behind.checked_sub(1).and_then(|i| self.damaged.get(i)).is_some_and(|(_, to)| at < *to)
    }

    /// Notes a record, from `begin` on as one that the next start puts into its queue. Returns the queue offset that was
    /// expected when it has another one.
    fn note(&mut self, at: u64, record: &RecordView<'_>, begin: u64) -> Option<i64> {
        if !self.queues.contains_key(record.topic) {
            self.queues.insert(record.topic.to_owned(), HashMap::new());
        }
        let ids = self.queues.get_mut(record.topic)?;
        let offset = record.queue_offset;
        let new = SeenQueue { first: offset, next: offset, last: at, redone: None };
        let queue = ids.entry(record.queue_id).or_insert(new);
        let expected = queue.next;
        if offset == 0 {
            // A topic that was deleted and made again begins at 0.
            *queue = new;
        }
        queue.next = offset + messages(record);
        queue.last = at;
        if at >= begin {
            queue.redone.get_or_insert(offset);
        }
        (offset != expected && offset != 0).then_some(expected)
    }
}

/// Places in its queue that a record takes.
fn messages(record: &RecordView<'_>) -> i64 {
    if record.sys_flag & sys_flag::INNER_BATCH == 0 {
        return 1;
    }
    record.property(property::INNER_NUM).and_then(|n| n.parse().ok()).filter(|n| *n > 0).unwrap_or(1)
}

impl OfflineStore {
    pub(super) fn check_log(&self, found: &mut Findings) -> io::Result<Seen> {
        let mut seen = Seen::default();
        let mut report = Report::new(self.config.screen.clone());
        let segments = self.log.segments();
        found.totals.commit_log_files = segments.len() as u64;
        found.totals.log_start = self.log.min_offset();
        let last_end = segments.last().map_or(0, |s| s.end());
        let mut end = self.log.min_offset();
        let begin = self.recovery_begin();
        self.scan(0, &mut |at, place| {
            match place {
                Place::Record(record) => {
                    found.totals.records += 1;
                    end = at + record.size() as u64;
                    self.check_record(at, record, begin, &mut seen, found);
                    if found.totals.records.is_multiple_of(4096) {
                        let records = found.totals.records;
                        report.tick(|| format!("commit log: {records} records, at {at} of {last_end}"));
                    }
                }
                Place::Blank { stated, room } => {
                    end = at + room;
                    if stated != room {
                        let what = format!("a blank says {stated} bytes, {room} are left in its file");
                        found.add(self.in_log("blank of a wrong length", Remedy::Lost, at, what));
                    }
                }
                Place::Damage { fault, next } => {
                    seen.damaged.push((at, next));
                    let what = format!("{}; the next good record is at {next}", fault.reason);
                    found.add(self.in_log("damage in the commit log", Remedy::Lost, at, what));
                }
                Place::Missing { next } => {
                    seen.damaged.push((at, next));
                    let what = format!("no commit log file holds {at} to {next}");
                    found.add(self.in_log("missing commit log file", Remedy::Lost, at, what));
                }
                Place::End(fault) => self.check_end(at, fault.as_ref(), found),
            }
            ControlFlow::Continue(())
        })?;
        found.totals.log_end = end;
        Ok(seen)
    }

    fn check_record(&self, at: u64, record: &RecordView<'_>, begin: u64, seen: &mut Seen, found: &mut Findings) {
        if record.store_timestamp <= 0 {
            let what = format!("a record's store time is {}", record.store_timestamp);
            found.add(self.in_log("record without a store time", Remedy::Lost, at, what));
        }
        let gone = self.deleted.covers(record.topic, at, record.store_timestamp);
        if gone || !sys_flag::takes_queue_place(record.sys_flag) {
            return;
        }
        if let Some(expected) = seen.note(at, record, begin) {
            let (topic, id, offset) = (record.topic, record.queue_id, record.queue_offset);
            let what = format!("queue {id} of {topic} goes on at {offset}, expected was {expected}");
            found.add(self.in_log("queue offsets in the log that do not follow", Remedy::Lost, at, what));
        }
    }

    /// What stands where the log ends: nothing, or the torn rest of a write.
    fn check_end(&self, at: u64, fault: Option<&Fault>, found: &mut Findings) {
        let flushed = self.progress.map_or(0, |p| p.flushed);
        if at < flushed {
            let what = format!("the commit log ends here, but up to {flushed} had been flushed");
            found.add(self.in_log("commit log ends too early", Remedy::Lost, at, what));
        } else if let Some(fault) = fault.filter(|f| !f.unwritten && self.abort) {
            let what = format!("a torn end: {}", fault.reason);
            found.add(self.in_log("torn end of the commit log", Remedy::NextStart, at, what));
        }
    }

    /// From where on the next start puts messages into their queues.
    fn recovery_begin(&self) -> u64 {
        match (self.progress, Known::new(self.abort, self.times, self.progress, boot_id()).exit) {
            (Some(progress), LastExit::Crashed) => progress.durable,
            (Some(progress), _) => progress.queued,
            (None, _) => self.log.segments().last().map_or(0, |s| s.start),
        }
    }

    fn in_log(&self, kind: &'static str, remedy: Remedy, at: u64, what: String) -> Finding {
        let (path, position) = self.place(at);
        Finding::new(kind, remedy, Path::new(&path), what).at(position).offset(at)
    }
}
