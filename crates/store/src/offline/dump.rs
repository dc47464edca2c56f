//! Showing records one by one.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use protocol::record::{RecordView, property};

use super::OfflineStore;
use super::check_queue::queue_files;
use super::scan::Place;
use crate::commit_log::file_name;
use crate::index::{key_hash, key_prefix};
use crate::{QueueType, TopicKinds};

/// Units read at once.
const CHUNK: u64 = 3276;

/// Which records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Those that start in this range of commit log offsets, `to` exclusive.
    Offsets { from: u64, to: u64 },
    /// `max` of a queue from a queue offset on, as its consume queue has them.
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
        let kind = self.topics.queue_type(topic);
        let (root, size) = self.config.queue_folder(kind);
        let dir = root.join(topic).join(queue.to_string());
        let files =
            queue_files(&dir, size)?.map_err(|f| io::Error::other(format!("{}: {}", f.path.display(), f.what)))?;
        let unit_len = kind.unit_len() as u64;
        let per_file = size / unit_len;
        let first = files.first().map_or(0, |start| start / unit_len);
        // In a batch queue the place of an offset is not known.
        let mut next = if kind == QueueType::Simple { first.max(from.max(0) as u64) } else { first };
        let mut left = max;
        let mut physical_end = 0;
        let mut chunk = vec![0; (CHUNK * unit_len) as usize];
        while left > 0 {
            let start = (next / per_file) * size;
            if !files.contains(&start) {
                return Ok(());
            }
            let want = CHUNK.min(per_file - next % per_file);
            let raw = chunk.get_mut(..(want * unit_len) as usize).unwrap_or_default();
            File::open(dir.join(file_name(start)))?.read_exact_at(raw, next * unit_len - start)?;
            for (raw, index) in raw.chunks_exact(unit_len as usize).zip(next as i64..) {
                let unit = kind.decode(index, raw);
                if left == 0 || !unit.is_valid() || !unit.is_filler() && unit.physical_offset < physical_end {
                    return Ok(());
                }
                // Fillers are nobody's messages, and of deleted messages only the unit is left.
                if !unit.is_filler() && unit.end() > from && unit.physical_offset >= self.log.min_offset() {
                    physical_end = unit.physical_end();
                    self.dump_one(unit.physical_offset, line)?;
                    left -= 1;
                }
            }
            next += want;
        }
        Ok(())
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
