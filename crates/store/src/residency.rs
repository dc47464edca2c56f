//! What of the commit log is in memory: a thread that serves connections must not touch the rest.

use crate::Unit;
use crate::commit_log::{CommitLog, Segment};
use crate::mmap::page_size;

/// Bytes of the log asked about at once.
const STRETCH: u64 = 512 << 10;
/// What a reader of old data has not come to yet, but is likely to: it should find it in memory.
const READ_AHEAD: u64 = 2 << 20;

/// What one reader knows of it, who goes forward.
pub(crate) struct Residency<'a> {
    log: &'a CommitLog,
    surely_from: u64,
    known: Option<Stretch>,
    ahead: u64,
}

impl<'a> Residency<'a> {
    /// What lies behind `surely_from` is taken to be in memory without asking.
    pub(crate) fn new(log: &'a CommitLog, surely_from: u64) -> Self {
        Residency { log, surely_from, known: None, ahead: 0 }
    }

    /// Whether a unit's record is in memory.
    pub(crate) fn holds(&mut self, unit: &Unit) -> bool {
        let (offset, size) = (unit.physical_offset, u64::from(unit.size));
        if offset >= self.surely_from {
            return true;
        }
        if let Some(answer) = self.known.as_ref().and_then(|stretch| stretch.holds(offset, size)) {
            return answer;
        }
        let Some(segment) = self.log.segment_at(offset) else { return true };
        let stretch = self.known.insert(Stretch::ask(&segment, offset, size));
        stretch.holds(offset, size).unwrap_or(false)
    }

    /// Begins to bring a unit's record and what follows it into memory.
    pub(crate) fn read_ahead(&mut self, unit: &Unit) {
        if unit.physical_offset >= self.ahead {
            self.log.read_ahead(unit.physical_offset, READ_AHEAD);
            self.ahead = unit.physical_offset + READ_AHEAD;
        }
    }
}

/// The pages of a stretch of one commit log file.
struct Stretch {
    /// Commit log offset of the first page.
    start: u64,
    pages: Vec<bool>,
}

impl Stretch {
    /// Asks about the record at `offset` and what follows it.
    fn ask(segment: &Segment, offset: u64, size: u64) -> Self {
        let start = segment.start + (offset - segment.start) / page_size() * page_size();
        let end = (offset + size.max(STRETCH)).min(segment.end());
        Stretch { start, pages: segment.resident(start, end - start) }
    }

    /// Whether all pages of a record are in memory; `None` when it was not asked about all of them.
    fn holds(&self, offset: u64, size: u64) -> Option<bool> {
        let first = offset.checked_sub(self.start)? / page_size();
        let end = (offset + size - self.start).div_ceil(page_size());
        let pages = self.pages.get(first as usize..end as usize)?;
        Some(pages.iter().all(|resident| *resident))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::StoreFile;

    #[test]
    fn a_record_is_there_when_all_its_pages_are() {
        let page = page_size();
        let stretch = Stretch { start: 10 * page, pages: vec![true, true, false, true] };
        assert_eq!(stretch.holds(10 * page, 2 * page), Some(true));
        assert_eq!(stretch.holds(11 * page + 7, page), Some(false), "its last bytes are in the third page");
        assert_eq!(stretch.holds(13 * page, page), Some(true));
        assert_eq!(stretch.holds(13 * page, page + 1), None);
        assert_eq!(stretch.holds(9 * page, page), None);
    }

    #[test]
    fn what_was_just_written_is_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        let size = 4 * STRETCH;
        let file = StoreFile::create(&dir.path().join("file"), size, None).unwrap();
        file.write_all_at(&vec![1; size as usize], 0).unwrap();
        let segment = Segment::new(size, size, file, true);
        let stretch = Stretch::ask(&segment, size + 5000, 100);
        assert_eq!(stretch.holds(size + 5000, 100), Some(true));
        assert_eq!(stretch.holds(size + 5000 + 2 * STRETCH, 100), None);
        let last = Stretch::ask(&segment, 2 * size - 100, 100);
        assert_eq!(last.holds(2 * size - 100, 100), Some(true));
    }
}
