//! Showing records one by one.

use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use protocol::record::{RecordView, property};

use super::OfflineStore;
use super::scan::Place;
use crate::keys::{key_hash, key_prefix};
use crate::{QueueType, TopicKinds};

/// Which records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Those that start in this range of commit log offsets, `to` exclusive.
    Offsets { from: u64, to: u64 },
    /// `max` records of a queue from a queue offset on, as its consume queue has them.
    Queue { topic: String, queue: i32, from: i64, max: u64 },
    /// Those with a key or unique key, as the index has them.
    Key { topic: String, key: String },
}

/// What stands at a place.
pub enum Dumped<'a> {
    Record(&'a RecordView<'a>),
    Damage(&'a Damage),
}

/// A place that should hold a record and does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Commit log offset.
    pub offset: u64,
    pub path: PathBuf,
    /// Byte in that file.
    pub position: u64,
    pub reason: String,
    /// Commit log offset of the next good record, where the dump goes on.
    pub next: Option<u64>,
}

/// Takes one line; an error (a closed pipe) ends the dump.
type Line<'a> = dyn FnMut(Dumped<'_>) -> io::Result<()> + 'a;

impl OfflineStore {
    /// Tells `line` every selected record in order, and every damaged place between them. Memory does not grow with their
    /// number, but for a key's.
    pub fn dump(&self, selection: &Selection, line: &mut Line<'_>) -> io::Result<()> {
        match selection {
            Selection::Offsets { from, to } => self.dump_range(*from, *to, line),
            Selection::Queue { topic, queue, from, max } => self.dump_queue(topic, *queue, *from, *max, line),
            Selection::Key { topic, key } => self.dump_key(topic, key, line),
        }
    }

    fn dump_range(&self, from: u64, to: u64, line: &mut Line<'_>) -> io::Result<()> {
        let mut result = Ok(());
        self.scan(from, &mut |at, place| {
            if at >= to {
                return ControlFlow::Break(());
            }
            result = match place {
                Place::Record(record) => line(Dumped::Record(record)),
                Place::Damage { fault, next } => line(Dumped::Damage(&self.damage(at, fault.reason, Some(next)))),
                Place::Missing { next } => {
                    line(Dumped::Damage(&self.damage(at, "a commit log file is missing".into(), Some(next))))
                }
                Place::End(Some(fault)) if !fault.unwritten => {
                    line(Dumped::Damage(&self.damage(at, fault.reason, None)))
                }
                Place::Blank { .. } | Place::End(_) => Ok(()),
            };
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        result
    }

    fn dump_queue(&self, topic: &str, queue: i32, from: i64, max: u64, line: &mut Line<'_>) -> io::Result<()> {
        let folder = self.queue_folder(topic, queue, self.topics.queue_type(topic));
        let files = self.queue_files(&folder)?;
        let files = files.map_err(|f| io::Error::other(format!("{}: {}", f.path.display(), f.what)))?;
        // In a plain queue a unit's place is its queue offset.
        let skip = if folder.kind == QueueType::Simple { from.max(0) as u64 } else { 0 };
        let (mut left, mut physical_end, mut result) = (max, 0, Ok(()));
        files.each(skip, &mut |_, _, unit| {
            if left == 0 || !unit.is_valid() || !unit.is_filler() && unit.physical_offset < physical_end {
                return ControlFlow::Break(());
            }
            // Fillers are nobody's messages, and of deleted messages only the unit is left.
            if !unit.is_filler() && unit.end() > from && unit.physical_offset >= self.log.min_offset() {
                physical_end = unit.physical_end();
                left -= 1;
                result = self.dump_one(unit.physical_offset, line);
            }
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        result
    }

    fn dump_key(&self, topic: &str, key: &str, line: &mut Line<'_>) -> io::Result<()> {
        let hash = key_hash(key_prefix(topic), key.as_bytes());
        for offset in self.find_key(hash)?.into_iter().filter(|offset| *offset >= self.log.min_offset()) {
            // Other keys have the same hash.
            if self.record(offset, |record| record.topic == topic && has_key(record, key)).unwrap_or(true) {
                self.dump_one(offset, line)?;
            }
        }
        Ok(())
    }

    fn dump_one(&self, offset: u64, line: &mut Line<'_>) -> io::Result<()> {
        match self.record(offset, |record| line(Dumped::Record(record))) {
            Ok(result) => result,
            Err(reason) => line(Dumped::Damage(&self.damage(offset, reason, None))),
        }
    }

    fn damage(&self, offset: u64, reason: String, next: Option<u64>) -> Damage {
        let (path, position) = self.place(offset);
        Damage { offset, path, position, reason, next }
    }
}

fn has_key(record: &RecordView<'_>, key: &str) -> bool {
    record.property(property::UNIQ_KEY) == Some(key)
        || record.property(property::KEYS).is_some_and(|keys| keys.split(' ').any(|k| k == key))
}
