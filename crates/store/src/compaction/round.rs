//! One round of compaction: which messages stay, and the new files.

use std::collections::HashMap;
use std::io;

use protocol::record::RecordView;

use super::files::Pair;
use super::log::CompactionLog;
use super::pair::{OpenPair, Writer, key_of};
use crate::batch_unit::BatchUnit;

/// What a key costs in the table beside its own bytes, roughly.
const ENTRY_BYTES: usize = 64;

/// The last offset of each key among the messages a round looks at.
pub(super) struct LastOffsets {
    by_key: HashMap<Box<[u8]>, i64>,
    /// Offset of the last message that was put.
    last: i64,
    room: usize,
}

impl LastOffsets {
    /// A table that takes at most `bytes`, but always one key.
    pub(super) fn new(bytes: usize) -> Self {
        LastOffsets { by_key: HashMap::new(), last: -1, room: bytes }
    }

    /// Notes a message. False when the table is full: the messages from this one on are left to the next round.
    pub(super) fn put(&mut self, key: &[u8], offset: i64) -> bool {
        match self.by_key.get_mut(key) {
            Some(last) => *last = offset,
            None => {
                let needed = key.len() + ENTRY_BYTES;
                if needed > self.room && !self.by_key.is_empty() {
                    return false;
                }
                self.room = self.room.saturating_sub(needed);
                self.by_key.insert(key.into(), offset);
            }
        }
        self.last = offset;
        true
    }

    /// Whether a message stays: it was not looked at, or it is the last of its key and no tombstone (a message without a body).
    pub(super) fn keeps(&self, key: &[u8], offset: i64, has_body: bool) -> bool {
        offset > self.last || has_body && self.by_key.get(key).is_none_or(|last| offset >= *last)
    }
}

/// What a round did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompactionRound {
    pub kept: u64,
    pub dropped: u64,
}

impl CompactionLog {
    /// Compacts all files but the last, if they hold messages no round has looked at. `flushed` says whether the commit log has
    /// a message on the disk: one that a crash may take away replaces nothing yet. `stop` ends it without a result.
    pub(super) fn compact(
        &self,
        flushed: &dyn Fn(i64) -> bool,
        stop: &dyn Fn() -> bool,
    ) -> io::Result<CompactionRound> {
        let _one = self.round.lock();
        let Some(mut old) = self.full_pairs() else { return Ok(CompactionRound::default()) };
        old.truncate(old.partition_point(|pair| flushed(pair.last)));
        let position = self.position();
        if old.last().is_none_or(|pair| pair.last <= position) {
            return Ok(CompactionRound::default());
        }
        let offsets = self.last_offsets(&old, position, stop)?;
        let built = self.folder.compacting();
        built.remove()?;
        if let Some(kept) = self.all_stay(&old, &offsets, stop)? {
            self.set_position(offsets.last)?;
            return Ok(CompactionRound { kept, dropped: 0 });
        }
        let mut writer = Writer::new(&built, self.sizes, None);
        let mut round = CompactionRound::default();
        for pair in &old {
            self.each_record(pair, stop, &mut |unit, record| {
                if offsets.keeps(key_of(record), unit.base, !record.body.is_empty()) {
                    round.kept += 1;
                    writer.put(unit, record.bytes)?;
                } else {
                    round.dropped += 1;
                }
                Ok(true)
            })?;
        }
        let new = writer.finish_synced()?;
        self.swap(&old, new)?;
        built.remove()?;
        self.set_position(offsets.last)?;
        Ok(round)
    }

    fn last_offsets(&self, old: &[Pair], position: i64, stop: &dyn Fn() -> bool) -> io::Result<LastOffsets> {
        let mut offsets = LastOffsets::new(self.map_bytes);
        let mut full = false;
        for pair in old.iter().filter(|pair| pair.last > position) {
            self.each_record(pair, stop, &mut |unit, record| {
                full = full || unit.base > position && !offsets.put(key_of(record), unit.base);
                Ok(!full)
            })?;
            if full {
                tracing::info!(topic = %self.topic, queue = self.id, last = offsets.last, "maxOffsetMapSize is reached; the rest is left to the next round");
                break;
            }
        }
        Ok(offsets)
    }

    /// The number of messages when all of them stay. Looked at first: a round that changes nothing is to write nothing.
    fn all_stay(&self, old: &[Pair], offsets: &LastOffsets, stop: &dyn Fn() -> bool) -> io::Result<Option<u64>> {
        let mut kept = 0;
        for pair in old {
            let mut stays = true;
            self.each_record(pair, stop, &mut |unit, record| {
                stays = offsets.keeps(key_of(record), unit.base, !record.body.is_empty());
                kept += u64::from(stays);
                Ok(stays)
            })?;
            if !stays {
                return Ok(None);
            }
        }
        Ok(Some(kept))
    }

    fn each_record(
        &self,
        pair: &Pair,
        stop: &dyn Fn() -> bool,
        see: &mut dyn FnMut(&BatchUnit, &RecordView<'_>) -> io::Result<bool>,
    ) -> io::Result<()> {
        OpenPair::open(&self.folder, pair)?.each(&mut |unit, record| {
            if stop() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let Some(record) = record else {
                let path = self.folder.log_file(pair.start).display().to_string();
                let what = format!("{path}: the record at {} is damaged", unit.physical_offset);
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            };
            see(unit, &record)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages as key and body; offsets count from `first`. Returns the offsets that stay.
    fn kept(bytes: usize, position: i64, messages: &[(i64, &str, &str)]) -> (Vec<i64>, i64) {
        let mut offsets = LastOffsets::new(bytes);
        for (offset, key, _) in messages.iter().filter(|(offset, ..)| *offset > position) {
            if !offsets.put(key.as_bytes(), *offset) {
                break;
            }
        }
        let stays = |(offset, key, body): &&(i64, &str, &str)| offsets.keeps(key.as_bytes(), *offset, !body.is_empty());
        (messages.iter().filter(stays).map(|(offset, ..)| *offset).collect(), offsets.last)
    }

    const ROOM: usize = 1 << 20;

    #[test]
    fn the_last_message_of_each_key_stays() {
        let messages = [(0, "a", "1"), (1, "b", "1"), (2, "a", "2"), (3, "c", "1"), (4, "a", "3")];
        assert_eq!(kept(ROOM, -1, &messages), (vec![1, 3, 4], 4));
    }

    #[test]
    fn an_empty_body_removes_its_key_and_itself() {
        let messages = [(0, "a", "1"), (1, "b", "1"), (2, "a", ""), (3, "c", "")];
        assert_eq!(kept(ROOM, -1, &messages), (vec![1], 3));
        let again = [(0, "a", ""), (1, "a", "back")];
        assert_eq!(kept(ROOM, -1, &again), (vec![1], 1), "a later value brings the key back");
    }

    #[test]
    fn keys_are_the_whole_string() {
        let messages = [(0, "a b", "1"), (1, "a", "1"), (2, "b", "1"), (3, "b a", "1"), (4, "a b", "2")];
        assert_eq!(kept(ROOM, -1, &messages), (vec![1, 2, 3, 4], 4));
    }

    #[test]
    fn what_earlier_rounds_left_yields_to_newer_messages_only() {
        // 0 and 5 are left of the messages up to 9.
        let messages = [(0, "a", "1"), (5, "b", "1"), (10, "b", "2"), (11, "c", "1")];
        assert_eq!(kept(ROOM, 9, &messages), (vec![0, 10, 11], 11));
        assert_eq!(kept(ROOM, 11, &messages), (vec![0, 5, 10, 11], -1), "nothing new: nothing is touched");
    }

    #[test]
    fn a_full_table_leaves_the_rest_to_the_next_round() {
        let messages = [(0, "a", "1"), (1, "b", "1"), (2, "a", ""), (3, "c", "1"), (4, "b", ""), (5, "c", "2")];
        let two_keys = 2 * (ENTRY_BYTES + 1);
        assert_eq!(kept(two_keys, -1, &messages), (vec![1, 3, 4, 5], 2), "tombstones behind the last put stay too");
        let rest: Vec<_> = messages.into_iter().filter(|(offset, ..)| [1, 3, 4, 5].contains(offset)).collect();
        assert_eq!(kept(two_keys, 2, &rest), (vec![5], 5));
        assert_eq!(kept(0, -1, &messages), (vec![0, 1, 2, 3, 4, 5], 0), "one key is always taken");
    }
}
