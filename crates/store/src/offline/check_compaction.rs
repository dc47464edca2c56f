//! Checking compacted logs: every unit against its record.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::OfflineStore;
use super::check_log::Seen;
use super::findings::{Finding, Findings, Remedy};
use crate::batch_unit::{BATCH_UNIT, BatchUnit};
use crate::commit_log::{file_name, offset_name};
use crate::folders::queue_folders;
use crate::walk::{Checksums, look};

impl OfflineStore {
    pub(super) fn check_compaction(&self, seen: &Seen, found: &mut Findings) -> io::Result<()> {
        let root = self.config.root.join("compaction");
        for (topic, id, log) in queue_folders(&root.join("compactionLog"))? {
            let queue = root.join("compactionCq").join(&topic).join(id.to_string());
            // What the commit log still has is copied again.
            let copied_from = seen.queue(&topic, id).map_or(i64::MAX, |queue| queue.first);
            let mut next = 0;
            for start in starts(&log)? {
                let (log, queue) = (log.join(file_name(start)), queue.join(file_name(start)));
                if !queue.is_file() {
                    let what = "its file of units is missing";
                    found.add(Finding::new("incomplete pair of a compacted log", Remedy::NextStart, &log, what));
                    continue;
                }
                let place = Pair { topic: &topic, id, copied_from, start, log, queue };
                next = place.check(next, found)?;
            }
        }
        Ok(())
    }
}

/// A file of a compacted log and the file of its units.
struct Pair<'a> {
    topic: &'a str,
    id: i32,
    /// The commit log has the messages from here on.
    copied_from: i64,
    start: u64,
    log: PathBuf,
    queue: PathBuf,
}

impl Pair<'_> {
    /// Checks the units, of which the first must be at `next` in the queue or later; returns where the next pair goes on.
    fn check(&self, mut next: i64, found: &mut Findings) -> io::Result<i64> {
        let log = File::open(&self.log)?;
        let units = fs::read(&self.queue)?;
        for (raw, position) in units.chunks_exact(BATCH_UNIT).zip((0..).step_by(BATCH_UNIT)) {
            let Some(unit) = BatchUnit::decode(raw) else { break };
            found.totals.compacted += 1;
            if let Err(what) = self.check_unit(&log, &unit, next) {
                let remedy = if unit.base >= self.copied_from { Remedy::NextStart } else { Remedy::Lost };
                let finding = Finding::new("damage in a compacted log", remedy, &self.queue, what);
                found.add(finding.at(position).offset(unit.base as u64));
            }
            next = unit.end();
        }
        Ok(next)
    }

    fn check_unit(&self, log: &File, unit: &BatchUnit, next: i64) -> Result<(), String> {
        let at = unit.physical_offset;
        let in_file = at.checked_sub(self.start).ok_or_else(|| format!("its record at {at} is before its file"))?;
        let len = log.metadata().map_err(|error| error.to_string())?.len();
        if in_file + u64::from(unit.size) > len {
            return Err(format!("its record at {at} is behind the end of its file"));
        }
        let mut bytes = vec![0; unit.size as usize];
        log.read_exact_at(&mut bytes, in_file).map_err(|error| format!("its record at {at}: {error}"))?;
        let record = match look(&bytes, at, Checksums::Body) {
            Ok(Some(record)) => record,
            Ok(None) => return Err(format!("no record at {at}")),
            Err(fault) => return Err(format!("its record at {at}: {}", fault.reason)),
        };
        if record.topic != self.topic || record.queue_id != self.id || record.queue_offset != unit.base {
            let (topic, id, offset) = (record.topic, record.queue_id, record.queue_offset);
            return Err(format!("the record at {at} is number {offset} of queue {id} of {topic}"));
        }
        if unit.base < next {
            return Err(format!("number {} comes after {}", unit.base, next - 1));
        }
        Ok(())
    }
}

/// The first bytes of the files in a folder, ascending.
fn starts(dir: &Path) -> io::Result<Vec<u64>> {
    let mut starts = Vec::new();
    for entry in fs::read_dir(dir)? {
        starts.extend(offset_name(&entry?.path()));
    }
    starts.sort_unstable();
    Ok(starts)
}
