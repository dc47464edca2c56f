//! What waits to be written: short frames copied together, long bodies by reference.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::task::Waker;

use bytes::{Buf, Bytes, BytesMut};

use crate::{Body, CloseReason, buffer_pool};

/// Bodies up to this many bytes are copied behind their header; a copy of that size is cheaper than one more slice.
const COPIED_BODY: usize = 4 * 1024;
/// How many slices one `writev` takes.
pub(crate) const SLICES: usize = 64;

/// Bytes in order: first the queue, then the tail.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    queue: VecDeque<Bytes>,
    tail: BytesMut,
    bytes: usize,
}

impl Segments {
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends what `write` writes.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut BytesMut)) {
        if self.tail.capacity() == 0 {
            self.tail = buffer_pool::take_write();
        }
        let before = self.tail.len();
        write(&mut self.tail);
        self.bytes += self.tail.len() - before;
    }

    pub(crate) fn push_body(&mut self, body: Body) {
        match body {
            Body::Empty => {}
            Body::One(bytes) => self.push(bytes),
            Body::Many(list) => list.into_iter().for_each(|bytes| self.push(bytes)),
        }
    }

    fn push(&mut self, bytes: Bytes) {
        if bytes.len() <= COPIED_BODY {
            self.write(|out| out.extend_from_slice(&bytes));
            return;
        }
        if !self.tail.is_empty() {
            self.queue.push_back(self.tail.split().freeze());
        }
        self.bytes += bytes.len();
        self.queue.push_back(bytes);
    }

    pub(crate) fn slices<'a>(&'a self, into: &mut [IoSlice<'a>; SLICES]) -> usize {
        let mut count = 0;
        for chunk in self.queue.iter().map(|chunk| &chunk[..]).chain(std::iter::once(&self.tail[..])) {
            if count == SLICES {
                break;
            }
            if !chunk.is_empty() {
                into[count] = IoSlice::new(chunk);
                count += 1;
            }
        }
        count
    }

    /// The only chunk, when there is just one.
    pub(crate) fn single(&self) -> Option<&[u8]> {
        self.queue.is_empty().then_some(&self.tail[..])
    }

    /// Drops `count` written bytes off the front.
    pub(crate) fn advance(&mut self, mut count: usize) {
        self.bytes = self.bytes.saturating_sub(count);
        while count > 0 {
            let Some(front) = self.queue.front_mut() else {
                self.tail.advance(count.min(self.tail.len()));
                break;
            };
            if front.len() > count {
                front.advance(count);
                break;
            }
            count -= front.len();
            self.queue.pop_front();
        }
        if self.bytes == 0 {
            self.release();
        }
    }

    /// Gives the memory of an emptied list back.
    fn release(&mut self) {
        if self.tail.capacity() > 0 {
            buffer_pool::give_write(std::mem::take(&mut self.tail));
        }
        if self.queue.capacity() > SLICES {
            self.queue = VecDeque::new();
        }
    }
}

/// The half of a connection that other threads append to.
#[derive(Debug, Default)]
pub(crate) struct Out {
    pub(crate) segments: Segments,
    /// Bytes that the connection's task has taken and the kernel has not.
    pub(crate) in_write: usize,
    /// Set while the task sleeps and would want to know of new bytes. Taken by the first who appends, so that one
    /// sleep is ended once.
    pub(crate) waker: Option<Waker>,
    /// The task waits for the socket to take more, so that new bytes need not wake it.
    pub(crate) blocked: bool,
    /// Someone wants the connection closed once what was appended before has been offered to the kernel.
    pub(crate) closing: Option<CloseReason>,
    /// The task has ended: nothing is taken any more.
    pub(crate) closed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(segments: &mut Segments, step: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while !segments.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = segments.slices(&mut slices);
            let flat: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.iter().copied()).collect();
            let taken = step.min(flat.len());
            all.extend_from_slice(&flat[..taken]);
            segments.advance(taken);
        }
        all
    }

    #[test]
    fn order_is_kept_whatever_the_kernel_takes() {
        for step in [1, 7, 4096, 5000, 100_000] {
            let mut segments = Segments::default();
            let mut expected = Vec::new();
            for round in 0u8..5 {
                segments.write(|out| out.extend_from_slice(&[round; 10]));
                expected.extend_from_slice(&[round; 10]);
                let long = vec![round + 100; 5000];
                let short = vec![round + 50; 100];
                expected.extend_from_slice(&long);
                expected.extend_from_slice(&short);
                segments.push_body(Body::Many(vec![long.into(), short.into()]));
            }
            assert_eq!(segments.bytes(), expected.len());
            assert_eq!(drained(&mut segments, step), expected);
        }
    }
}
