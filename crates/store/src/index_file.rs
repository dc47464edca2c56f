//! One key index file in Java's layout.
//!
//! ```text
//! | 8 begin time | 8 end time | 8 begin offset | 8 end offset | 4 slots in use | 4 next entry number |
//! | 4 newest entry of the chain | × slots          | 4 key hash | 8 offset | 4 seconds since begin | 4 previous entry | × entries
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use memmap2::MmapMut;
use rustix::fs::{FallocateFlags, fallocate};

use crate::mmap;

const HEADER: usize = 40;
const SLOT: usize = 4;
const ENTRY: usize = 20;
/// Entries whose disk blocks are taken at once.
const ALLOCATE: u32 = 65_536;

const BEGIN_TIME: usize = 0;
const END_TIME: usize = 8;
const BEGIN_OFFSET: usize = 16;
const END_OFFSET: usize = 24;
const SLOTS_USED: usize = 32;
pub(crate) const NEXT_ENTRY: usize = 36;

pub(crate) struct IndexFile {
    pub(crate) path: PathBuf,
    file: File,
    map: MmapMut,
    slots: u32,
    max_entries: u32,
    /// Entries below have disk blocks; 0 before the first put of this process.
    allocated: u32,
}

impl IndexFile {
    pub(crate) fn size(slots: u32, max_entries: u32) -> u64 {
        (HEADER + slots as usize * SLOT + max_entries as usize * ENTRY) as u64
    }

    /// Opens a file, or makes one that goes on from `before` (end time and end offset of the previous file).
    pub(crate) fn open(path: &Path, slots: u32, max_entries: u32, before: Option<(i64, u64)>) -> io::Result<Self> {
        let size = Self::size(slots, max_entries);
        let file = File::options().read(true).write(true).create(before.is_some()).truncate(false).open(path)?;
        if before.is_some() {
            file.set_len(size)?;
        } else if file.metadata()?.len() != size {
            return Err(io::Error::other(format!("its size is not {size} bytes")));
        }
        let map = mmap::map_write(&file, size as usize)?;
        let mut index = IndexFile { path: path.to_path_buf(), file, map, slots, max_entries, allocated: 0 };
        if let Some((time, offset)) = before {
            // A file of holes must not stay: reading it through the map wants pages, and in a full memory file system the process
            // dies of that.
            index.allocate(1).inspect_err(|_| drop(fs::remove_file(path)))?;
            index.put_u32(NEXT_ENTRY, 1);
            if time > 0 {
                index.put_u64(BEGIN_TIME, time as u64);
                index.put_u64(END_TIME, time as u64);
                index.put_u64(BEGIN_OFFSET, offset);
                index.put_u64(END_OFFSET, offset);
            }
        }
        Ok(index)
    }

    fn view(&self) -> IndexView<'_> {
        IndexView { bytes: &self.map, slots: self.slots }
    }

    fn put_u32(&mut self, at: usize, value: u32) {
        if let Some(place) = self.map.get_mut(at..at + 4) {
            place.copy_from_slice(&value.to_be_bytes());
        }
    }

    fn put_u64(&mut self, at: usize, value: u64) {
        if let Some(place) = self.map.get_mut(at..at + 8) {
            place.copy_from_slice(&value.to_be_bytes());
        }
    }

    pub(crate) fn begin_time(&self) -> i64 {
        self.view().u64(BEGIN_TIME) as i64
    }

    pub(crate) fn end_time(&self) -> i64 {
        self.view().u64(END_TIME) as i64
    }

    pub(crate) fn begin_offset(&self) -> u64 {
        self.view().u64(BEGIN_OFFSET)
    }

    pub(crate) fn end_offset(&self) -> u64 {
        self.view().u64(END_OFFSET)
    }

    /// Number of the next entry; entries count from 1.
    pub(crate) fn next_entry(&self) -> u32 {
        self.view().next_entry()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.next_entry() >= self.max_entries
    }

    /// Takes disk blocks for the slots and for the entries up to `number` and some more.
    fn allocate(&mut self, number: u32) -> io::Result<()> {
        if number < self.allocated {
            return Ok(());
        }
        let to = (number + ALLOCATE).min(self.max_entries);
        let from = if self.allocated == 0 { 0 } else { self.view().entry_at(self.allocated) as u64 };
        let len = self.view().entry_at(to) as u64 - from;
        match fallocate(&self.file, FallocateFlags::empty(), from, len) {
            Ok(()) => {}
            // No such call on this file system: the blocks are taken when the pages are written.
            Err(rustix::io::Errno::OPNOTSUPP) => {}
            Err(e) => return Err(e.into()),
        }
        self.allocated = to;
        Ok(())
    }

    /// Adds an entry. The file must not be full.
    pub(crate) fn put(&mut self, hash: i32, physical: u64, store_time: i64) -> io::Result<()> {
        let number = self.next_entry();
        self.allocate(number)?;
        let slot = self.view().slot_at(self.view().slot_of(hash));
        let mut previous = self.view().u32(slot);
        if previous > i32::MAX as u32 || previous > number {
            previous = 0;
        }
        let begin = self.begin_time();
        let seconds = if begin <= 0 { 0 } else { ((store_time - begin) / 1000).clamp(0, i64::from(i32::MAX)) };
        let at = self.view().entry_at(number);
        self.put_u32(at, hash as u32);
        self.put_u64(at + 4, physical);
        self.put_u32(at + 12, seconds as u32);
        self.put_u32(at + 16, previous);
        self.put_u32(slot, number);
        if number <= 1 {
            self.put_u64(BEGIN_OFFSET, physical);
            self.put_u64(BEGIN_TIME, store_time as u64);
        }
        if previous == 0 {
            self.put_u32(SLOTS_USED, self.view().u32(SLOTS_USED).wrapping_add(1));
        }
        self.put_u32(NEXT_ENTRY, number + 1);
        self.put_u64(END_OFFSET, physical);
        self.put_u64(END_TIME, store_time as u64);
        Ok(())
    }

    /// Collects offsets of entries with this hash whose time lies in the range, newest first.
    pub(crate) fn find(&self, hash: i32, max: usize, begin: i64, end: i64, into: &mut Vec<u64>) {
        self.view().find(hash, max, begin, end, into);
    }

    /// Whether the message at `physical` has an entry with this hash.
    pub(crate) fn has(&self, hash: i32, physical: u64) -> bool {
        self.view().has(hash, physical)
    }

    pub(crate) fn overlaps(&self, begin: i64, end: i64) -> bool {
        begin <= self.end_time() && end >= self.begin_time()
    }

    pub(crate) fn flush(&self) -> io::Result<()> {
        self.map.flush()
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// The bytes of an index file, for reading.
#[derive(Clone, Copy)]
pub(crate) struct IndexView<'a> {
    bytes: &'a [u8],
    pub(crate) slots: u32,
}

impl<'a> IndexView<'a> {
    pub(crate) fn new(bytes: &'a [u8], slots: u32) -> Self {
        IndexView { bytes, slots }
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        self.bytes.get(at..at + 4).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_be_bytes(*b))
    }

    pub(crate) fn u64(&self, at: usize) -> u64 {
        self.bytes.get(at..at + 8).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_be_bytes(*b))
    }

    /// Number of the next entry; entries count from 1.
    pub(crate) fn next_entry(&self) -> u32 {
        self.u32(NEXT_ENTRY).clamp(1, i32::MAX as u32)
    }

    /// The slot of a hash.
    pub(crate) fn slot_of(&self, hash: i32) -> u32 {
        hash.unsigned_abs() % self.slots.max(1)
    }

    /// Where a slot stands.
    pub(crate) fn slot_at(&self, slot: u32) -> usize {
        HEADER + slot as usize * SLOT
    }

    /// Where an entry stands.
    pub(crate) fn entry_at(&self, number: u32) -> usize {
        self.slot_at(self.slots) + number as usize * ENTRY
    }

    /// Key hash, commit log offset and previous entry of the chain.
    pub(crate) fn entry(&self, number: u32) -> (i32, u64, u32) {
        let at = self.entry_at(number);
        (self.u32(at) as i32, self.u64(at + 4), self.u32(at + 16))
    }

    /// Collects offsets of entries with this hash whose time lies in the range, newest first.
    pub(crate) fn find(&self, hash: i32, max: usize, begin: i64, end: i64, into: &mut Vec<u64>) {
        let base = self.u64(BEGIN_TIME) as i64;
        for number in self.chain(hash) {
            let at = self.entry_at(number);
            let seconds = self.u32(at + 12);
            if into.len() >= max || seconds > i32::MAX as u32 {
                break;
            }
            let time = base + i64::from(seconds) * 1000;
            if self.u32(at) as i32 == hash && begin <= time && time <= end {
                into.push(self.u64(at + 4));
            }
            if time < begin {
                break;
            }
        }
    }

    /// Whether the message at `physical` has an entry with this hash. Entries are made in the order of the log, so this looks
    /// no further than to the first of an older message: a chain may have a million.
    fn has(&self, hash: i32, physical: u64) -> bool {
        let entries = self.chain(hash).map(|number| self.entry(number));
        entries.take_while(|(_, offset, _)| *offset >= physical).any(|(of, offset, _)| (of, offset) == (hash, physical))
    }

    /// The entries in a hash's slot, newest first. A chain goes back, so a broken one cannot run in a circle either.
    fn chain(self, hash: i32) -> impl Iterator<Item = u32> {
        let first = self.u32(self.slot_at(self.slot_of(hash)));
        let count = self.next_entry();
        let chain = std::iter::successors(Some(first), move |number| {
            Some(self.entry(*number).2).filter(|previous| previous < number)
        });
        chain.take_while(move |number| (1..=count).contains(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_a_message_has_are_told_from_those_of_others_in_the_same_slot() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = IndexFile::open(&dir.path().join("20260101000000000"), 1, 100, Some((0, 0))).unwrap();
        let (tag, common, own) = (1, 2, 3);
        for (hash, physical) in [(tag, 0), (common, 0), (tag, 100), (own, 200), (tag, 200)] {
            file.put(hash, physical, 1_700_000_000_000).unwrap();
        }
        assert!(file.has(tag, 200) && file.has(own, 200) && file.has(common, 0) && file.has(tag, 0));
        assert!(!file.has(common, 200) && !file.has(own, 100) && !file.has(4, 200));
    }
}
