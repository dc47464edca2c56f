//! The group: records of all callers, one behind another, waiting to be written by one call.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use protocol::record::{BLANK_HEAD, encode_blank};

use crate::batch_unit::BatchUnit;
use crate::consume_queue::ConsumeQueue;
use crate::index::KeyEntry;

/// A buffer that grew beyond this is not kept.
const KEEP_BYTES: usize = 8 << 20;

/// What a queue must learn of a record.
pub(crate) struct Entry {
    pub(crate) queue: Arc<ConsumeQueue>,
    pub(crate) unit: BatchUnit,
}

/// Bytes that go to one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) physical: u64,
    /// Where its bytes begin in the group's buffer; they end where the next run's begin.
    pub(crate) at: usize,
}

#[derive(Default)]
pub(crate) struct Group {
    pub(crate) bytes: Vec<u8>,
    pub(crate) runs: Vec<Run>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) keys: Vec<KeyEntry>,
    /// Physical range, blanks included.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Ticket of the last record.
    pub(crate) ticket: u64,
    pub(crate) messages: u64,
    pub(crate) last_store_time: i64,
}

impl Group {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > KEEP_BYTES {
            self.bytes = Vec::new();
        }
        self.runs.clear();
        self.entries.clear();
        self.keys.clear();
        self.messages = 0;
    }

    /// Each run with its bytes.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.runs.iter().enumerate().map(|(i, run)| {
            let end = self.runs.get(i + 1).map_or(self.bytes.len(), |next| next.at);
            (run.physical, self.bytes.get(run.at..end).unwrap_or_default())
        })
    }

    /// Gives the queue offsets back: nothing of this group was written.
    pub(crate) fn give_back_offsets(&self) {
        for entry in &self.entries {
            entry.queue.next.fetch_min(entry.unit.base, Ordering::AcqRel);
        }
    }
}

/// The state under the put lock.
pub(crate) struct Appender {
    pub(crate) group: Group,
    /// Physical offset of the next record.
    pub(crate) position: u64,
    /// `ticket - physical offset`; grows when written bytes are taken back, so that no ticket is given twice.
    pub(crate) shift: u64,
    file_size: u64,
}

impl Appender {
    pub(crate) fn new(position: u64, file_size: u64) -> Self {
        Appender { group: Group::default(), position, shift: 0, file_size }
    }

    pub(crate) fn ticket(&self) -> u64 {
        self.position + self.shift
    }

    /// Makes room for `len` bytes that must lie in one file, ending the file with a blank when they do not fit, and returns
    /// where they will lie. The caller encodes them into the group next.
    pub(crate) fn place(&mut self, len: usize) -> u64 {
        if self.group.is_empty() {
            self.group.start = self.position;
        }
        let room = self.file_size - self.position % self.file_size;
        let group = &mut self.group;
        if len as u64 + BLANK_HEAD as u64 > room {
            if group.is_empty() {
                group.runs.push(Run { physical: self.position, at: 0 });
            }
            encode_blank(&mut group.bytes, room as u32);
            self.position += room;
            group.runs.push(Run { physical: self.position, at: group.bytes.len() });
        } else if group.is_empty() {
            group.runs.push(Run { physical: self.position, at: 0 });
        }
        self.position
    }

    /// The bytes are in the group.
    pub(crate) fn placed(&mut self, len: usize, store_time: i64) -> u64 {
        self.position += len as u64;
        let ticket = self.ticket();
        self.group.end = self.position;
        self.group.ticket = ticket;
        self.group.messages += 1;
        self.group.last_store_time = store_time;
        ticket
    }

    /// Everything behind `written` was refused. Returns the tickets concerned: `(after, up to)`.
    pub(crate) fn take_back(&mut self, written: u64) -> (u64, u64) {
        let to = self.ticket();
        let from = written + self.shift;
        self.group.give_back_offsets();
        self.group.clear();
        self.shift += self.position - written;
        self.position = written;
        (from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(appender: &mut Appender, len: usize) -> u64 {
        let at = appender.place(len);
        appender.group.bytes.extend(std::iter::repeat_n(1, len));
        appender.placed(len, 0);
        at
    }

    #[test]
    fn a_record_that_would_leave_less_than_eight_bytes_goes_to_the_next_file() {
        let mut appender = Appender::new(0, 1000);
        assert_eq!(put(&mut appender, 892), 0);
        assert_eq!(put(&mut appender, 100), 892, "exactly 8 bytes stay free");
        assert_eq!(put(&mut appender, 100), 1000);
        let parts: Vec<(u64, Vec<u8>)> = appender.group.parts().map(|(at, b)| (at, b.to_vec())).collect();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].1.len(), 1000);
        assert_eq!(parts[0].1[992..], [0, 0, 0, 8, 0xCB, 0xD4, 0x31, 0x94]);
        assert_eq!((parts[1].0, parts[1].1.len()), (1000, 100));

        let mut appender = Appender::new(0, 1000);
        put(&mut appender, 893);
        assert_eq!(put(&mut appender, 100), 1000, "7 bytes would stay free");
        let blank = appender.group.parts().next().unwrap().1[893..].to_vec();
        assert_eq!(blank, [0, 0, 0, 107, 0xCB, 0xD4, 0x31, 0x94]);
    }

    #[test]
    fn tickets_never_repeat() {
        let mut appender = Appender::new(5000, 10_000);
        put(&mut appender, 100);
        put(&mut appender, 100);
        assert_eq!(appender.ticket(), 5200);
        assert_eq!(appender.take_back(5000), (5000, 5200));
        assert_eq!(put(&mut appender, 100), 5000, "the place is used again");
        assert_eq!(appender.ticket(), 5300);
        assert_eq!(appender.take_back(5000), (5200, 5300));
    }
}
