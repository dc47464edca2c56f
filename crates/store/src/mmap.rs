//! Mappings of the store's files: the one place with `unsafe`.
//!
//! A mapping is undefined behaviour in Rust's eyes when somebody changes the file under a borrowed slice, and a bus error when
//! somebody shortens it. Both are kept out like this: the directory is locked, so no other broker writes; the store hands out
//! slices of the commit log only below `written`, which it never writes again; files are cut only during recovery, before
//! anything is handed out; a file is unlinked, not shortened, by retention, and its pages live as long as the last slice.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use bytes::Bytes;
use memmap2::{Advice, Mmap, MmapMut, MmapOptions};

/// Maps the first `len` bytes read-only. Slices of the result share the mapping, which ends with the last of them.
pub(crate) fn map_read(file: &File, len: usize) -> io::Result<Bytes> {
    // SAFETY: see the module's text.
    let map: Mmap = unsafe { MmapOptions::new().len(len).map(file)? };
    Ok(Bytes::from_owner(map))
}

/// Maps the first `len` bytes for reading and writing in random order.
pub(crate) fn map_write(file: &File, len: usize) -> io::Result<MmapMut> {
    // SAFETY: see the module's text; index files are touched by the index alone, under its lock, and their blocks are
    // allocated before they are written through the mapping, so a full disk is an error there and not a bus error here.
    let map = unsafe { MmapOptions::new().len(len).map_mut(file)? };
    let _ = map.advise(Advice::Random);
    Ok(map)
}
