//! The files of one compacted log: names, sizes, and the pairs they come in.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::batch_unit::{BATCH_UNIT, BatchUnit};
use crate::commit_log::{file_name, offset_name};
use crate::file::{Faults, StoreFile, replace, sync_names};
use crate::folders::{entries, if_there};

/// Sub-folder in which a round builds its files.
const COMPACTING: &str = "compacting";

/// Bytes of each file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) log: u64,
    pub(super) queue: u64,
}

impl Sizes {
    /// What Java makes of the two configured sizes: whole units, and a log of at least five queue files' length.
    pub(super) fn new(log: u64, queue: u64) -> Self {
        let unit = BATCH_UNIT as u64;
        // One unit is the end mark's.
        let queue = (queue / unit).max(2) * unit;
        let (times, rest) = (log / queue, log % queue);
        let log = match times {
            0..5 => 5 * queue,
            _ if rest > 0 && rest < queue / 2 => times * queue,
            _ => (times + 1) * queue,
        };
        Sizes { log, queue }
    }
}

/// The two folders of a log.
#[derive(Clone)]
pub(super) struct Folder {
    pub(super) log: PathBuf,
    pub(super) queue: PathBuf,
    pub(super) faults: Option<Arc<dyn Faults>>,
}

impl Folder {
    pub(super) fn compacting(&self) -> Folder {
        let faults = self.faults.clone();
        Folder { log: self.log.join(COMPACTING), queue: self.queue.join(COMPACTING), faults }
    }

    pub(super) fn log_file(&self, start: u64) -> PathBuf {
        self.log.join(file_name(start))
    }

    pub(super) fn queue_file(&self, start: u64) -> PathBuf {
        self.queue.join(file_name(start))
    }

    /// Makes the folders. Their names are on the disk then.
    pub(super) fn create(&self) -> io::Result<()> {
        for dir in [&self.log, &self.queue] {
            if !dir.is_dir() {
                fs::create_dir_all(dir)?;
                // `compaction/<kind>/<topic>/<queue>`: any of them may be new.
                dir.ancestors().skip(1).take(4).try_for_each(|dir| sync_names(dir, &self.faults))?;
            }
        }
        Ok(())
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        sync_names(&self.log, &self.faults)?;
        sync_names(&self.queue, &self.faults)
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        for dir in [&self.log, &self.queue] {
            self.before_change(dir)?;
            if_there(fs::remove_dir_all(dir))?;
        }
        Ok(())
    }

    pub(super) fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.before_change(path)?;
        if_there(fs::remove_file(path)).map(|_| ())
    }

    /// Removes both files of a pair.
    pub(super) fn remove_pair(&self, start: u64) -> io::Result<()> {
        self.remove_file(&self.log_file(start))?;
        self.remove_file(&self.queue_file(start))
    }

    pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.before_change(to)?;
        fs::rename(from, to)
    }

    fn before_change(&self, path: &Path) -> io::Result<()> {
        self.faults.as_ref().map_or(Ok(()), |faults| faults.before_change(path))
    }

    /// [`replace`] with this folder's hooks.
    pub(super) fn replace(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        replace(path, content, &self.faults)
    }

    pub(super) fn open(&self, path: &Path) -> io::Result<StoreFile> {
        StoreFile::open(path, self.faults.clone())
    }

    /// First offsets of the files in a folder, ascending. A file of another size is an error: the configuration was changed.
    pub(super) fn starts(dir: &Path, size: u64) -> io::Result<Vec<u64>> {
        let mut starts = Vec::new();
        for entry in entries(dir)? {
            let entry = entry?;
            let Some(start) = offset_name(&entry.path()) else { continue };
            match entry.metadata()?.len() {
                len if len == size => starts.push(start),
                // Created, and then the machine died.
                0 => fs::remove_file(entry.path())?,
                len => {
                    let path = entry.path().display().to_string();
                    let what = format!("{path} is {len} bytes long, but the configured sizes make it {size}");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
            }
        }
        starts.sort_unstable();
        Ok(starts)
    }
}

/// A file of records and the file of their units; both are named after the first byte of the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) start: u64,
    /// End of the last record, in the log.
    pub(super) end: u64,
    pub(super) units: u64,
    /// Queue offset of the first record.
    pub(super) first: i64,
    /// Queue offset of the last record.
    pub(super) last: i64,
}

impl Pair {
    pub(super) fn empty(start: u64) -> Self {
        Pair { start, end: start, units: 0, first: -1, last: -1 }
    }

    /// Queue offset after the last record; without one, `before`.
    pub(super) fn next_or(&self, before: i64) -> i64 {
        if self.units > 0 { self.last + 1 } else { before }
    }

    /// Whether a unit goes on behind the last record. Damaged ones between may have been left out.
    pub(super) fn is_followed_by(&self, unit: &BatchUnit) -> bool {
        unit.physical_offset >= self.end && (self.units == 0 || unit.base > self.last)
    }

    pub(super) fn add(&mut self, unit: &BatchUnit) {
        if self.units == 0 {
            self.first = unit.base;
        }
        self.last = unit.base;
        self.end = unit.physical_end();
        self.units += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_java_s_sizes() {
        // 104857460 is the size Java 5.4.0 gives its files by default.
        assert_eq!(Sizes::new(104_857_600, 10_485_760), Sizes { log: 104_857_460, queue: 10_485_746 });
        assert_eq!(Sizes::new(1000, 4600), Sizes { log: 23_000, queue: 4600 }, "five queue files at least");
        assert_eq!(Sizes::new(46_000, 4600), Sizes { log: 50_600, queue: 4600 }, "an exact multiple grows");
        assert_eq!(Sizes::new(46_100, 4600), Sizes { log: 46_000, queue: 4600 }, "a small rest is dropped");
        assert_eq!(Sizes::new(49_000, 4600), Sizes { log: 50_600, queue: 4600 }, "a large rest grows");
        assert_eq!(Sizes::new(0, 0), Sizes { log: 460, queue: 92 });
    }
}
