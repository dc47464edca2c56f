//! The queue files that are open, a bounded number of them.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use rustix::io::ReadWriteFlags;

use crate::consume_queue::ConsumeQueue;
use crate::file::StoreFile;

/// By queue and first byte of the file.
pub(super) struct OpenFiles {
    files: HashMap<(u32, u64), (Arc<StoreFile>, u64)>,
    clock: u64,
    limit: usize,
}

impl OpenFiles {
    pub(super) fn new(limit: usize) -> Self {
        OpenFiles { files: HashMap::new(), clock: 0, limit: limit.max(16) }
    }

    pub(super) fn get(&mut self, key: (u32, u64)) -> Option<Arc<StoreFile>> {
        self.clock += 1;
        let (file, used) = self.files.get_mut(&key)?;
        *used = self.clock;
        Some(file.clone())
    }

    /// Closes the half that was used least when there are too many.
    pub(super) fn insert(&mut self, key: (u32, u64), file: Arc<StoreFile>) {
        if self.files.len() >= self.limit {
            let mut used: Vec<u64> = self.files.values().map(|(_, used)| *used).collect();
            let middle = used.len() / 2;
            let (_, limit, _) = used.select_nth_unstable(middle);
            let limit = *limit;
            self.files.retain(|_, (_, used)| *used > limit);
        }
        self.clock += 1;
        self.files.insert(key, (file, self.clock));
    }

    pub(super) fn close(&mut self, key: (u32, u64)) {
        self.files.remove(&key);
    }

    /// Closes all files of a queue.
    pub(super) fn close_queue(&mut self, queue: &ConsumeQueue) {
        self.files.retain(|(of, _), _| *of != queue.uid && *of != queue.ext_uid());
    }

    pub(super) fn close_all(&mut self) {
        self.files.clear();
    }
}

/// Reads all of `buf`. False when that would wait for the disk and the caller may not.
pub(super) fn read_resident(file: &StoreFile, buf: &mut [u8], at: u64, may_block: bool) -> io::Result<bool> {
    if !may_block {
        let read = rustix::io::preadv2(file.file(), &mut [io::IoSliceMut::new(buf)], at, ReadWriteFlags::NOWAIT);
        match read {
            Ok(n) if n == buf.len() => return Ok(true),
            Ok(_) | Err(rustix::io::Errno::AGAIN) => return Ok(false),
            // The file system does not know the flag: a read may wait then, which is better than no read.
            Err(_) => {}
        }
    }
    file.read_at(buf, at).map(|_| true)
}
