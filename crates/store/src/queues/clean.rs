//! Removing queues, old files of queues, and what lies behind the commit log's end.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Queues;
use super::save::Unsynced;
use crate::Unit;
use crate::commit_log::file_name;
use crate::consume_queue::ConsumeQueue;
use crate::folders::if_there;

/// Units read at once where fillers are passed over.
const FILLERS_AT_ONCE: usize = 1024;

impl Queues {
    /// From here on nothing is put into a topic's queues, nor into new ones of its name, until `delete_topic` has removed them.
    /// False when there are none.
    pub(crate) fn kill_topic(&self, topic: &str) -> bool {
        let topics = self.topics.read();
        let Some(topic) = topics.get(topic) else { return false };
        let queues = topic.queues.write();
        topic.dead.store(true, Ordering::Relaxed);
        queues.values().for_each(|queue| queue.kill());
        true
    }

    /// Removes a topic's queues and their files. After an error it may be tried again, and its queues are dead until then: new
    /// ones must not be written into what is left of the files.
    pub(crate) fn delete_topic(&self, topic: &str) -> io::Result<bool> {
        let mut io = self.io.lock();
        if !self.kill_topic(topic) {
            return Ok(false);
        }
        for queue in self.queues_of(topic) {
            self.forget(&queue, &mut io);
        }
        for root in [&self.plain.root, &self.batch.root, &self.ext_root] {
            remove_dir(&root.join(topic))?;
            io.dirs.push(root.clone());
        }
        self.topics.write().remove(topic);
        Ok(true)
    }

    /// Removes one queue and its files.
    pub(crate) fn delete_queue(&self, queue: &ConsumeQueue) -> io::Result<()> {
        let mut io = self.io.lock();
        if let Some(topic) = self.topics.read().get(&queue.topic) {
            topic.queues.write().retain(|_, q| q.uid != queue.uid);
        }
        self.topics.write().retain(|_, t| !t.queues.read().is_empty());
        self.forget(queue, &mut io);
        self.remove_dirs(queue, &mut io)
    }

    /// Until the folder above is synced a crash would bring them back.
    fn remove_dirs(&self, queue: &ConsumeQueue, io: &mut Unsynced) -> io::Result<()> {
        for dir in [self.dir(queue), self.ext_dir(queue)] {
            remove_dir(&dir)?;
            io.dirs.extend(dir.parent().map(Path::to_path_buf));
        }
        Ok(())
    }

    /// Empties a queue, so that it begins at 0 again.
    pub(crate) fn restart(&self, queue: &ConsumeQueue) -> io::Result<()> {
        let mut io = self.io.lock();
        io.forget(queue);
        self.open.lock().close_queue(queue);
        self.remove_dirs(queue, &mut io)?;
        queue.reset(Vec::new(), 0, None);
        queue.state().ext = None;
        Ok(())
    }

    fn forget(&self, queue: &ConsumeQueue, io: &mut Unsynced) {
        queue.kill();
        io.forget(queue);
        self.open.lock().close_queue(queue);
    }

    /// Removes files whose messages are all below `min_physical`, never the last, and moves the queue's minimum.
    pub(crate) fn clean(&self, queue: &ConsumeQueue, min_physical: u64) -> io::Result<usize> {
        let io = self.io.lock();
        let mut removed = 0;
        loop {
            let first = match queue.state().files.as_slice() {
                [first, _, ..] => *first,
                _ => break,
            };
            let last_unit = (first / queue.kind.unit_len() as u64) as i64 + self.units_per_file(queue.kind) - 1;
            if self.unit_at(queue, last_unit).is_none_or(|u| u.physical_offset >= min_physical) {
                break;
            }
            fs::remove_file(self.dir(queue).join(file_name(first)))?;
            queue.state().files.retain(|s| *s != first);
            self.open.lock().close((queue.uid, first));
            removed += 1;
        }
        drop(io);
        self.correct_min(queue, min_physical);
        self.clean_ext(
            queue,
            self.index_of(queue, queue.min(), true).ok().and_then(|i| self.unit_at(queue, i)).as_ref(),
        )?;
        Ok(removed)
    }

    /// Finds the first unit whose message is still in the commit log.
    pub(crate) fn correct_min(&self, queue: &ConsumeQueue, min_physical: u64) {
        let (mut low, mut high) = (self.first_index(queue), queue.end_index());
        let end = high;
        let gone = |at: i64| match self.unit_at(queue, at) {
            // What follows a filler says whether it is the beginning of a queue or the place of a lost message.
            Some(unit) if unit.is_filler() => {
                self.after_fillers(queue, at, end).is_none_or(|next| next.physical_offset < min_physical)
            }
            unit => unit.is_some_and(|unit| unit.physical_offset < min_physical),
        };
        // Nearly always nothing has changed.
        let now = self.index_of(queue, queue.min(), true).unwrap_or(low);
        if now > low && now < high && gone(now - 1) {
            low = now;
        }
        if low < high && !gone(low) {
            high = low;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if gone(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let at_filler = self.unit_at(queue, low).is_some_and(|unit| unit.is_filler());
        let first = if at_filler { self.after_fillers(queue, low, end).map(|unit| unit.queue_offset) } else { None };
        queue.set_min(first.unwrap_or_else(|| self.offset_of(queue, low)));
    }

    /// The first unit from index `at` on that is not a filler.
    fn after_fillers(&self, queue: &ConsumeQueue, mut at: i64, end: i64) -> Option<Unit> {
        let mut units = Vec::new();
        while at < end {
            units.clear();
            self.read_units(queue, at, FILLERS_AT_ONCE, true, &mut units);
            if let Some(found) = units.iter().find(|unit| !unit.is_filler()) {
                return Some(*found);
            }
            if units.is_empty() {
                return None;
            }
            at += units.len() as i64;
        }
        None
    }

    /// Cuts every queue before the first unit whose message does not lie below `physical`.
    pub(crate) fn truncate_all(&self, physical: u64) -> io::Result<()> {
        for queue in self.all() {
            if queue.state().max_physical > physical {
                // Cutting is by files; without anything to cut a full disk is no reason to fail.
                self.save_all()?;
                self.truncate(&queue, physical)?;
            }
        }
        Ok(())
    }

    fn truncate(&self, queue: &Arc<ConsumeQueue>, physical: u64) -> io::Result<()> {
        let files = queue.state().files.clone();
        let (unit_len, file_size) = (queue.kind.unit_len() as u64, self.folder(queue.kind).file_size);
        let first = files.first().map_or(0, |s| (*s / unit_len) as i64);
        let (mut low, mut high) = (first, queue.end_index());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.unit_at(queue, middle).is_some_and(|u| u.physical_end() <= physical) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let end_byte = low as u64 * unit_len;
        let dir = self.dir(queue);
        let mut kept = Vec::new();
        for start in files {
            let path = dir.join(file_name(start));
            // The first one says where the queue begins.
            if start > end_byte || start == end_byte && (!kept.is_empty() || start == 0) {
                self.open.lock().close((queue.uid, start));
                fs::remove_file(&path)?;
                let mut io = self.io.lock();
                io.files.remove(&(queue.uid, start));
                io.dirs.push(dir.clone());
                continue;
            }
            kept.push(start);
            if end_byte < start + file_size {
                self.clear_from(queue, start, end_byte)?;
            }
        }
        let last = if low > first { self.unit_at(queue, low - 1) } else { None };
        // An emptied queue is a new queue: it may begin again where the commit log says.
        let end = if kept.is_empty() { 0 } else { low };
        queue.reset(kept, end, last);
        self.follow_cut(queue, last.as_ref());
        Ok(())
    }

    /// Makes everything in a file from `end_byte` of the queue on zeros again.
    pub(super) fn clear_from(&self, queue: &Arc<ConsumeQueue>, start: u64, end_byte: u64) -> io::Result<()> {
        let file = self.open(queue, start)?;
        file.file().set_len(end_byte - start)?;
        file.file().set_len(self.folder(queue.kind).file_size)?;
        // Until it is synced a crash would bring the old units back.
        self.io.lock().wrote(queue, (queue.uid, start), queue.kind.unit_len() as u64);
        Ok(())
    }
}

fn remove_dir(dir: &Path) -> io::Result<()> {
    if_there(fs::remove_dir_all(dir)).map(|_| ())
}
