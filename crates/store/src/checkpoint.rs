//! The `checkpoint` file: how far files were flushed, so that recovery need not read everything.
//!
//! Java's five longs stand at the start. At byte 1024, where Java never writes, we keep more: exact offsets, and the machine's
//! boot id. With the same boot id only the process died, and everything that was handed to the kernel is still there; with
//! another one only what was synced counts. Our part repeats Java's longs: when they differ, Java has used the store since
//! and our part is ignored.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::file::{Faults, StoreFile};

const SIZE: u64 = 4096;
pub(crate) const OURS_AT: usize = 1024;
const OURS_LEN: usize = 192;
const MAGIC: u64 = 0x524D_5152_5354_4F32;

/// Java's part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// Store time of the last flushed message.
    pub(crate) physic: i64,
    /// Store time of the last message whose queue unit is flushed.
    pub(crate) logics: i64,
    /// End time of the last full, flushed index file.
    pub(crate) index: i64,
    pub(crate) master_flushed: i64,
    pub(crate) confirm: i64,
}

impl Times {
    /// Messages stored up to this time are surely on the disk, with their units.
    pub(crate) fn safe(&self) -> i64 {
        (self.physic.min(self.logics) - 3000).max(0)
    }
}

/// Our part. All offsets are physical.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Units of all messages below were written to the queue files.
    pub(crate) queued: u64,
    /// Units of all messages below are on the disk, and so are the messages.
    pub(crate) durable: u64,
    /// The commit log is on the disk up to here.
    pub(crate) flushed: u64,
    /// Keys of all messages below are in the index files.
    pub(crate) indexed: u64,
    /// Last message in the index files.
    pub(crate) index_last: u64,
    /// Full index files whose last message lies here or before are on the disk.
    pub(crate) index_flushed: u64,
    /// Queues that had files.
    pub(crate) queues: u32,
    /// Sum of the numbers of their last files.
    pub(crate) last_files: u64,
    /// The store was closed in order.
    pub(crate) clean: bool,
    pub(crate) boot: [u8; 16],
}

pub(crate) struct Checkpoint {
    file: StoreFile,
    pub(crate) times: Times,
}

impl Checkpoint {
    /// Opens or makes the file. Our part is `None` when it is missing, damaged or older than Java's.
    pub(crate) fn open(path: &Path, faults: Option<Arc<dyn Faults>>) -> io::Result<(Self, Option<Progress>)> {
        let file = StoreFile::create(path, SIZE, faults)?;
        let mut bytes = [0; OURS_AT + OURS_LEN];
        file.read_at(&mut bytes, 0)?;
        let (times, ours) = read(&bytes);
        Ok((Checkpoint { file, times }, ours))
    }

    /// Reads the file as it is, however short.
    pub(crate) fn look(path: &Path) -> io::Result<(Times, Option<Progress>)> {
        Ok(read(&fs::read(path)?))
    }

    /// Writes both parts in one call.
    pub(crate) fn write(&self, progress: &Progress) -> io::Result<()> {
        let mut bytes = vec![0; OURS_AT + OURS_LEN];
        let t = &self.times;
        let head: Vec<u8> =
            [t.physic, t.logics, t.index, t.master_flushed, t.confirm].iter().flat_map(|v| v.to_be_bytes()).collect();
        bytes[..head.len()].copy_from_slice(&head);
        let mut ours = Vec::with_capacity(OURS_LEN);
        let p = progress;
        for value in [MAGIC, p.queued, p.durable, p.flushed, p.indexed, p.index_last, p.index_flushed] {
            ours.extend_from_slice(&value.to_be_bytes());
        }
        ours.extend_from_slice(&progress.queues.to_be_bytes());
        ours.extend_from_slice(&u32::from(progress.clean).to_be_bytes());
        ours.extend_from_slice(&progress.boot);
        ours.extend_from_slice(&progress.last_files.to_be_bytes());
        ours.extend_from_slice(&head);
        ours.extend_from_slice(&crc32fast::hash(&ours).to_be_bytes());
        bytes[OURS_AT..OURS_AT + ours.len()].copy_from_slice(&ours);
        self.file.write_all_at(&bytes, 0)
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

fn read(bytes: &[u8]) -> (Times, Option<Progress>) {
    let times = Reader(bytes).times();
    (times, bytes.get(OURS_AT..).and_then(|ours| read_progress(ours, &times)))
}

fn read_progress(bytes: &[u8], times: &Times) -> Option<Progress> {
    read_marks(bytes).filter(|(_, seen)| seen == times).map(|(progress, _)| progress)
}

/// Our part, and Java's as it was when ours was written.
fn read_marks(bytes: &[u8]) -> Option<(Progress, Times)> {
    let mut reader = Reader(bytes);
    if reader.u64() != MAGIC {
        return None;
    }
    let (queued, durable, flushed) = (reader.u64(), reader.u64(), reader.u64());
    let (indexed, index_last, index_flushed) = (reader.u64(), reader.u64(), reader.u64());
    let (queues, clean) = (reader.u32(), reader.u32() == 1);
    let boot = reader.take();
    let last_files = reader.u64();
    let seen = reader.times();
    let covered = bytes.get(..bytes.len() - reader.0.len())?;
    let intact = reader.u32() == crc32fast::hash(covered);
    let progress =
        Progress { queued, durable, flushed, indexed, index_last, index_flushed, queues, last_files, clean, boot };
    intact.then_some((progress, seen))
}

/// Whether a file has our part, and whether the part's sum is right.
pub(crate) fn our_part(bytes: &[u8]) -> Option<bool> {
    let ours = bytes.get(OURS_AT..)?;
    (Reader(ours).u64() == MAGIC).then(|| read_marks(ours).is_some())
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((now, later)) = self.0.split_first_chunk::<N>() else { return [0; N] };
        self.0 = later;
        *now
    }

    fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    fn times(&mut self) -> Times {
        let mut next = || self.u64() as i64;
        Times { physic: next(), logics: next(), index: next(), master_flushed: next(), confirm: next() }
    }
}

/// Never counts as the same boot.
pub(crate) const NO_BOOT: [u8; 16] = [0; 16];

/// The id the kernel chose at its start; `NO_BOOT` where there is none.
pub(crate) fn boot_id() -> [u8; 16] {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: Vec<u8> = text.bytes().filter_map(|b| (b as char).to_digit(16).map(|d| d as u8)).collect();
    let mut id = NO_BOOT;
    if digits.len() == 32 {
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_progress() -> Progress {
        Progress {
            queued: 9,
            durable: 8,
            flushed: 7,
            indexed: 6,
            index_last: 6,
            index_flushed: 4,
            queues: 5,
            last_files: 4,
            clean: true,
            boot: [3; 16],
        }
    }

    #[test]
    fn both_parts_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("checkpoint");
        let (mut checkpoint, ours) = Checkpoint::open(&path, None).unwrap();
        assert_eq!(ours, None);
        checkpoint.times = Times { physic: 1, logics: 2, index: 3, master_flushed: 4, confirm: 5 };
        checkpoint.write(&some_progress()).unwrap();
        let (again, ours) = Checkpoint::open(&path, None).unwrap();
        assert_eq!(again.times, checkpoint.times);
        assert_eq!(ours, Some(some_progress()));
        assert_eq!(fs::metadata(&path).unwrap().len(), 4096);
    }

    #[test]
    fn our_part_is_ignored_when_java_has_moved_its_own_or_a_byte_is_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("checkpoint");
        let (mut checkpoint, _) = Checkpoint::open(&path, None).unwrap();
        checkpoint.times.physic = 77;
        checkpoint.write(&some_progress()).unwrap();
        checkpoint.file.write_all_at(&78_i64.to_be_bytes(), 0).unwrap();
        let (again, ours) = Checkpoint::open(&path, None).unwrap();
        assert_eq!((again.times.physic, ours), (78, None));
        checkpoint.write(&some_progress()).unwrap();
        checkpoint.file.write_all_at(&[0xFF], OURS_AT as u64 + 20).unwrap();
        assert_eq!(Checkpoint::open(&path, None).unwrap().1, None);
    }

    #[test]
    fn the_safe_time_is_three_seconds_before_the_older_one() {
        assert_eq!(Times { physic: 10_000, logics: 8_000, ..Times::default() }.safe(), 5_000);
        assert_eq!(Times { physic: 10_000, ..Times::default() }.safe(), 0);
    }
}
