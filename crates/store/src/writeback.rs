//! Asking the kernel to begin to write.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;

/// Begins to write a range of a file to the disk, and does not wait for it. It promises nothing: a sync must follow, which also
/// reports what went wrong.
pub(crate) fn start(file: &File, from: u64, len: u64) {
    #[cfg(target_os = "linux")]
    // SAFETY: the call touches no memory of this process, and the descriptor is open as long as `file` is borrowed.
    unsafe {
        libc::sync_file_range(file.as_raw_fd(), from as i64, len as i64, libc::SYNC_FILE_RANGE_WRITE);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file.as_raw_fd(), from, len);
}
