//! Loading queues from their folders: which files are good and where the units end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Queues;
use crate::OpenError;
use crate::commit_log::file_name;
use crate::consume_queue::{ConsumeQueue, UNIT, decode_unit};
use crate::progress::Report;
use crate::read::Unit;

/// How the end of a queue is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndSearch {
    /// Our own clean files: all units up to the end are good, zeros behind.
    Halving,
    /// Files of Java, whose old ends are not cleared, or of a crash: unit by unit from the third file from the end.
    Walking,
}

impl Queues {
    /// Loads all queues from their folders. Queues that are damaged are removed; their number is the result, and the caller
    /// rebuilds them from the commit log.
    pub(crate) fn load(&self, search: EndSearch) -> Result<usize, OpenError> {
        fs::create_dir_all(&self.root).map_err(OpenError::io(&self.root))?;
        let mut damaged = 0;
        let mut loaded = 0;
        let mut report = Report::new(self.screen.clone());
        for topic in sub_dirs(&self.root)? {
            let Some(name) = topic.file_name().and_then(|n| n.to_str()) else { continue };
            for dir in sub_dirs(&topic)? {
                let id = dir.file_name().and_then(|n| n.to_str()).and_then(|n| n.parse::<i32>().ok());
                let Some(id) = id else { continue };
                let queue = self.get_or_make(name, id);
                report.tick(|| format!("loading consume queues: {loaded} so far, now topic {name}"));
                loaded += 1;
                if let Err(what) = self.load_queue(&queue, &dir, search) {
                    tracing::error!(dir = %dir.display(), what, "a consume queue is damaged; it is rebuilt from the commit log");
                    self.delete_queue(&queue).map_err(OpenError::io(&dir))?;
                    damaged += 1;
                }
            }
        }
        report.done(|| format!("{loaded} consume queues are loaded"));
        Ok(damaged)
    }

    fn load_queue(&self, queue: &ConsumeQueue, dir: &Path, search: EndSearch) -> Result<(), String> {
        let files = self.list(dir)?;
        queue.state().files = files.clone();
        let found = match search {
            EndSearch::Halving => self.end_by_halving(queue, &files),
            EndSearch::Walking => self.end_by_walking(queue, &files),
        };
        let (end, last) = found.map_err(|e| e.to_string())?;
        let next =
            (end as u64 * UNIT as u64).next_multiple_of(self.file_size).max(files.first().copied().unwrap_or(0) + 1);
        for start in files.iter().filter(|s| **s >= next) {
            if self.unit_in_file(queue, *start, 0).is_ok_and(|u| u.is_valid() && !u.is_filler()) {
                return Err(format!("units end at {end}, but file {} has some", file_name(*start)));
            }
        }
        let last_index = self.file_size / UNIT as u64 - 1;
        for start in files.iter().filter(|s| **s + self.file_size <= end as u64 * UNIT as u64) {
            for index in [0, last_index] {
                if !self.unit_in_file(queue, *start, index).is_ok_and(|u| u.is_valid()) {
                    return Err(format!("file {} has an empty unit", file_name(*start)));
                }
            }
        }
        // Files behind the one that holds the end contain nothing.
        let keep = end as u64 * UNIT as u64;
        let (files, empty): (Vec<u64>, Vec<u64>) =
            files.iter().partition(|s| **s < keep || **s == keep && Some(*s) == files.first());
        for start in empty {
            fs::remove_file(dir.join(file_name(start))).map_err(|e| e.to_string())?;
            self.open.lock().close((queue.uid, start));
        }
        queue.reset(files, end, last.map_or(0, |u| u.physical_end()));
        Ok(())
    }

    fn list(&self, dir: &Path) -> Result<Vec<u64>, String> {
        let mut files = Vec::new();
        for entry in fs::read_dir(dir).map_err(|e| e.to_string())? {
            let entry = entry.map_err(|e| e.to_string())?;
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                continue;
            }
            let name = entry.file_name();
            let start: u64 = name.to_str().and_then(|n| n.parse().ok()).ok_or("a file's name is no offset")?;
            files.push((start, entry.metadata().map_err(|e| e.to_string())?.len()));
        }
        files.sort_unstable();
        if let Some((start, 0)) = files.last().copied() {
            fs::remove_file(dir.join(file_name(start))).map_err(|e| e.to_string())?;
            files.pop();
        }
        for pair in files.windows(2) {
            if pair[0].0 + self.file_size != pair[1].0 {
                return Err(format!("no file from {} on", pair[0].0 + self.file_size));
            }
        }
        match files.iter().find(|(start, len)| *len != self.file_size || start % self.file_size != 0) {
            Some((start, len)) => {
                Err(format!("file {} has {len} bytes instead of {}", file_name(*start), self.file_size))
            }
            None => Ok(files.into_iter().map(|(start, _)| start).collect()),
        }
    }

    fn unit_in_file(&self, queue: &ConsumeQueue, start: u64, index: u64) -> io::Result<Unit> {
        let file = self.open(queue, start)?;
        let mut raw = [0; UNIT];
        file.read_at(&mut raw, index * UNIT as u64)?;
        Ok(decode_unit((start / UNIT as u64 + index) as i64, &raw))
    }

    fn end_by_halving(&self, queue: &ConsumeQueue, files: &[u64]) -> io::Result<(i64, Option<Unit>)> {
        for start in files.iter().rev() {
            if !self.unit_in_file(queue, *start, 0)?.is_valid() {
                continue;
            }
            let (mut good, mut bad) = (0, self.file_size / UNIT as u64);
            while bad - good > 1 {
                let middle = good + (bad - good) / 2;
                if self.unit_in_file(queue, *start, middle)?.is_valid() {
                    good = middle;
                } else {
                    bad = middle;
                }
            }
            let last = self.unit_in_file(queue, *start, good)?;
            return Ok((last.queue_offset + 1, Some(last)));
        }
        Ok((files.first().map_or(0, |s| (*s / UNIT as u64) as i64), None))
    }

    fn end_by_walking(&self, queue: &ConsumeQueue, files: &[u64]) -> io::Result<(i64, Option<Unit>)> {
        let mut last: Option<Unit> = None;
        let from = files.len().saturating_sub(3);
        let mut chunk = vec![0; 3276 * UNIT];
        for start in &files[from..] {
            let file = self.open(queue, *start)?;
            let mut at = 0;
            while at < self.file_size {
                let want = chunk.len().min((self.file_size - at) as usize);
                file.read_at(&mut chunk[..want], at)?;
                let first = ((start + at) / UNIT as u64) as i64;
                for (raw, offset) in chunk[..want].chunks_exact(UNIT).zip(first..) {
                    let unit = decode_unit(offset, raw);
                    // Old units behind an end that was never cleared go back in the commit log.
                    let follows = last.is_none_or(|l| unit.physical_offset >= l.physical_end());
                    if !unit.is_valid() || !follows {
                        return Ok((offset, last));
                    }
                    last = Some(unit);
                }
                at += want as u64;
            }
        }
        let end = files.last().map_or(0, |s| ((s + self.file_size) / UNIT as u64) as i64);
        Ok((end, last))
    }
}

fn sub_dirs(dir: &Path) -> Result<Vec<PathBuf>, OpenError> {
    let mut dirs = Vec::new();
    for entry in fs::read_dir(dir).map_err(OpenError::io(dir))? {
        let entry = entry.map_err(OpenError::io(dir))?;
        if entry.file_type().map_err(OpenError::io(dir))?.is_dir() {
            dirs.push(entry.path());
        }
    }
    Ok(dirs)
}
