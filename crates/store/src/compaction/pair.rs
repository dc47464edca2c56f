//! Reading and writing pairs of files.

use std::io;
use std::path::PathBuf;

use bytes::Bytes;
use protocol::record::{
    BLANK_HEAD, RecordView, encode_blank, patch_physical_offset, patch_queue_offset, properties, property,
};

use super::files::{Folder, Pair, Sizes};
use crate::batch_unit::{BATCH_UNIT, BatchUnit};
use crate::file::StoreFile;
use crate::walk::{Checksums, look};

/// Bytes of records that are read or written at once, roughly.
const CHUNK: usize = 1 << 20;
/// Units that are read at once when all are wanted.
const UNITS_AT_ONCE: u64 = 1024;

/// A pair that can be read. It stays readable when its files are removed.
pub(super) struct OpenPair {
    pub(super) pair: Pair,
    pub(super) log: StoreFile,
    pub(super) queue: StoreFile,
}

impl OpenPair {
    pub(super) fn open(folder: &Folder, pair: &Pair) -> io::Result<Self> {
        let log = folder.open(&folder.log_file(pair.start))?;
        let queue = folder.open(&folder.queue_file(pair.start))?;
        Ok(OpenPair { pair: pair.clone(), log, queue })
    }

    /// Valid units from the `index`th on, at most `max`.
    pub(super) fn units(&self, index: u64, max: u64) -> io::Result<Vec<BatchUnit>> {
        let count = max.min(self.pair.units.saturating_sub(index));
        let mut raw = vec![0; count as usize * BATCH_UNIT];
        let done = self.queue.read_at(&mut raw, index * BATCH_UNIT as u64)?;
        raw.truncate(done);
        Ok(raw.chunks_exact(BATCH_UNIT).map_while(BatchUnit::decode).collect())
    }

    /// The first unit at or after a queue offset.
    pub(super) fn index_of(&self, offset: i64) -> io::Result<u64> {
        let (mut low, mut high) = (0, self.pair.units);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.units(middle, 1)?.first() {
                Some(unit) if unit.base < offset => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// The bytes of the first units' records, of as many as lie one behind the other and fit into `most` bytes; of one at least.
    pub(super) fn records(&self, units: &[BatchUnit], most: usize) -> io::Result<(Bytes, usize)> {
        let Some(first) = units.first() else { return Ok((Bytes::new(), 0)) };
        let (mut end, mut count) = (first.physical_end(), 1);
        for unit in units.iter().skip(1) {
            if unit.physical_offset != end || unit.physical_end() - first.physical_offset > most as u64 {
                break;
            }
            (end, count) = (unit.physical_end(), count + 1);
        }
        let bad = || io::Error::new(io::ErrorKind::InvalidData, "a unit points outside its file");
        let at = first.physical_offset.checked_sub(self.pair.start).ok_or_else(bad)?;
        if end > self.pair.end.max(self.pair.start) {
            return Err(bad());
        }
        let mut bytes = vec![0; (end - first.physical_offset) as usize];
        let done = self.log.read_at(&mut bytes, at)?;
        bytes.truncate(done);
        Ok((bytes.into(), count))
    }

    /// Shows every unit with its record, in order; `None` for a record that is not intact. Ends early when `see` says false.
    pub(super) fn each(
        &self,
        see: &mut dyn FnMut(&BatchUnit, Option<RecordView<'_>>) -> io::Result<bool>,
    ) -> io::Result<()> {
        let mut index = 0;
        loop {
            let units = self.units(index, UNITS_AT_ONCE)?;
            let mut rest = units.as_slice();
            while !rest.is_empty() {
                let (bytes, count) = self.records(rest, CHUNK)?;
                let (now, later) = rest.split_at(count);
                let base = now.first().map_or(0, |unit| unit.physical_offset);
                for unit in now {
                    let record = bytes.get((unit.physical_offset - base) as usize..).unwrap_or_default();
                    if !see(unit, intact(unit, record))? {
                        return Ok(());
                    }
                }
                rest = later;
            }
            index += units.len() as u64;
            if units.is_empty() || index >= self.pair.units {
                return Ok(());
            }
        }
    }
}

/// The record of a unit, if the bytes begin with it and both say the same.
pub(super) fn intact<'a>(unit: &BatchUnit, bytes: &'a [u8]) -> Option<RecordView<'a>> {
    let record = record_in(bytes.get(..unit.size as usize)?, unit.physical_offset)?;
    let same = record.queue_offset == unit.base && record.store_timestamp == unit.store_time && unit.count == 1;
    same.then_some(record)
}

/// The record that is all of `bytes`, from a place in the log. Every record here has a key.
pub(super) fn record_in(bytes: &[u8], at: u64) -> Option<RecordView<'_>> {
    let record = look(bytes, at, Checksums::Body).ok()??;
    (record.size() == bytes.len() && !key_of(&record).is_empty()).then_some(record)
}

/// The whole KEYS string.
pub(super) fn key_of<'a>(record: &RecordView<'a>) -> &'a [u8] {
    properties::get_bytes(record.properties, property::KEYS).unwrap_or_default().trim_ascii()
}

/// Writes records one after the other, rolling over from pair to pair.
pub(super) struct Writer<'a> {
    folder: &'a Folder,
    sizes: Sizes,
    /// The pair it began with, as far as it has grown, and the new ones.
    pairs: Vec<Pair>,
    open: Option<(StoreFile, StoreFile)>,
    /// Records and units of the last pair that are not written yet.
    records: Vec<u8>,
    units: Vec<u8>,
}

impl<'a> Writer<'a> {
    /// Goes on behind `last`, or begins at 0.
    pub(super) fn new(folder: &'a Folder, sizes: Sizes, last: Option<Pair>) -> Self {
        let pairs = last.into_iter().collect();
        Writer { folder, sizes, pairs, open: None, records: Vec::new(), units: Vec::new() }
    }

    /// Takes a record. `unit` says all but its place. False when no file is large enough for it.
    pub(super) fn put(&mut self, unit: &BatchUnit, record: &[u8]) -> io::Result<bool> {
        let needed = (record.len() + BLANK_HEAD) as u64;
        if needed > self.sizes.log {
            return Ok(false);
        }
        let full = |pair: &Pair| {
            let next_unit = (pair.units + 1) * BATCH_UNIT as u64;
            next_unit >= self.sizes.queue || needed > pair.start + self.sizes.log - pair.end
        };
        if self.pairs.last().is_none_or(full) {
            self.roll()?;
        }
        let Some(pair) = self.pairs.last_mut() else { return Ok(false) };
        let unit = BatchUnit { physical_offset: pair.end, size: record.len() as u32, ..*unit };
        let from = self.records.len();
        self.records.extend_from_slice(record);
        if let Some(copy) = self.records.get_mut(from..) {
            patch_physical_offset(copy, unit.physical_offset as i64);
            patch_queue_offset(copy, unit.base);
        }
        self.units.extend_from_slice(&unit.encode());
        pair.add(&unit);
        if self.records.len() >= CHUNK {
            self.flush()?;
        }
        Ok(true)
    }

    /// Ends the last pair and makes the next. What is before the last pair is on the disk, always.
    fn roll(&mut self) -> io::Result<()> {
        let start = match self.pairs.last() {
            None => 0,
            Some(pair) => {
                let (start, room) = (pair.start, pair.start + self.sizes.log - pair.end);
                let used = pair.units * BATCH_UNIT as u64;
                encode_blank(&mut self.records, room as u32);
                let mark = if used + BATCH_UNIT as u64 <= self.sizes.queue { BATCH_UNIT } else { 0 };
                self.units.extend_from_slice(&end_mark()[..mark]);
                self.write(BLANK_HEAD, mark)?;
                self.sync_last()?;
                start + self.sizes.log
            }
        };
        self.folder.create()?;
        let create = |path: PathBuf, size| StoreFile::create(&path, size, self.folder.faults.clone());
        let log = create(self.folder.log_file(start), self.sizes.log)?;
        let queue = create(self.folder.queue_file(start), self.sizes.queue)?;
        self.open = Some((log, queue));
        self.pairs.push(Pair::empty(start));
        Ok(())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.write(0, 0)
    }

    /// Hands everything to the kernel. The last bytes are marks that the pair does not count.
    fn write(&mut self, blank: usize, mark: usize) -> io::Result<()> {
        let Some(pair) = self.pairs.last() else { return Ok(()) };
        if self.records.is_empty() {
            return Ok(());
        }
        let log_at = pair.end - pair.start + blank as u64 - self.records.len() as u64;
        let queue_at = pair.units * BATCH_UNIT as u64 + mark as u64 - self.units.len() as u64;
        let (log, queue) = match self.open.take() {
            Some(files) => files,
            None => {
                let pair = OpenPair::open(self.folder, pair)?;
                (pair.log, pair.queue)
            }
        };
        // A unit in the file means that its record was written.
        log.write_all_at(&self.records, log_at)?;
        queue.write_all_at(&self.units, queue_at)?;
        self.open = Some((log, queue));
        self.records.clear();
        self.units.clear();
        Ok(())
    }

    fn sync_last(&mut self) -> io::Result<()> {
        if let Some((log, queue)) = &self.open {
            log.sync()?;
            queue.sync()?;
            self.folder.sync()?;
        }
        Ok(())
    }

    /// Writes what is left.
    pub(super) fn finish(mut self) -> io::Result<Vec<Pair>> {
        self.flush()?;
        Ok(self.pairs)
    }

    /// Writes what is left, onto the disk.
    pub(super) fn finish_synced(mut self) -> io::Result<Vec<Pair>> {
        self.flush()?;
        self.sync_last()?;
        Ok(self.pairs)
    }
}

/// The unit Java puts behind the last one of a full file.
fn end_mark() -> [u8; BATCH_UNIT] {
    let mut mark = [0; BATCH_UNIT];
    mark[..8].fill(0xFF);
    mark[38..42].fill(0xFF);
    mark
}
