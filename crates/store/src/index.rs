//! The key index: all its files, and the entries that wait to be put in.
//!
//! Appends hand over key hashes; the index thread puts them in. When it cannot follow, the hand-over is dropped and the index
//! reads the missing part from the commit log; the same way it catches up after a crash or when files are missing.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::NaiveDateTime;
use parking_lot::Mutex;
use protocol::record::RecordView;

use crate::commit_log::CommitLog;
use crate::file::{Faults, sync, sync_names};
use crate::index_file::IndexFile;
use crate::keys::{Keys, key_hashes, key_prefix};
use crate::walk::{Checksums, next_record, walk};
use crate::{OpenError, StoreConfig};

/// Entries that may wait; more are read from the commit log later.
const MAX_WAITING: usize = 1 << 20;
/// Bytes of commit log read in one step of catching up, so that queries get their turn.
const CATCH_UP_STEP: u64 = 4 << 20;
/// Bytes of commit log between two index files in which a key is looked for.
const GAP_BYTES: u64 = 4 << 20;

/// Java's names of index files: local time down to the millisecond.
const NAME: &str = "%Y%m%d%H%M%S%3f";

/// One key of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyEntry {
    pub(crate) hash: i32,
    pub(crate) physical: u64,
    pub(crate) store_time: i64,
}

/// The keys of the messages of one stretch of the commit log.
pub(crate) struct KeyBatch {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) entries: Vec<KeyEntry>,
}

pub(crate) struct Index {
    dir: PathBuf,
    slots: u32,
    max_entries: u32,
    enabled: bool,
    files: Mutex<Vec<IndexFile>>,
    /// Keys of all messages below are in the files.
    position: AtomicU64,
    waiting: Mutex<Waiting>,
    /// End of the last full file that is on the disk.
    flushed: Mutex<Flushed>,
    faults: Option<Arc<dyn Faults>>,
}

/// Full files that end here or before are on the disk.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flushed {
    /// Store time, milliseconds since 1970: Java's mark.
    pub(crate) time: i64,
    /// Physical offset of the last message; unknown in a store that Java used last.
    pub(crate) offset: Option<u64>,
}

impl Flushed {
    fn covers(&self, file: &IndexFile) -> bool {
        let before = self.offset.map_or(file.end_time() <= self.time, |offset| file.end_offset() <= offset);
        before && file.is_full()
    }
}

#[derive(Default)]
struct Waiting {
    batches: VecDeque<KeyBatch>,
    entries: usize,
}

/// Removes the files behind the first one that does not follow the one before it.
fn cut_at_gap(files: &mut Vec<IndexFile>, log: &CommitLog) -> io::Result<()> {
    let mut from = log.min_offset();
    let mut good = 0;
    for file in files.iter() {
        if has_keys(log, from, file.begin_offset())? {
            break;
        }
        good += 1;
        from = from.max(file.end_offset().saturating_add(1));
    }
    for file in files.drain(good..) {
        tracing::warn!(path = %file.path.display(), "removing an index file: one before it is missing");
        file.remove()?;
    }
    Ok(())
}

/// Whether one of the messages from `from` up to `to` has a key. Looks at the first few thousand of them.
fn has_keys(log: &CommitLog, from: u64, to: u64) -> io::Result<bool> {
    if from >= to {
        return Ok(false);
    }
    let mut found = false;
    let mut at = next_record(log, from)?.unwrap_or(to);
    let most = to.min(at + GAP_BYTES);
    while at < most && !found {
        let step = most.min(at + GAP_BYTES / 64);
        let end = walk(
            log,
            at,
            step,
            Checksums::None,
            &mut |_, view| {
                // Before 5.4.0 tags were not in the index.
                let keys = Keys { tags: None, ..Keys::of(view.properties) };
                found |= !record_hashes(view, &keys).is_empty();
            },
            &mut |_, _| None,
        )?;
        if end <= at {
            break;
        }
        at = end;
    }
    Ok(found)
}

/// The hashes of some keys of a stored record.
fn record_hashes(view: &RecordView<'_>, keys: &Keys<'_>) -> Vec<i32> {
    let mut hashes = Vec::new();
    key_hashes(key_prefix(view.topic), view.sys_flag, keys, &mut |hash| hashes.push(hash));
    hashes
}

impl Index {
    pub(crate) fn new(config: &StoreConfig) -> Self {
        Index {
            dir: config.root.join("index"),
            slots: config.max_hash_slot_num.max(1),
            max_entries: config.max_index_num.max(2),
            enabled: config.message_index_enable,
            files: Mutex::default(),
            position: AtomicU64::new(0),
            waiting: Mutex::default(),
            flushed: Mutex::default(),
            faults: config.faults.clone(),
        }
    }

    pub(crate) fn enabled(&self) -> bool {
        self.enabled
    }

    /// Opens the files. After a crash of the machine those that are not `flushed` are removed: they may be torn. Broken files
    /// and all behind them are removed too. The index then goes on from what is left.
    pub(crate) fn load(&self, mut flushed: Flushed, crashed: bool) -> Result<(), OpenError> {
        std::fs::create_dir_all(&self.dir).map_err(OpenError::io(&self.dir))?;
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(&self.dir).map_err(OpenError::io(&self.dir))? {
            let path = entry.map_err(OpenError::io(&self.dir))?.path();
            match path.file_name().and_then(|n| n.to_str()) {
                Some(name) if !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()) && !path.is_dir() => {
                    paths.push(path);
                }
                _ => tracing::warn!(path = %path.display(), "not an index file"),
            }
        }
        paths.sort();
        let mut files = Vec::new();
        let mut good = true;
        for path in paths {
            if good {
                match IndexFile::open(&path, self.slots, self.max_entries, None) {
                    Ok(file) if !crashed || flushed.covers(&file) => {
                        files.push(file);
                        continue;
                    }
                    Ok(_) => {
                        tracing::info!(path = %path.display(), "removing an index file that was not synced before the crash")
                    }
                    Err(error) => {
                        tracing::warn!(path = %path.display(), %error, "removing a damaged index file; it is built again")
                    }
                }
                good = false;
            }
            std::fs::remove_file(&path).map_err(OpenError::io(&path))?;
        }
        let last = files.iter().rfind(|f| flushed.covers(f)).map_or(0, IndexFile::end_offset);
        flushed.offset = Some(last);
        *self.flushed.lock() = flushed;
        *self.files.lock() = files;
        Ok(())
    }

    /// Removes files that know messages at or behind `end`, where the commit log was cut.
    pub(crate) fn cut(&self, end: u64) -> io::Result<()> {
        let mut files = self.files.lock();
        while files.last().is_some_and(|f| f.next_entry() > 1 && f.end_offset() >= end) {
            if let Some(file) = files.pop() {
                file.remove()?;
            }
        }
        Ok(())
    }

    pub(crate) fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }

    /// Sets where the index goes on: behind its last message, or at `mark` (position and last message of the last process) when
    /// nothing was lost since. Files behind a missing one are removed.
    pub(crate) fn resume(&self, log: &CommitLog, mark: Option<(u64, u64)>, end: u64) -> io::Result<()> {
        let mut files = self.files.lock();
        if self.enabled {
            cut_at_gap(&mut files, log)?;
        }
        self.settle(&files)?;
        let Some(last) = files.last().map(IndexFile::end_offset) else {
            self.start_at(log.min_offset());
            return Ok(());
        };
        self.start_at(last);
        if self.enabled && last < end {
            // Some of its keys may have been in a file that is gone.
            match self.read_log(log, &mut files, last, last + 1) {
                // Without room the index thread tries again from there.
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(()),
                result => result?,
            }
        }
        let mark = mark.filter(|(_, had)| last >= *had).map_or(0, |(position, _)| position);
        self.start_at(self.position().max(mark).min(end));
        Ok(())
    }

    /// Last message that is in the files, by physical offset; 0 without files.
    pub(crate) fn last_offset(&self) -> u64 {
        self.files.lock().last().map_or(0, IndexFile::end_offset)
    }

    /// After removals: what follows gets the same place in the log with other content, so old files must not be trusted again.
    fn settle(&self, files: &[IndexFile]) -> io::Result<()> {
        let end = files.last().map_or(0, IndexFile::end_offset);
        let mut flushed = self.flushed.lock();
        flushed.offset = flushed.offset.map(|offset| offset.min(end));
        sync_names(&self.dir, &self.faults)
    }

    fn start_at(&self, position: u64) {
        self.position.store(position, Ordering::Release);
    }

    pub(crate) fn flushed(&self) -> Flushed {
        *self.flushed.lock()
    }

    /// Takes the keys of a written group. True when so much waits that the index thread should be woken.
    pub(crate) fn hand_over(&self, batch: KeyBatch) -> bool {
        let mut waiting = self.waiting.lock();
        waiting.entries += batch.entries.len();
        if waiting.entries > MAX_WAITING {
            *waiting = Waiting::default();
            return true;
        }
        waiting.batches.push_back(batch);
        waiting.entries > MAX_WAITING / 64
    }

    /// Puts everything in that waits, up to `limit`. On an error it stays where it is and goes on from there next time.
    pub(crate) fn catch_up(&self, log: &CommitLog, limit: u64) -> io::Result<()> {
        if !self.enabled {
            self.waiting.lock().batches.clear();
            self.start_at(limit);
            return Ok(());
        }
        while self.position() < limit {
            self.step(log, limit)?;
        }
        Ok(())
    }

    fn step(&self, log: &CommitLog, limit: u64) -> io::Result<()> {
        let mut files = self.files.lock();
        let position = self.position();
        if position >= limit {
            return Ok(());
        }
        let batch = {
            let mut waiting = self.waiting.lock();
            while let Some(old) = waiting.batches.pop_front_if(|b| b.end <= position) {
                waiting.entries -= old.entries.len().min(waiting.entries);
            }
            let next = waiting.batches.pop_front_if(|b| b.start <= position && b.end <= limit);
            if let Some(batch) = &next {
                waiting.entries -= batch.entries.len().min(waiting.entries);
            }
            next
        };
        if let Some(batch) = batch {
            for entry in batch.entries {
                self.put(&mut files, entry)?;
            }
            self.start_at(batch.end);
            return Ok(());
        }
        let upper = self.waiting.lock().batches.front().map_or(limit, |b| b.start.min(limit));
        self.read_log(log, &mut files, position, upper.max(position + 1).min(position + CATCH_UP_STEP))
    }

    fn read_log(&self, log: &CommitLog, files: &mut Vec<IndexFile>, from: u64, to: u64) -> io::Result<()> {
        let from = from.max(log.min_offset());
        // Of the last message that is in the files some keys may be missing.
        let last = files.last().map(IndexFile::end_offset);
        let mut result = Ok(());
        let mut skipped_to_end = false;
        let end = walk(
            log,
            from,
            to,
            Checksums::None,
            &mut |at, view| {
                if result.is_ok() {
                    result = self.put_record(files, at, view, Some(at) == last);
                }
            },
            &mut |at, _| match next_record(log, at + 1) {
                Ok(Some(next)) => Some(next),
                _ => {
                    skipped_to_end = true;
                    None
                }
            },
        )?;
        result?;
        self.start_at(if skipped_to_end { to.max(end) } else { end.max(from) });
        if end == from && !skipped_to_end && end < to {
            // A blank at the end of the log: nothing more to read now.
            self.start_at(to);
        }
        Ok(())
    }

    fn put_record(
        &self,
        files: &mut Vec<IndexFile>,
        at: u64,
        view: &RecordView<'_>,
        may_be_there: bool,
    ) -> io::Result<()> {
        for hash in record_hashes(view, &Keys::of(view.properties)) {
            let there = may_be_there && files.iter().rev().take(2).any(|f| f.has(hash, at));
            if !there {
                self.put(files, KeyEntry { hash, physical: at, store_time: view.store_timestamp })?;
            }
        }
        Ok(())
    }

    fn put(&self, files: &mut Vec<IndexFile>, entry: KeyEntry) -> io::Result<()> {
        if files.last().is_some_and(|f| entry.physical < f.end_offset()) {
            return Ok(());
        }
        if files.last().is_none_or(IndexFile::is_full) {
            let before = files.last().map_or((0, 0), |f| (f.end_time(), f.end_offset()));
            if let Some(full) = files.last() {
                sync(&full.path, &self.faults, || full.flush())?;
                sync_names(&self.dir, &self.faults)?;
                *self.flushed.lock() = Flushed { time: full.end_time(), offset: Some(full.end_offset()) };
            }
            let path = self.new_path(files.last());
            self.faults.as_ref().map_or(Ok(()), |faults| faults.before_create(&path))?;
            files.push(IndexFile::open(&path, self.slots, self.max_entries, Some(before))?);
        }
        match files.last_mut() {
            Some(file) => file.put(entry.hash, entry.physical, entry.store_time),
            None => Ok(()),
        }
    }

    /// Java's name: local wall-clock time; a later millisecond when it is taken, and always later than the last file's, for the
    /// order of the names is that of the files and clocks are put back.
    fn new_path(&self, last: Option<&IndexFile>) -> PathBuf {
        let step = chrono::Duration::milliseconds(1);
        let name = last.and_then(|last| last.path.file_name()?.to_str());
        let last = name.and_then(|name| NaiveDateTime::parse_from_str(name, NAME).ok());
        let mut now = chrono::Local::now().naive_local();
        now = last.map_or(now, |last| now.max(last + step));
        loop {
            let path = self.dir.join(now.format(NAME).to_string());
            if !path.exists() {
                return path;
            }
            now += step;
        }
    }

    /// Offsets of messages with this key hash, ascending.
    pub(crate) fn find(&self, hash: i32, max: usize, begin: i64, end: i64) -> Vec<u64> {
        let files = self.files.lock();
        let mut found = Vec::new();
        for file in files.iter().rev() {
            if file.overlaps(begin, end) {
                file.find(hash, max, begin, end, &mut found);
            }
            if found.len() >= max || file.begin_time() < begin {
                break;
            }
        }
        drop(files);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Store time and physical offset of the newest entry.
    pub(crate) fn last_update(&self) -> (i64, u64) {
        self.files.lock().last().map_or((0, 0), |f| (f.end_time(), f.end_offset()))
    }

    /// Number of files and of entries.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let files = self.files.lock();
        (files.len() as u64, files.iter().map(|f| u64::from(f.next_entry() - 1)).sum())
    }

    /// Removes files whose messages are all below `min_physical`, never the newest.
    pub(crate) fn clean(&self, min_physical: u64) -> io::Result<usize> {
        let mut files = self.files.lock();
        let mut removed = 0;
        while files.len() > 1 && files.first().is_some_and(|f| f.end_offset() < min_physical) {
            files[0].remove()?;
            files.remove(0);
            removed += 1;
        }
        Ok(removed)
    }

    pub(crate) fn flush(&self) -> io::Result<()> {
        self.files.lock().last().map_or(Ok(()), |last| sync(&last.path, &self.faults, || last.flush()))
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gets_a_later_name_than_the_last_one_when_the_clock_was_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let index = Index::new(&StoreConfig::new(dir.path()));
        let folder = dir.path().join("index");
        std::fs::create_dir(&folder).unwrap();
        let open = |name: &str| IndexFile::open(&folder.join(name), 10, 10, Some((0, 0))).unwrap();
        let ahead = open("29990101000000999");
        assert_eq!(index.new_path(Some(&ahead)), folder.join("29990101000001000"));
        let taken = open("29990101000001000");
        assert_eq!(index.new_path(Some(&ahead)), folder.join("29990101000001001"));
        drop(taken);
        let old = open("20200101000000000");
        let name = index.new_path(Some(&old));
        assert!(name > folder.join("20260101000000000") && name < folder.join("29990101000000000"), "{name:?}");
    }
}
