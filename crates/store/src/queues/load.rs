//! Loading queues from their folders: which files are good and where the units end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rustix::fs::{Advice, SeekFrom};

use super::Queues;
use crate::OpenError;
use crate::commit_log::{file_name, offset_name};
use crate::consume_queue::ConsumeQueue;
use crate::ext::is_address;
use crate::file::StoreFile;
use crate::folders::sub_folders;
use crate::progress::Report;
use crate::read::{QueueType, Unit};
use crate::signal::side_by_side;

/// Threads that look at folders side by side, at most, and the folders that are worth one.
const MOST_LOADERS: usize = 32;
const FOLDERS_PER_LOADER: usize = 32;
/// Bytes of a block of the file system.
const BLOCK: usize = 4096;
/// Blocks of a file that is read at once.
const SHORT_FILE: u64 = 8;
/// Units read at once by a walk.
pub(super) const WALK_UNITS: usize = 3276;

/// How the end of a queue is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndSearch {
    /// Our own clean files: all units up to the end are good, zeros behind.
    Halving,
    /// Files of Java, whose old ends are not cleared, or of a crash: unit by unit from the third file from the end.
    Walking,
}

/// A queue there is a folder for.
struct Found {
    queue: Arc<ConsumeQueue>,
    dir: PathBuf,
}

impl Queues {
    /// Loads all queues from their folders. Queues that are damaged are removed; their number is the result, and the caller
    /// rebuilds them from the commit log.
    pub(crate) fn load(&self, search: EndSearch, min_physical: u64) -> Result<usize, OpenError> {
        fs::create_dir_all(self.root()).map_err(OpenError::io(self.root()))?;
        let found = self.find()?;
        let report = Mutex::new(Report::new(self.screen.clone()));
        let damaged = Mutex::new(Vec::new());
        let turn = AtomicUsize::new(0);
        let has_ext = self.ext_root.is_dir();
        let work = || {
            while let Some(Found { queue, dir }) = found.get(turn.fetch_add(1, Ordering::Relaxed)) {
                let loaded = turn.load(Ordering::Relaxed);
                report.lock().tick(|| format!("loading consume queues: {loaded} of {}", found.len()));
                match self.load_queue(queue, dir, search, has_ext) {
                    Ok(()) => self.correct_min(queue, min_physical),
                    Err(what) => damaged.lock().push((queue, dir, what)),
                }
            }
        };
        side_by_side(loaders(found.len()), &work);
        // Whoever reads one is to read it in the usual way.
        self.close_files();
        report.lock().done(|| format!("{} consume queues are loaded", found.len()));
        let damaged = damaged.into_inner();
        for (queue, dir, what) in &damaged {
            tracing::error!(dir = %dir.display(), what, "a consume queue is damaged; it is rebuilt from the commit log");
            self.delete_queue(queue).map_err(OpenError::io(dir))?;
        }
        Ok(damaged.len())
    }

    /// The queues there are folders for, in no order.
    fn find(&self) -> Result<Vec<Found>, OpenError> {
        let found = Mutex::new(Vec::new());
        for kind in [QueueType::Simple, QueueType::Batch] {
            let root = &self.folder(kind).root;
            let topics = sub_folders(root).map_err(OpenError::io(root))?;
            let failed = Mutex::new(None);
            let turn = AtomicUsize::new(0);
            let work = || {
                while let Some((topic, path)) = topics.get(turn.fetch_add(1, Ordering::Relaxed)) {
                    match self.find_in(topic, path, kind) {
                        Ok(queues) => found.lock().extend(queues),
                        Err(error) => *failed.lock() = Some(error),
                    }
                }
            };
            side_by_side(loaders(topics.len()), &work);
            if let Some(error) = failed.into_inner() {
                return Err(error);
            }
        }
        Ok(found.into_inner())
    }

    fn find_in(&self, topic: &str, path: &Path, kind: QueueType) -> Result<Vec<Found>, OpenError> {
        let folders = sub_folders(path).map_err(OpenError::io(path))?;
        let is_wrong = self.kinds.queue_type(topic) != kind && self.kinds.knows(topic);
        let mut found = Vec::with_capacity(folders.len());
        for (name, dir) in folders {
            let Ok(id) = name.parse() else { continue };
            if is_wrong {
                return Err(OpenError::bad(&dir, wrong_kind(kind)));
            }
            let queue = self.make(topic, id, kind);
            if queue.kind == kind {
                found.push(Found { queue, dir });
            } else {
                tracing::warn!(dir = %dir.display(), "left of a topic that is gone, and not loaded");
            }
        }
        Ok(found)
    }

    fn load_queue(
        &self,
        queue: &Arc<ConsumeQueue>,
        dir: &Path,
        search: EndSearch,
        has_ext: bool,
    ) -> Result<(), String> {
        let (unit_len, file_size) = (queue.kind.unit_len() as u64, self.folder(queue.kind).file_size);
        let files = list(dir, file_size)?;
        queue.state().files = files.clone();
        let found = match search {
            EndSearch::Halving => self.end_by_halving(queue, &files),
            EndSearch::Walking => self.end_by_walking(queue, &files),
        };
        let (end, last) = found.map_err(|e| e.to_string())?;
        let end_byte = end as u64 * unit_len;
        let next = end_byte.next_multiple_of(file_size).max(files.first().copied().unwrap_or(0) + 1);
        for start in files.iter().filter(|s| **s >= next) {
            if self.unit_in_file(queue, *start, 0).is_ok_and(|u| u.is_valid() && !u.is_filler()) {
                return Err(format!("units end at {end}, but file {} has some", file_name(*start)));
            }
        }
        let last_index = file_size / unit_len - 1;
        for start in files.iter().filter(|s| **s + file_size <= end_byte) {
            for index in [0, last_index] {
                if !self.unit_in_file(queue, *start, index).is_ok_and(|u| u.is_valid()) {
                    return Err(format!("file {} has an empty unit", file_name(*start)));
                }
            }
        }
        // Files behind the one that holds the end contain nothing.
        let (files, empty): (Vec<u64>, Vec<u64>) =
            files.iter().partition(|s| **s < end_byte || **s == end_byte && Some(*s) == files.first());
        for start in empty {
            fs::remove_file(dir.join(file_name(start))).map_err(|e| e.to_string())?;
            self.open.lock().close((queue.uid, start));
        }
        if search == EndSearch::Walking && self.has_unit_behind(queue, end, last.as_ref()).map_err(|e| e.to_string())? {
            return Err(format!("unit {end} is damaged"));
        }
        if let Some(start) = files.last().filter(|start| search == EndSearch::Walking && *start + file_size > end_byte)
        {
            // Old units behind the end would be found again once the end is looked for by halving.
            self.clear_from(queue, *start, end_byte).map_err(|e| e.to_string())?;
        }
        queue.reset(files, end, last);
        let points_to_ext = last.is_some_and(|unit| is_address(unit.tags_code));
        if has_ext || points_to_ext || self.extends(queue) { self.load_ext(queue, last.as_ref()) } else { Ok(()) }
    }

    /// Whether the file with the end has a unit behind it that goes on in the commit log: then the one at the end is damaged.
    fn has_unit_behind(&self, queue: &ConsumeQueue, end: i64, last: Option<&Unit>) -> io::Result<bool> {
        let unit_len = queue.kind.unit_len();
        let (start, at) = self.file_of(queue.kind, end);
        if !queue.state().files.contains(&start) {
            return Ok(false);
        }
        let file = self.open(queue, start)?;
        let mut rest = vec![0; data_end(&file, self.folder(queue.kind).file_size).saturating_sub(at) as usize];
        file.read_at(&mut rest, at)?;
        let from = last.map_or(0, Unit::physical_end);
        let mut units = rest.chunks_exact(unit_len).map(|raw| queue.kind.decode(end, raw));
        Ok(units.any(|unit| unit.is_valid() && !unit.is_filler() && unit.physical_offset >= from))
    }

    fn unit_in_file(&self, queue: &ConsumeQueue, start: u64, index: u64) -> io::Result<Unit> {
        let unit_len = queue.kind.unit_len();
        let file = self.open(queue, start)?;
        let mut raw = vec![0; unit_len];
        file.read_at(&mut raw, index * unit_len as u64)?;
        Ok(queue.kind.decode((start / unit_len as u64 + index) as i64, &raw))
    }

    /// Index after the last unit, and that unit.
    fn end_by_halving(&self, queue: &ConsumeQueue, files: &[u64]) -> io::Result<(i64, Option<Unit>)> {
        for start in files.iter().rev() {
            if let Some((index, last)) = self.last_in_file(queue, *start)? {
                return Ok((index + 1, Some(last)));
            }
        }
        Ok((files.first().map_or(0, |s| (*s / queue.kind.unit_len() as u64) as i64), None))
    }

    /// The last unit of a file whose units are good up to the end, with zeros behind, and its index. Nearly always it is in the
    /// part that was written last, so that one read finds it. Of a short file that is all of it: the first unit is needed next.
    fn last_in_file(&self, queue: &ConsumeQueue, start: u64) -> io::Result<Option<(i64, Unit)>> {
        let (unit_len, file_size) = (queue.kind.unit_len(), self.folder(queue.kind).file_size);
        let per_block = (BLOCK / unit_len) as u64;
        let file = self.open(queue, start)?;
        // The kernel would read ahead into the hole behind the units and fill memory with zeros. Nothing depends on the advice.
        let _ = rustix::fs::fadvise(file.file(), 0, None, Advice::Random);
        let units = data_end(&file, file_size).div_ceil(unit_len as u64);
        let to = units.min(file_size / unit_len as u64);
        let (mut from, mut to) = (if to <= per_block * SHORT_FILE { 0 } else { to - per_block }, to);
        loop {
            let mut part = vec![0; (to - from) as usize * unit_len];
            file.read_at(&mut part, from * unit_len as u64)?;
            let first = (start / unit_len as u64 + from) as i64;
            let mut backwards = part.chunks_exact(unit_len).enumerate().rev().map(|(n, raw)| {
                let at = first + n as i64;
                (at, queue.kind.decode(at, raw))
            });
            // Damaged ones among them are passed over.
            match backwards.find(|(_, unit)| unit.is_valid()) {
                Some(last) => return Ok(Some(last)),
                None if from == 0 => return Ok(None),
                // The end is before this part.
                None => to = from,
            }
            let (mut good, mut bad) = (0, to);
            while bad - good > per_block {
                let middle = good + (bad - good) / 2;
                if self.unit_in_file(queue, start, middle)?.is_valid() {
                    good = middle;
                } else {
                    bad = middle;
                }
            }
            (from, to) = (good, bad);
        }
    }

    /// Index after the last unit, and that unit.
    fn end_by_walking(&self, queue: &ConsumeQueue, files: &[u64]) -> io::Result<(i64, Option<Unit>)> {
        let (unit_len, file_size) = (queue.kind.unit_len(), self.folder(queue.kind).file_size);
        let mut last: Option<Unit> = None;
        let from = files.len().saturating_sub(3);
        let mut chunk = vec![0; WALK_UNITS * unit_len];
        for start in files.iter().skip(from) {
            let file = self.open(queue, *start)?;
            let mut at = 0;
            while at < file_size {
                let want = chunk.len().min((file_size - at) as usize);
                file.read_at(&mut chunk[..want], at)?;
                let first = ((start + at) / unit_len as u64) as i64;
                for (raw, index) in chunk[..want].chunks_exact(unit_len).zip(first..) {
                    let unit = queue.kind.decode(index, raw);
                    // Old units behind an end that was never cleared go back in the commit log.
                    let follows = last.is_none_or(|l| unit.is_filler() || unit.physical_offset >= l.physical_end());
                    if !unit.is_valid() || !follows {
                        return Ok((index, last));
                    }
                    if !unit.is_filler() {
                        last = Some(unit);
                    }
                }
                at += want as u64;
            }
        }
        let end = files.last().map_or(0, |s| ((s + file_size) / unit_len as u64) as i64);
        Ok((end, last))
    }
}

/// Loaders wait for the disk, not for a processor.
fn loaders(folders: usize) -> usize {
    (folders / FOLDERS_PER_LOADER).min(MOST_LOADERS)
}

/// Where the written part of a sparse file ends; its size when the file system cannot tell.
pub(super) fn data_end(file: &StoreFile, size: u64) -> u64 {
    rustix::fs::seek(file.file(), SeekFrom::Hole(0)).map_or(size, |end| end.min(size))
}

fn wrong_kind(kind: QueueType) -> String {
    let (is, should) = match kind {
        QueueType::Simple => ("plain consume queue", "BatchCQ"),
        QueueType::Batch => ("batch consume queue", "not BatchCQ"),
    };
    format!(
        "this is a {is}, but by config/topics.json the topic is {should}; put the topic's queue.type right, or move the folder \
         away if the topic was made anew as the other kind"
    )
}

/// The files of a queue by their first byte; an empty one at the end, which a crash leaves, is removed.
pub(super) fn list(dir: &Path, file_size: u64) -> Result<Vec<u64>, String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(|e| e.to_string())? {
        let entry = entry.map_err(|e| e.to_string())?;
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            continue;
        }
        let start = offset_name(&entry.path()).ok_or("a file's name is no offset")?;
        files.push((start, entry.metadata().map_err(|e| e.to_string())?.len()));
    }
    files.sort_unstable();
    if let Some((start, 0)) = files.last().copied() {
        fs::remove_file(dir.join(file_name(start))).map_err(|e| e.to_string())?;
        files.pop();
    }
    for pair in files.windows(2) {
        if pair[0].0 + file_size != pair[1].0 {
            return Err(format!("no file from {} on", pair[0].0 + file_size));
        }
    }
    match files.iter().find(|(start, len)| *len != file_size || start % file_size != 0) {
        Some((start, len)) => Err(format!("file {} has {len} bytes instead of {}", file_name(*start), file_size)),
        None => Ok(files.into_iter().map(|(start, _)| start).collect()),
    }
}
