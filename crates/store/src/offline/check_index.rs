//! Checking index files: their chains, and that each entry's message has the key.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use protocol::record::RecordView;

use super::OfflineStore;
use super::findings::{Finding, Findings, Remedy};
use crate::folders::entries;
use crate::index_file::{IndexFile, IndexView, NEXT_ENTRY};
use crate::keys::{Keys, key_hashes, key_prefix};
use crate::mmap::ReadMap;
use crate::progress::Report;

impl OfflineStore {
    pub(super) fn check_index(&self, found: &mut Findings) -> io::Result<()> {
        let mut report = Report::new(self.config.screen.clone());
        for path in index_files(&self.config.root.join("index"))? {
            found.totals.index_files += 1;
            match self.map_index(&path)? {
                Some(map) => self.check_index_file(&path, IndexView::new(&map, self.slots()), found, &mut report),
                None => {
                    let what = format!("has another size than {} slots and {} entries", self.slots(), self.entries());
                    found.add(Finding::new("index file that cannot be loaded", Remedy::NextStart, &path, what));
                }
            }
        }
        Ok(())
    }

    fn slots(&self) -> u32 {
        self.config.max_hash_slot_num.max(1)
    }

    fn entries(&self) -> u32 {
        self.config.max_index_num.max(2)
    }

    /// The bytes of an index file; `None` when it has another size than the configuration says.
    fn map_index(&self, path: &Path) -> io::Result<Option<Bytes>> {
        let file = File::open(path)?;
        if file.metadata()?.len() != IndexFile::size(self.slots(), self.entries()) {
            return Ok(None);
        }
        let map = ReadMap::new(&file, IndexFile::size(self.slots(), self.entries()) as usize)?;
        Ok(Some(map.bytes().clone()))
    }

    /// Offsets of the messages with a key hash, ascending.
    pub(super) fn find_key(&self, hash: i32) -> io::Result<Vec<u64>> {
        let mut offsets = Vec::new();
        for path in index_files(&self.config.root.join("index"))? {
            let map = self.map_index(&path)?;
            let map = map.ok_or_else(|| io::Error::other(format!("{}: a damaged index file", path.display())))?;
            IndexView::new(&map, self.slots()).find(hash, usize::MAX, i64::MIN, i64::MAX, &mut offsets);
        }
        offsets.sort_unstable();
        offsets.dedup();
        Ok(offsets)
    }

    fn check_index_file(&self, path: &Path, view: IndexView<'_>, found: &mut Findings, report: &mut Report) {
        let next = view.u32(NEXT_ENTRY);
        // An unused file of Java has 0 or 1 here.
        if next > self.entries() {
            let what = format!("the next entry is {next}, the file has room for {}", self.entries());
            found.add(in_index("index header", path, NEXT_ENTRY, what));
            return;
        }
        for slot in 0..view.slots {
            let (at, number) = (view.slot_at(slot), view.u32(view.slot_at(slot)));
            if number != 0 && (number >= next || view.slot_of(view.entry(number).0) != slot) {
                let what = format!("slot {slot} begins with entry {number}, which is not of its chain");
                found.add(in_index("broken chain in an index file", path, at, what));
            }
        }
        for number in 1..next {
            found.totals.index_entries += 1;
            let (hash, offset, previous) = view.entry(number);
            let at = view.entry_at(number);
            let other_slot = previous != 0 && view.slot_of(view.entry(previous).0) != view.slot_of(hash);
            if previous >= number || other_slot {
                let what = format!("entry {number} goes on at entry {previous}, which is not of its chain");
                found.add(in_index("broken chain in an index file", path, at, what));
            }
            if let Some(what) = self.check_key(hash, offset, found) {
                found.add(in_index("index entry without its message", path, at, format!("entry {number}: {what}")));
            }
            if number.is_multiple_of(4096) {
                report.tick(|| format!("index: {number} of {next} entries of {}", path.display()));
            }
        }
    }

    /// Says what is wrong with an entry for the message at `offset`.
    fn check_key(&self, hash: i32, offset: u64, found: &Findings) -> Option<String> {
        if offset < found.totals.log_start || offset >= found.totals.log_end {
            // Its message is deleted, or cut off at the next start together with the file.
            return None;
        }
        match self.record(offset, |record| has_hash(record, hash)) {
            Ok(true) => None,
            Ok(false) => Some(format!("the message at {offset} has no key with the hash {hash}")),
            Err(reason) => Some(format!("at {offset} in the commit log: {reason}")),
        }
    }
}

fn has_hash(record: &RecordView<'_>, hash: i32) -> bool {
    let mut has = false;
    let keys = Keys::of(record.properties);
    key_hashes(key_prefix(record.topic), record.sys_flag, &keys, &mut |found| has |= found == hash);
    has
}

fn in_index(kind: &'static str, path: &Path, position: usize, what: String) -> Finding {
    Finding::new(kind, Remedy::Rebuild, path, what).at(position as u64)
}

/// The index files, oldest first.
fn index_files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in entries(dir)? {
        let path = entry?.path();
        let numbered = path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
        if numbered && !path.is_dir() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
