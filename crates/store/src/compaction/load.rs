//! Looking at the files of a compacted log: what is good, what was torn, what has to be copied again.

use std::io;
use std::sync::atomic::Ordering;

use protocol::record::{MAGIC_V1, RecordView, Scan, scan};

use super::files::{Folder, Pair, Sizes};
use super::log::{CompactionLog, State};
use super::pair::{OpenPair, intact, record_in};
use super::swap;
use crate::Store;
use crate::batch_unit::{BATCH_UNIT, BatchUnit};
use crate::consume_queue::ConsumeQueue;
use crate::file::StoreFile;

/// Bytes that are searched at once for the next record.
const SEARCH_BYTES: usize = 64 << 10;

/// The queue a log follows, and the messages' first home.
pub(super) struct Source<'a> {
    pub(super) store: &'a Store,
    pub(super) queue: &'a ConsumeQueue,
}

impl Source<'_> {
    /// Whether the messages from a queue offset on can be copied once more.
    fn has(&self, offset: i64) -> bool {
        self.queue.min() <= offset && self.queue.end() > offset
    }
}

pub(super) fn load(log: &CompactionLog, source: &Source<'_>) -> io::Result<State> {
    let (folder, sizes) = (&log.folder, log.sizes);
    swap::recover(folder, sizes)?;
    let trusted = log.trusted.swap(false, Ordering::AcqRel);
    let suspected = log.suspected.swap(false, Ordering::AcqRel);
    let mut pairs = read_pairs(log, source, &|is_last| suspected || is_last && !trusted)?;
    let end = source.queue.end();
    if end > 0 && is_ahead(folder, source, &pairs, end)? {
        tracing::warn!(topic = %log.topic, queue = log.id, end, "the compacted log is ahead of its queue and is cut");
        cut_at(folder, sizes, &mut pairs, end)?;
    }
    if is_of_another_life(folder, source, &pairs)? {
        tracing::error!(topic = %log.topic, queue = log.id, "the compacted log is of a topic that was deleted; it is built anew");
        cut_at(folder, sizes, &mut pairs, 0)?;
    }
    let followed = pairs.last().map_or(0, |pair| pair.last + 1);
    if log.position() >= followed {
        log.set_position(followed - 1)?;
    }
    // What a crash left may never have been synced.
    Ok(State { pairs, followed, synced: if trusted { followed } else { 0 } })
}

fn read_pairs(log: &CompactionLog, source: &Source<'_>, wholly: &dyn Fn(bool) -> bool) -> io::Result<Vec<Pair>> {
    let folder = &log.folder;
    let mut starts = Folder::starts(&folder.log, log.sizes.log)?;
    starts.extend(Folder::starts(&folder.queue, log.sizes.queue)?);
    starts.sort_unstable();
    starts.dedup();
    let mut pairs: Vec<Pair> = Vec::new();
    for (at, start) in starts.iter().enumerate() {
        let is_last = at + 1 == starts.len();
        let next = pairs.last().map_or(0, |pair| pair.last + 1);
        let mut found = read_pair(log, source, *start, next, wholly(is_last), is_last)?;
        if found.pair.units > 0 && found.pair.first < next {
            // It overlaps the one before.
            found = Found { pair: Pair::empty(*start), torn: true };
        }
        let good_until = found.pair.next_or(next);
        if found.pair.units > 0 {
            pairs.push(found.pair);
        } else {
            folder.remove_pair(*start)?;
        }
        if !found.torn || is_last {
            continue;
        }
        let path = folder.log_file(*start).display().to_string();
        if source.has(good_until) {
            tracing::error!(
                path,
                from = good_until,
                "a file of a compacted log is damaged; copying from the commit log again"
            );
            for later in starts.iter().skip(at + 1) {
                folder.remove_pair(*later)?;
            }
            break;
        }
        tracing::error!(
            path,
            from = good_until,
            "a file of a compacted log is damaged, and the commit log no longer has the damaged messages"
        );
    }
    Ok(pairs)
}

/// What stands in the files of one pair.
struct Found {
    pair: Pair,
    /// Records are missing behind its last one.
    torn: bool,
}

/// Reads the pair of files that begin at `start`, whose first message is at `next` or later.
fn read_pair(
    of: &CompactionLog,
    source: &Source<'_>,
    start: u64,
    next: i64,
    thorough: bool,
    is_last: bool,
) -> io::Result<Found> {
    let (folder, sizes) = (&of.folder, of.sizes);
    let log = match folder.open(&folder.log_file(start)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Found { pair: Pair::empty(start), torn: true }),
        log => log?,
    };
    folder.create()?;
    let queue = StoreFile::create(&folder.queue_file(start), sizes.queue, folder.faults.clone())?;
    let most = sizes.queue / BATCH_UNIT as u64;
    let mut open = OpenPair { pair: Pair { units: most, end: start + sizes.log, ..Pair::empty(start) }, log, queue };
    if !thorough && let Some(pair) = by_ends(&open)? {
        return Ok(Found { pair, torn: false });
    }
    let (mut pair, listed) = by_units(&open)?;
    let mut behind = what_follows(&open.log, &pair, sizes)?;
    // Behind the last pair's end there may be leftovers of Java's; what belongs there is copied again.
    if behind == Behind::Record && (pair.units == 0 || !is_last) {
        // The units are damaged, not the records.
        pair = by_records(&open, sizes, false)?;
        behind = what_follows(&open.log, &pair, sizes)?;
        tracing::warn!(path = %open.queue.path().display(), units = pair.units, "the units were made again from the records");
    }
    open.pair = pair;
    let torn = behind == Behind::Damage || listed > open.pair.units;
    if torn && !source.has(open.pair.next_or(next)) {
        // What is behind the first damage is nowhere else.
        open.pair = by_records(&open, sizes, true)?;
    }
    if torn || thorough {
        clear_behind(&open, sizes)?;
    }
    Ok(Found { pair: open.pair, torn })
}

/// Believes the units if the first and the last one have their records and nothing else follows.
fn by_ends(open: &OpenPair) -> io::Result<Option<Pair>> {
    let is_unit = |index: u64| Ok::<_, io::Error>(!open.units(index, 1)?.is_empty());
    let (mut low, mut high) = (0, open.pair.units);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_unit(middle)? { low = middle + 1 } else { high = middle }
    }
    let mut pair = Pair::empty(open.pair.start);
    for index in [Some(0), low.checked_sub(1)].into_iter().flatten() {
        let Some(unit) = open.units(index, 1)?.first().copied() else { return Ok(None) };
        let Ok((bytes, _)) = open.records(&[unit], 0) else { return Ok(None) };
        if intact(&unit, &bytes).is_none() {
            return Ok(None);
        }
        pair.add(&unit);
    }
    pair.units = low;
    let sizes = Sizes { log: open.pair.end - open.pair.start, queue: open.pair.units * BATCH_UNIT as u64 };
    let clean = what_follows(&open.log, &pair, sizes)? == Behind::Nothing && pair.first <= pair.last;
    Ok(clean.then_some(pair))
}

/// Takes the units whose records are intact, up to the first one that is not. Also how many units there are.
fn by_units(open: &OpenPair) -> io::Result<(Pair, u64)> {
    let mut pair = Pair::empty(open.pair.start);
    let mut listed = 0;
    let mut good = true;
    let walked = open.each(&mut |unit, record| {
        let follows = pair.is_followed_by(unit);
        good = good && follows && record.is_some();
        if good {
            pair.add(unit);
        }
        listed += 1;
        Ok(true)
    });
    match walked {
        // A unit that points nowhere.
        Err(e) if e.kind() == io::ErrorKind::InvalidData => Ok((pair, u64::MAX)),
        walked => walked.map(|()| (pair, listed)),
    }
}

/// Makes the units from the records, up to the first damage or with all intact records behind it as well.
fn by_records(open: &OpenPair, sizes: Sizes, behind_damage: bool) -> io::Result<Pair> {
    let mut pair = Pair::empty(open.pair.start);
    let mut units = Vec::new();
    let mut at = pair.start;
    loop {
        let Some(bytes) = record_at(&open.log, pair.start, at, sizes)? else {
            match next_mark(&open.log, at - pair.start, sizes)?.filter(|_| behind_damage) {
                Some(next) => at = pair.start + next,
                None => break,
            }
            continue;
        };
        let Ok(record) = RecordView::parse(&bytes) else { break };
        let unit = BatchUnit {
            physical_offset: at,
            size: bytes.len() as u32,
            tags_code: crate::facts::tags_code(record.properties),
            store_time: record.store_timestamp,
            base: record.queue_offset,
            count: 1,
        };
        let room = ((pair.units + 1) * BATCH_UNIT as u64) < sizes.queue;
        let follows = pair.is_followed_by(&unit);
        if !room || !follows && !behind_damage {
            break;
        }
        at = unit.physical_end();
        if follows {
            units.extend_from_slice(&unit.encode());
            pair.add(&unit);
        }
    }
    units.resize(sizes.queue as usize, 0);
    open.queue.write_all_at(&units, 0)?;
    open.queue.sync()?;
    Ok(pair)
}

/// The next place behind `at` that looks like the beginning of a record; both are bytes of the file.
fn next_mark(log: &StoreFile, at: u64, sizes: Sizes) -> io::Result<Option<u64>> {
    // Both marks share their first three bytes; the record's length comes before.
    let mark = &MAGIC_V1.to_be_bytes()[..3];
    let mut from = at + 1;
    let mut chunk = vec![0; SEARCH_BYTES];
    while from < sizes.log {
        let have = log.read_at(&mut chunk, from)?;
        let bytes = chunk.get(..have).unwrap_or_default();
        let found = memchr::memmem::find_iter(bytes, mark).find_map(|found| found.checked_sub(4));
        if let Some(found) = found {
            return Ok(Some(from + found as u64));
        }
        // A mark may lie across the end of what was read.
        from += (have as u64).saturating_sub(6).max(1);
    }
    Ok(None)
}

/// What stands in the log behind a pair's last record.
#[derive(Debug, PartialEq, Eq)]
enum Behind {
    /// The end of the file, its blank, or bytes never written.
    Nothing,
    Record,
    Damage,
}

fn what_follows(log: &StoreFile, pair: &Pair, sizes: Sizes) -> io::Result<Behind> {
    let at = pair.end - pair.start;
    let mut head = [0; 8];
    let have = log.read_at(&mut head, at)?;
    let head = head.get(..have).unwrap_or_default();
    Ok(match scan(head, false) {
        Scan::Blank(_) => Behind::Nothing,
        _ if head.len() < 8 || head == [0; 8] => Behind::Nothing,
        _ => match record_at(log, pair.start, pair.end, sizes)? {
            Some(_) => Behind::Record,
            None => Behind::Damage,
        },
    })
}

/// The intact record at an offset of the log, in the file that begins at `start`.
fn record_at(log: &StoreFile, start: u64, offset: u64, sizes: Sizes) -> io::Result<Option<Vec<u8>>> {
    let at = offset - start;
    let mut length = [0; 4];
    log.read_at(&mut length, at)?;
    let size = u32::from_be_bytes(length);
    if size == 0 || at + u64::from(size) > sizes.log {
        return Ok(None);
    }
    let mut bytes = vec![0; size as usize];
    log.read_at(&mut bytes, at)?;
    let whole = record_in(&bytes, offset).is_some();
    Ok(whole.then_some(bytes))
}

/// Makes everything behind a pair's last record zeros.
fn clear_behind(open: &OpenPair, sizes: Sizes) -> io::Result<()> {
    let clear = |file: &StoreFile, from: u64, size: u64| {
        file.file().set_len(from)?;
        file.file().set_len(size)
    };
    clear(&open.log, open.pair.end - open.pair.start, sizes.log)?;
    clear(&open.queue, open.pair.units * BATCH_UNIT as u64, sizes.queue)
}

/// Removes the records at and after a queue offset.
pub(super) fn cut_at(folder: &Folder, sizes: Sizes, pairs: &mut Vec<Pair>, offset: i64) -> io::Result<()> {
    while let Some(last) = pairs.last().filter(|pair| pair.last >= offset) {
        if last.first >= offset {
            folder.remove_pair(last.start)?;
            pairs.pop();
            continue;
        }
        let mut open = OpenPair::open(folder, last)?;
        let units = open.index_of(offset)?;
        let kept = units.checked_sub(1).map(|at| open.units(at, 1)).transpose()?.unwrap_or_default();
        let Some(unit) = kept.first() else { return Err(io::ErrorKind::InvalidData.into()) };
        open.pair = Pair { units, last: unit.base, end: unit.physical_end(), ..open.pair };
        clear_behind(&open, sizes)?;
        pairs.pop();
        pairs.push(open.pair);
    }
    Ok(())
}

/// A crash took the end of the commit log, whose messages had been copied. Not so when the queue lost units of messages that are
/// older than the commit log: then this is the only place that has them.
fn is_ahead(folder: &Folder, source: &Source<'_>, pairs: &[Pair], end: i64) -> io::Result<bool> {
    let Some(last) = pairs.last().filter(|pair| pair.last >= end) else { return Ok(false) };
    let unit = OpenPair::open(folder, last)?.units(last.units.saturating_sub(1), 1)?;
    let begins = source.store.record_at(source.store.log.min_offset());
    let begins = begins.and_then(|bytes| Some(RecordView::parse(&bytes).ok()?.store_timestamp));
    Ok(begins.zip(unit.first()).is_none_or(|(begins, unit)| unit.store_time >= begins))
}

/// Java leaves the compacted log of a deleted topic behind. Its messages have other store times than the queue's.
fn is_of_another_life(folder: &Folder, source: &Source<'_>, pairs: &[Pair]) -> io::Result<bool> {
    let Some(last) = pairs.last().filter(|pair| pair.last >= source.queue.min()) else { return Ok(false) };
    let Some(there) = source.store.queues.unit(source.queue, last.last) else { return Ok(false) };
    let Some(bytes) = source.store.record(&there, false) else { return Ok(false) };
    let here = OpenPair::open(folder, last)?.units(last.units.saturating_sub(1), 1)?;
    let there = RecordView::parse(&bytes).map_err(io::Error::other)?;
    Ok(here.first().is_none_or(|here| here.store_time != there.store_timestamp))
}
