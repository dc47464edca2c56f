//! Buffers that live with the thread and not with the connection, so that thousands of idle connections hold none.

use std::cell::RefCell;

use bytes::BytesMut;

/// What one read takes at most, in bytes, unless a longer frame is under way.
pub(crate) const READ_BYTES: usize = 64 * 1024;
/// Room for a few dozen short answers.
const WRITE_BYTES: usize = 16 * 1024;
/// Longer answer buffers are freed and not kept.
const WRITE_KEPT_BYTES: usize = 256 * 1024;
const KEPT_PER_THREAD: usize = 8;

thread_local! {
    static READ: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
    static WRITE: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
}

pub(crate) fn take_read() -> BytesMut {
    READ.with_borrow_mut(Vec::pop).unwrap_or_else(|| BytesMut::with_capacity(READ_BYTES))
}

/// Takes a read buffer back if nothing refers to it any more.
pub(crate) fn give_read(mut buffer: BytesMut) {
    buffer.clear();
    if !buffer.try_reclaim(READ_BYTES) || buffer.capacity() > READ_BYTES * 2 {
        return;
    }
    READ.with_borrow_mut(|kept| {
        if kept.len() < KEPT_PER_THREAD {
            kept.push(buffer);
        }
    });
}

pub(crate) fn take_write() -> BytesMut {
    WRITE.with_borrow_mut(Vec::pop).unwrap_or_else(|| BytesMut::with_capacity(WRITE_BYTES))
}

pub(crate) fn give_write(mut buffer: BytesMut) {
    buffer.clear();
    if !buffer.try_reclaim(WRITE_BYTES) || buffer.capacity() > WRITE_KEPT_BYTES {
        return;
    }
    WRITE.with_borrow_mut(|kept| {
        if kept.len() < KEPT_PER_THREAD {
            kept.push(buffer);
        }
    });
}
