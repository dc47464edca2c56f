//! The files of the commit log: one run of bytes cut into files of one size, each named after its first offset.

use std::fs;
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use rustix::fs::{Advice, FallocateFlags};

use crate::file::{Faults, StoreFile};
use crate::folders::entries;
use crate::mmap::ReadMap;
use crate::{OpenError, StoreConfig};

/// Java's name of a file that starts at `offset`.
pub(crate) fn file_name(offset: u64) -> String {
    format!("{offset:020}")
}

/// Bytes before the end of the log whose pages stay mapped.
const KEEP_MAPPED: u64 = 64 << 20;

/// One file.
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) file: StoreFile,
    map: OnceLock<ReadMap>,
    /// The name is known to be on the disk.
    named: AtomicBool,
}

impl Segment {
    pub(crate) fn new(start: u64, size: u64, file: StoreFile, named: bool) -> Self {
        Segment { start, size, file, map: OnceLock::new(), named: AtomicBool::new(named) }
    }

    pub(crate) fn end(&self) -> u64 {
        self.start + self.size
    }

    /// The whole file, mapped at first use.
    pub(crate) fn bytes(&self) -> io::Result<&Bytes> {
        if let Some(map) = self.map.get() {
            return Ok(map.bytes());
        }
        let map = ReadMap::new(self.file.file(), self.size as usize)?;
        Ok(self.map.get_or_init(|| map).bytes())
    }

    /// Which pages of `len` bytes from `offset` on, where a page begins, are in memory. Nothing when the file cannot be mapped.
    pub(crate) fn resident(&self, offset: u64, len: u64) -> Vec<bool> {
        match (self.bytes(), self.map.get()) {
            (Ok(_), Some(map)) => map.resident((offset - self.start) as usize, len as usize),
            _ => Vec::new(),
        }
    }

    /// Syncs the data, and the folder when the file is new.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync()?;
        if !self.named.load(Ordering::Acquire) {
            if let Some(dir) = self.file.path().parent() {
                self.file.sync_names(dir)?;
            }
            self.named.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Syncs the folder the file was removed from: a crash could bring it back without those after it, or in the place of a new
    /// one.
    fn sync_removal(&self) -> io::Result<()> {
        self.file.path().parent().map_or(Ok(()), |dir| self.file.sync_names(dir))
    }

    /// Makes everything from `offset` on zeros again, so that a later recovery cannot take leftovers for records.
    pub(crate) fn clear_from(&self, offset: u64) -> io::Result<()> {
        self.file.file().set_len(offset - self.start)?;
        self.file.file().set_len(self.size)
    }

    /// The same without a change of the size, while readers use what is before.
    fn punch_from(&self, offset: u64) -> io::Result<()> {
        let at = offset.max(self.start) - self.start;
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(self.file.file(), how, at, self.size - at)?)
    }
}

pub(crate) struct CommitLog {
    dirs: Vec<PathBuf>,
    read_only: Vec<PathBuf>,
    pub(crate) file_size: u64,
    faults: Option<Arc<dyn Faults>>,
    /// Ascending; holes are possible in stores that were repaired by hand.
    segments: RwLock<Vec<Arc<Segment>>>,
    prepared: Mutex<Option<Arc<Segment>>>,
    /// Folders that get no new file for now because their disk is nearly full.
    full_dirs: Mutex<Vec<PathBuf>>,
}

impl CommitLog {
    /// Lists and opens the files. An empty last file is removed, a file of another size is an error.
    pub(crate) fn load(config: &StoreConfig) -> Result<Self, OpenError> {
        let dirs = config.commit_log_dirs();
        let mut paths = Vec::new();
        for dir in &dirs {
            fs::create_dir_all(dir).map_err(OpenError::io(dir))?;
        }
        for dir in dirs.iter().chain(&config.read_only_commit_log_paths) {
            list_files(dir, &mut paths)?;
        }
        paths.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
        paths.dedup();
        if let Some(last) = paths.last()
            && fs::metadata(last).map_err(OpenError::io(last))?.len() == 0
        {
            fs::remove_file(last).map_err(OpenError::io(last))?;
            paths.pop();
        }
        let mut segments: Vec<Arc<Segment>> = Vec::with_capacity(paths.len());
        for path in &paths {
            let segment = load_segment(path, config)?;
            if let Some(before) = segments.last() {
                if segment.start < before.end() {
                    return Err(OpenError::bad(path, format!("overlaps {}", before.file.path().display())));
                }
                if segment.start > before.end() {
                    tracing::warn!(path = %path.display(), missing_from = before.end(), "a commit log file is missing before this one");
                }
            }
            segments.push(Arc::new(segment));
        }
        Ok(Self::of(config, segments))
    }

    /// A log of these files, ascending.
    pub(crate) fn of(config: &StoreConfig, segments: Vec<Arc<Segment>>) -> Self {
        CommitLog {
            dirs: config.commit_log_dirs(),
            read_only: config.read_only_commit_log_paths.clone(),
            file_size: config.commit_log_file_size,
            faults: config.faults.clone(),
            segments: RwLock::new(segments),
            prepared: Mutex::new(None),
            full_dirs: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn dirs(&self) -> &[PathBuf] {
        &self.dirs
    }

    pub(crate) fn segments(&self) -> Vec<Arc<Segment>> {
        self.segments.read().clone()
    }

    /// Start of the first file; 0 without files.
    pub(crate) fn min_offset(&self) -> u64 {
        self.segments.read().first().map_or(0, |s| s.start)
    }

    /// The file that holds `offset`.
    pub(crate) fn segment_at(&self, offset: u64) -> Option<Arc<Segment>> {
        let segments = self.segments.read();
        let first = segments.first()?;
        let guess = (offset.checked_sub(first.start)? / self.file_size) as usize;
        if let Some(segment) = segments.get(guess)
            && segment.start <= offset
            && offset < segment.end()
        {
            return Some(segment.clone());
        }
        let at = segments.partition_point(|s| s.start <= offset).checked_sub(1)?;
        segments.get(at).filter(|s| offset < s.end()).cloned()
    }

    /// A slice of the mapped file; `None` when the range is not in one file.
    pub(crate) fn slice(&self, offset: u64, len: usize) -> Option<Bytes> {
        let segment = self.segment_at(offset)?;
        let at = (offset - segment.start) as usize;
        let end = at.checked_add(len).filter(|end| *end as u64 <= segment.size)?;
        Some(segment.bytes().ok()?.slice(at..end))
    }

    /// Begins to bring a range into memory.
    pub(crate) fn read_ahead(&self, offset: u64, len: u64) {
        if let (Some(segment), Some(len)) = (self.segment_at(offset), NonZeroU64::new(len)) {
            let _ = rustix::fs::fadvise(segment.file.file(), offset - segment.start, Some(len), Advice::WillNeed);
        }
    }

    /// Reads a range with a read call, which for data that is not in memory costs less than faults and cannot kill the process.
    pub(crate) fn read_copy(&self, offset: u64, len: usize) -> Option<Bytes> {
        let segment = self.segment_at(offset)?;
        let at = offset - segment.start;
        if at + len as u64 > segment.size {
            return None;
        }
        let mut buf = vec![0; len];
        match segment.file.read_at(&mut buf, at) {
            Ok(n) if n == len => Some(buf.into()),
            Ok(_) => None,
            Err(error) => {
                tracing::error!(path = %segment.file.path().display(), at, %error, "reading the commit log failed");
                None
            }
        }
    }

    /// The file to write `offset` into; made when `offset` is the end of the last one.
    pub(crate) fn segment_for_write(&self, offset: u64) -> io::Result<Arc<Segment>> {
        if let Some(segment) = self.segment_at(offset) {
            return Ok(segment);
        }
        let start = offset - offset % self.file_size;
        let segment = match self.prepared.lock().take().filter(|s| s.start == start) {
            Some(segment) => segment,
            None => Arc::new(self.create(start)?),
        };
        self.segments.write().push(segment.clone());
        Ok(segment)
    }

    /// Makes the file after the one that holds `written` ready, once that one is half full.
    pub(crate) fn prepare_next(&self, written: u64) {
        let start = written - written % self.file_size;
        let next = start + self.file_size;
        if written - start < self.file_size / 2 || self.segment_at(next).is_some() {
            return;
        }
        if self.prepared.lock().as_ref().is_some_and(|s| s.start == next) {
            return;
        }
        match self.create(next) {
            Ok(segment) => *self.prepared.lock() = Some(Arc::new(segment)),
            // It is tried again when it is needed, and reported to the sender then.
            Err(error) => tracing::warn!(%error, "cannot prepare the next commit log file"),
        }
    }

    fn create(&self, start: u64) -> io::Result<Segment> {
        let full = self.full_dirs.lock().clone();
        let usable = |dir: &&PathBuf| !self.read_only.contains(dir);
        let mut dirs: Vec<&PathBuf> = self.dirs.iter().filter(usable).filter(|d| !full.contains(d)).collect();
        if dirs.is_empty() {
            dirs = self.dirs.iter().filter(usable).collect();
        }
        dirs.sort();
        let turn = (start / self.file_size) as usize % dirs.len().max(1);
        let dir = dirs.get(turn).ok_or_else(|| io::Error::other("every commit log folder is read-only"))?;
        let path = dir.join(file_name(start));
        let file = StoreFile::create(&path, self.file_size, self.faults.clone())?;
        Ok(Segment::new(start, self.file_size, file, false))
    }

    /// Lets go of the pages of what lies behind by more than `KEEP_MAPPED`, which few read: they would count as this process'
    /// memory, all of the log once it has been read.
    pub(crate) fn release_pages(&self, written: u64) {
        let until = written.saturating_sub(KEEP_MAPPED);
        // Not under the lock: this may take long, and a writer needs the lock for its next file.
        for segment in self.segments().iter().take_while(|segment| segment.start < until) {
            if let Some(map) = segment.map.get() {
                map.release((until - segment.start).min(segment.size) as usize);
            }
        }
    }

    pub(crate) fn set_full_dirs(&self, dirs: Vec<PathBuf>) {
        *self.full_dirs.lock() = dirs;
    }

    /// Cuts the log: files that start at or after `end` are removed, the rest of the one that holds it is cleared.
    pub(crate) fn truncate(&self, end: u64) -> io::Result<()> {
        let mut segments = self.segments.write();
        let behind = |s: &Arc<Segment>, more: bool| s.start > end || s.start == end && more;
        while let Some(last) = segments.last().filter(|s| behind(s, segments.len() > 1)) {
            tracing::info!(path = %last.file.path().display(), "removing a commit log file behind the end");
            fs::remove_file(last.file.path())?;
            last.sync_removal()?;
            segments.pop();
        }
        if let Some(last) = segments.last().filter(|s| s.start <= end && end < s.end()) {
            last.clear_from(end)?;
        }
        Ok(())
    }

    /// After a refused write: what it left behind `written` must not be found by a later recovery. Needs no space on the disk.
    pub(crate) fn erase_refused(&self, written: u64) {
        for segment in self.segments.read().iter().rev().take_while(|s| s.end() > written) {
            if let Err(error) = segment.punch_from(written) {
                tracing::warn!(path = %segment.file.path().display(), %error, "cannot erase what a refused write left");
            }
        }
    }

    /// Removes the first file. Readers that hold slices of it keep its pages.
    pub(crate) fn remove_first(&self) -> io::Result<()> {
        let first = {
            let segments = self.segments.read();
            if segments.len() < 2 {
                return Ok(());
            }
            segments[0].clone()
        };
        fs::remove_file(first.file.path())?;
        self.segments.write().retain(|s| s.start != first.start);
        first.sync_removal()
    }

    /// Removes a prepared file that was not needed.
    pub(crate) fn drop_prepared(&self) {
        if let Some(prepared) = self.prepared.lock().take() {
            let _ = fs::remove_file(prepared.file.path());
        }
    }
}

pub(crate) fn list_files(dir: &Path, into: &mut Vec<PathBuf>) -> Result<(), OpenError> {
    for entry in entries(dir).map_err(OpenError::io(dir))? {
        let entry = entry.map_err(OpenError::io(dir))?;
        if !entry.file_type().map_err(OpenError::io(dir))?.is_dir() {
            into.push(entry.path());
        }
    }
    Ok(())
}

/// The offset a file is named after: digits, and no more than Java's 63 bits.
pub(crate) fn offset_name(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str().filter(|name| name.bytes().all(|b| b.is_ascii_digit()))?;
    name.parse().ok().filter(|offset| *offset <= i64::MAX as u64)
}

fn load_segment(path: &Path, config: &StoreConfig) -> Result<Segment, OpenError> {
    let start = offset_name(path).ok_or_else(|| {
        OpenError::bad(path, "not a commit log file: its name is no offset; move it elsewhere".into())
    })?;
    let file = StoreFile::open(path, config.faults.clone()).map_err(OpenError::io(path))?;
    let mut len = file.file().metadata().map_err(OpenError::io(path))?.len();
    if len == 0 {
        // The machine died after the file was made; what it had is gone.
        tracing::warn!(path = %path.display(), "an empty commit log file; nothing of it had been flushed");
        len = config.commit_log_file_size;
        file.file().set_len(len).map_err(OpenError::io(path))?;
    }
    if len != config.commit_log_file_size {
        let what = format!(
            "is {len} bytes long, but mappedFileSizeCommitLog is {}: length not matched message store config value",
            config.commit_log_file_size
        );
        return Err(OpenError::bad(path, what));
    }
    Ok(Segment::new(start, len, file, true))
}
