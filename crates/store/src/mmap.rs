//! Mappings of the store's files: the one place with `unsafe`.
//!
//! A mapping is undefined behaviour in Rust's eyes when somebody changes the file under a borrowed slice, and a bus error when
//! somebody shortens it. Both are kept out like this: the directory is locked, so no other broker writes; the store hands out
//! slices of the commit log only below `written`, which it never writes again; files are cut only during recovery, before
//! anything is handed out; a file is unlinked, not shortened, by retention, and its pages live as long as the last slice.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use memmap2::{Advice, Mmap, MmapMut, MmapOptions, UncheckedAdvice};

/// Bytes of a page of memory.
pub(crate) fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

/// A file that is mapped for reading. Slices of its bytes share the mapping, which ends with the last of them.
pub(crate) struct ReadMap {
    map: Arc<Mmap>,
    bytes: Bytes,
}

/// The mapping as the owner of its bytes.
struct Owner(Arc<Mmap>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl ReadMap {
    /// Maps the first `len` bytes.
    pub(crate) fn new(file: &File, len: usize) -> io::Result<Self> {
        // SAFETY: see the module's text.
        let map: Mmap = unsafe { MmapOptions::new().len(len).map(file)? };
        let map = Arc::new(map);
        Ok(ReadMap { bytes: Bytes::from_owner(Owner(map.clone())), map })
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Whether each page of `len` bytes from `at` on, where a page begins, is in memory. Where the system cannot tell, all are
    /// taken to be.
    pub(crate) fn resident(&self, at: usize, len: usize) -> Vec<bool> {
        let len = len.min(self.map.len().saturating_sub(at));
        let mut pages = vec![1_u8; len.div_ceil(page_size() as usize)];
        #[cfg(target_os = "linux")]
        // SAFETY: the range lies in the mapping, and `pages` has a byte for each of its pages. The call looks at no contents.
        unsafe {
            let begin = self.map.as_ptr().cast_mut().add(at);
            if libc::mincore(begin.cast(), len, pages.as_mut_ptr()) != 0 {
                pages.fill(1);
            }
        }
        pages.into_iter().map(|page| page & 1 == 1).collect()
    }

    /// Takes the first `len` bytes out of the process' page table, so that they do not count as its memory. They stay in the page
    /// cache, and who reads them again finds them there.
    pub(crate) fn release(&self, len: usize) {
        // SAFETY: the mapping is a shared one of a file and is never written: the kernel gives the same bytes again.
        let _ = unsafe { self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, 0, len.min(self.map.len())) };
    }
}

/// Maps the first `len` bytes for reading and writing in random order.
pub(crate) fn map_write(file: &File, len: usize) -> io::Result<MmapMut> {
    // SAFETY: see the module's text; index files are touched by the index alone, under its lock, and their blocks are
    // allocated before they are written through the mapping, so a full disk is an error there and not a bus error here.
    let map = unsafe { MmapOptions::new().len(len).map_mut(file)? };
    let _ = map.advise(Advice::Random);
    Ok(map)
}
