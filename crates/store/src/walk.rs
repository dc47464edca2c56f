//! Going through the records of the commit log one by one.

use std::borrow::Cow;
use std::io;

use protocol::record::{MAGIC_V1, PropertyCrc, RecordView, Scan, property_crc, scan};
use rustix::fs::SeekFrom;

use crate::commit_log::{CommitLog, Segment};

/// Length and mark of a record.
const HEAD: usize = 8;

/// Which checksums of a record are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checksums {
    None,
    Body,
    /// The one over the whole record in its properties; the body's where a record has none.
    Record,
}

/// Why bytes are no record, and how long the record says it is.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) reason: String,
    /// Nothing but zeros: the usual end of the log.
    pub(crate) unwritten: bool,
}

/// Visits the records from `from` up to `limit` in order and returns where it stopped. `on_fault` says where to go on behind
/// bytes that are no record; `None` ends the walk there.
pub(crate) fn walk(
    log: &CommitLog,
    from: u64,
    limit: u64,
    checksums: Checksums,
    on_record: &mut dyn FnMut(u64, &RecordView<'_>),
    on_fault: &mut dyn FnMut(u64, Fault) -> Option<u64>,
) -> io::Result<u64> {
    let mut at = from;
    while at < limit {
        let Some(segment) = log.segment_at(at) else {
            if !goes_on(log, at) {
                break;
            }
            let fault = Fault { reason: "a commit log file is missing here".into(), unwritten: false };
            match on_fault(at, fault) {
                Some(next) if next > at => at = next,
                _ => break,
            }
            continue;
        };
        let mut bytes = Careful::new(&segment)?;
        while at < segment.end() && at < limit {
            match look(&bytes.record(at)?, at, checksums) {
                Ok(Some(view)) => {
                    on_record(at, &view);
                    at += view.size() as u64;
                }
                Ok(None) if !goes_on(log, at) => return Ok(at),
                Ok(None) => at = segment.end(),
                Err(fault) => match on_fault(at, fault) {
                    Some(next) if next > at => at = next,
                    _ => return Ok(at),
                },
            }
        }
    }
    Ok(at)
}

/// Whether a file begins behind `at`.
fn goes_on(log: &CommitLog, at: u64) -> bool {
    log.segments().last().is_some_and(|last| last.start > at)
}

/// What stands at `at`: a record, a blank (`None`) or a fault.
pub(crate) fn look(bytes: &[u8], at: u64, checksums: Checksums) -> Result<Option<RecordView<'_>>, Fault> {
    use protocol::record::BadReason;
    match scan(bytes, checksums != Checksums::None) {
        Scan::Record(view) if view.physical_offset != at as i64 => {
            Err(Fault { reason: format!("a record says it lies at {}", view.physical_offset), unwritten: false })
        }
        Scan::Record(view) if is_torn(&view) => {
            Err(Fault { reason: "topic or properties of a record are cut off".into(), unwritten: false })
        }
        Scan::Record(view) if checksums == Checksums::Record && property_crc(view.bytes) == PropertyCrc::Wrong => {
            Err(Fault { reason: "the checksum in a record's properties is wrong".into(), unwritten: false })
        }
        Scan::Record(view) => Ok(Some(view)),
        Scan::Blank(_) => Ok(None),
        Scan::Bad(bad) => Err(Fault { reason: bad.to_string(), unwritten: matches!(bad.reason, BadReason::Unwritten) }),
    }
}

/// The checksum covers the body alone. A record whose end never reached the disk has zeros there: a topic no broker takes, or
/// properties that end with a zero, which no writer makes.
fn is_torn(view: &RecordView<'_>) -> bool {
    view.topic.is_empty() || view.topic.bytes().any(|b| b < b' ' || b == b'/') || view.properties.last() == Some(&0)
}

/// The first whole, intact record at or after `from`, in any file.
pub(crate) fn next_record(log: &CommitLog, from: u64) -> io::Result<Option<u64>> {
    for segment in log.segments().iter().filter(|s| s.end() > from) {
        let mut at = from.max(segment.start);
        while let Some((begin, end)) = next_data(segment, at)? {
            if let Some(found) = record_between(segment, begin, end)? {
                return Ok(Some(found));
            }
            at = end;
        }
    }
    Ok(None)
}

/// A file's bytes for whoever looks behind what was written. A page that was never written must not be touched through the
/// map: in a file system that lives in memory and is full there is no page to show, and the process dies of it.
pub(crate) struct Careful<'a> {
    segment: &'a Segment,
    map: &'a [u8],
    /// Where the written stretch that was asked about last ends; a physical offset.
    written: u64,
}

impl<'a> Careful<'a> {
    pub(crate) fn new(segment: &'a Segment) -> io::Result<Self> {
        Ok(Self { segment, map: segment.bytes()?, written: 0 })
    }

    /// Bytes that begin at `at` and hold at least the whole record there, if it is one.
    pub(crate) fn record(&mut self, at: u64) -> io::Result<Cow<'a, [u8]>> {
        if at >= self.written {
            self.written = match next_data(self.segment, at)? {
                Some((begin, end)) if begin <= at => end,
                _ => at,
            };
        }
        let rest = self.map.get((at - self.segment.start) as usize..).unwrap_or_default();
        let written = (self.written - at) as usize;
        if written >= rest.len() {
            return Ok(Cow::Borrowed(rest));
        }
        let head = if written >= HEAD { Cow::Borrowed(rest) } else { self.read(at, HEAD.min(rest.len()))? };
        let length = head.first_chunk().map_or(0, |length| u32::from_be_bytes(*length) as usize);
        if length <= written || length > rest.len() {
            return Ok(head);
        }
        self.read(at, length)
    }

    /// Unlike the map, a read of what was never written takes no page.
    fn read(&self, at: u64, length: usize) -> io::Result<Cow<'a, [u8]>> {
        let mut bytes = vec![0; length];
        let done = self.segment.file.read_at(&mut bytes, at - self.segment.start)?;
        bytes.truncate(done);
        Ok(Cow::Owned(bytes))
    }
}

/// The next stretch of the file that is not a hole, as physical offsets. Holes are skipped without being read: reading them
/// would fill the page cache with zeros.
pub(crate) fn next_data(segment: &Segment, at: u64) -> io::Result<Option<(u64, u64)>> {
    if at >= segment.end() {
        return Ok(None);
    }
    let file = segment.file.file();
    let seek = |whence| rustix::fs::seek(file, whence);
    let begin = match seek(SeekFrom::Data(at - segment.start)) {
        Ok(begin) => begin,
        Err(rustix::io::Errno::NXIO) => return Ok(None),
        // The file system cannot tell: look at everything.
        Err(rustix::io::Errno::INVAL) => return Ok(Some((at, segment.end()))),
        Err(e) => return Err(e.into()),
    };
    let end = seek(SeekFrom::Hole(begin))?;
    Ok(Some((segment.start + begin, (segment.start + end).min(segment.end()))))
}

fn record_between(segment: &Segment, begin: u64, end: u64) -> io::Result<Option<u64>> {
    // Both marks share their first three bytes.
    let mark = &MAGIC_V1.to_be_bytes()[..3];
    let mut careful = Careful::new(segment)?;
    let base = (begin - segment.start) as usize;
    let area = careful.map.get(base..(end - segment.start) as usize).unwrap_or_default();
    for found in memchr::memmem::find_iter(area, mark) {
        let Some(at) = (base + found).checked_sub(4).filter(|at| *at >= base) else { continue };
        let physical = segment.start + at as u64;
        if let Ok(Some(view)) = look(&careful.record(physical)?, physical, Checksums::Body)
            && view.store_timestamp > 0
        {
            return Ok(Some(physical));
        }
    }
    Ok(None)
}
