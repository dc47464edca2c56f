//! All consume queues: the table, their files, saving, syncing and cleaning.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use rustix::io::ReadWriteFlags;

use crate::commit_log::file_name;
use crate::consume_queue::{ConsumeQueue, Put, UNIT, decode_unit};
use crate::file::{Faults, StoreFile, sync_dir};
use crate::read::Unit;
use crate::{OpenError, StoreConfig};

/// More changed files than this are synced by one call for the whole file system.
const SYNCFS_FROM: usize = 256;

pub(crate) struct Queues {
    pub(crate) root: PathBuf,
    file_size: u64,
    faults: Option<Arc<dyn Faults>>,
    topics: RwLock<HashMap<Arc<str>, Arc<Topic>>>,
    next_uid: AtomicU32,
    open: Mutex<OpenFiles>,
    /// Queues with units that are only in memory.
    listed: Mutex<Vec<Arc<ConsumeQueue>>>,
    /// Queues whose tail takes memory.
    warm: Mutex<Vec<Arc<ConsumeQueue>>>,
    unsaved_bytes: AtomicUsize,
    /// Held while files are written, cut or removed.
    io: Mutex<Unsynced>,
}

struct Topic {
    name: Arc<str>,
    queues: RwLock<BTreeMap<i32, Arc<ConsumeQueue>>>,
}

/// Queue and written bytes by file; not the open files, whose number is bounded.
type UnsyncedFiles = HashMap<(u32, u64), (Arc<ConsumeQueue>, u64)>;

/// What was written but not synced.
#[derive(Default)]
struct Unsynced {
    files: UnsyncedFiles,
    dirs: Vec<PathBuf>,
}

struct OpenFiles {
    files: HashMap<(u32, u64), (Arc<StoreFile>, u64)>,
    clock: u64,
    limit: usize,
}

/// How the end of a queue is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndSearch {
    /// Our own clean files: all units up to the end are good, zeros behind.
    Halving,
    /// Files of Java, whose old ends are not cleared, or of a crash: unit by unit from the third file from the end.
    Walking,
}

/// The answer to a read of units.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UnitRead {
    Found,
    /// Not in memory, and the caller may not wait.
    Cold,
    /// The file is gone or broken.
    Unreadable,
}

impl Queues {
    pub(crate) fn new(config: &StoreConfig) -> Self {
        let unit = UNIT as u64;
        Queues {
            root: config.root.join("consumequeue"),
            file_size: config.consume_queue_file_size.max(1).div_ceil(unit) * unit,
            faults: config.faults.clone(),
            topics: RwLock::default(),
            next_uid: AtomicU32::new(0),
            open: Mutex::new(OpenFiles { files: HashMap::new(), clock: 0, limit: config.max_open_queue_files.max(16) }),
            listed: Mutex::default(),
            warm: Mutex::default(),
            unsaved_bytes: AtomicUsize::new(0),
            io: Mutex::default(),
        }
    }

    pub(crate) fn units_per_file(&self) -> i64 {
        (self.file_size / UNIT as u64) as i64
    }

    pub(crate) fn get(&self, topic: &str, queue: i32) -> Option<Arc<ConsumeQueue>> {
        let topics = self.topics.read();
        let queues = topics.get(topic)?.queues.read();
        queues.get(&queue).cloned()
    }

    pub(crate) fn get_or_make(&self, topic: &str, queue: i32) -> Arc<ConsumeQueue> {
        if let Some(found) = self.get(topic, queue) {
            return found;
        }
        let mut topics = self.topics.write();
        let topic = match topics.get(topic) {
            Some(topic) => topic.clone(),
            None => {
                let name: Arc<str> = topic.into();
                let topic = Arc::new(Topic { name: name.clone(), queues: RwLock::default() });
                topics.insert(name, topic.clone());
                topic
            }
        };
        let mut queues = topic.queues.write();
        let make = || {
            let uid = self.next_uid.fetch_add(1, Ordering::Relaxed);
            Arc::new(ConsumeQueue::new(uid, topic.name.clone(), queue))
        };
        queues.entry(queue).or_insert_with(make).clone()
    }

    pub(crate) fn topic_names(&self) -> Vec<Arc<str>> {
        self.topics.read().keys().cloned().collect()
    }

    pub(crate) fn queue_ids(&self, topic: &str) -> Vec<i32> {
        self.topics.read().get(topic).map_or_else(Vec::new, |t| t.queues.read().keys().copied().collect())
    }

    pub(crate) fn all(&self) -> Vec<Arc<ConsumeQueue>> {
        let topics = self.topics.read();
        topics.values().flat_map(|t| t.queues.read().values().cloned().collect::<Vec<_>>()).collect()
    }

    /// Queues that have files.
    pub(crate) fn all_with_files(&self) -> usize {
        let topics = self.topics.read();
        topics.values().map(|t| t.queues.read().values().filter(|q| !q.state().files.is_empty()).count()).sum()
    }

    pub(crate) fn max_physical(&self) -> u64 {
        self.all().iter().map(|q| q.state().max_physical).max().unwrap_or(0)
    }

    /// Adds a unit to a queue.
    pub(crate) fn put(&self, queue: &Arc<ConsumeQueue>, at: i64, physical: u64, size: u32, tags_code: i64) -> Put {
        let put = queue.put(at, physical, size, tags_code, self.units_per_file());
        if let Put::Done { first } = put {
            self.unsaved_bytes.fetch_add(UNIT, Ordering::Relaxed);
            if first {
                self.listed.lock().push(queue.clone());
            }
        }
        put
    }

    /// Bytes of units that are only in memory, roughly.
    pub(crate) fn unsaved_bytes(&self) -> usize {
        self.unsaved_bytes.load(Ordering::Relaxed)
    }

    // ---- reading ----

    /// Units from `offset` on, at most `max`, from one file and the tail.
    pub(crate) fn read(
        &self,
        queue: &ConsumeQueue,
        offset: i64,
        max: usize,
        may_block: bool,
        into: &mut Vec<Unit>,
    ) -> UnitRead {
        if queue.tail_units(offset, max, into).is_some() {
            return UnitRead::Found;
        }
        let byte = offset as u64 * UNIT as u64;
        let start = byte - byte % self.file_size;
        let tail_start = queue.tail_start();
        let in_file = ((start + self.file_size - byte) / UNIT as u64).min((tail_start - offset).max(0) as u64);
        let wanted = max.min(in_file as usize);
        let mut raw = vec![0; wanted * UNIT];
        let Ok(file) = self.open(queue, start) else { return UnitRead::Unreadable };
        match read_resident(&file, &mut raw, byte - start, may_block) {
            Ok(true) => {}
            Ok(false) => return UnitRead::Cold,
            Err(error) => {
                tracing::error!(path = %file.path().display(), %error, "reading a consume queue failed");
                return UnitRead::Unreadable;
            }
        }
        let units = raw.chunks_exact(UNIT).zip(offset..).map(|(raw, at)| decode_unit(at, raw));
        into.extend(units.take_while(Unit::is_valid));
        if into.len() == wanted && wanted < max && offset + wanted as i64 == tail_start {
            queue.tail_units(tail_start, max - wanted, into);
        }
        UnitRead::Found
    }

    /// One unit, waiting for the disk if need be.
    pub(crate) fn unit(&self, queue: &ConsumeQueue, offset: i64) -> Option<Unit> {
        if offset < 0 || offset >= queue.end() {
            return None;
        }
        let mut one = Vec::with_capacity(1);
        self.read(queue, offset, 1, true, &mut one);
        one.pop().filter(Unit::is_valid)
    }

    fn open(&self, queue: &ConsumeQueue, start: u64) -> io::Result<Arc<StoreFile>> {
        let key = (queue.uid, start);
        if let Some(file) = self.open.lock().get(key) {
            return Ok(file);
        }
        let path = self.dir(queue).join(file_name(start));
        let file = Arc::new(StoreFile::open(&path, self.faults.clone())?);
        self.open.lock().insert(key, file.clone());
        Ok(file)
    }

    fn dir(&self, queue: &ConsumeQueue) -> PathBuf {
        self.root.join(&*queue.topic).join(queue.id.to_string())
    }

    // ---- writing ----

    /// Writes the units that are only in memory to the files. On an error they stay in memory and the queue stays listed.
    pub(crate) fn save_all(&self) -> io::Result<()> {
        let mut io = self.io.lock();
        let listed = std::mem::take(&mut *self.listed.lock());
        let mut result = Ok(());
        let mut failed = Vec::new();
        for queue in listed {
            if queue.is_dead() {
                continue;
            }
            if result.is_err() {
                failed.push(queue);
                continue;
            }
            if let Err(error) = self.save(&queue, &mut io) {
                tracing::error!(topic = %queue.topic, queue = queue.id, %error, "writing a consume queue failed");
                queue.state().listed = true;
                failed.push(queue);
                result = Err(error);
            }
        }
        self.listed.lock().append(&mut failed);
        result
    }

    fn save(&self, queue: &Arc<ConsumeQueue>, io: &mut Unsynced) -> io::Result<()> {
        let (mut at, bytes) = queue.unsaved();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let byte = at as u64 * UNIT as u64;
            let start = byte - byte % self.file_size;
            let room = (start + self.file_size - byte) as usize;
            let (now, later) = rest.split_at(room.min(rest.len()));
            let file = self.file_for_write(queue, start, io)?;
            file.write_all_at(now, byte - start)?;
            let units = now.len() / UNIT;
            io.files.entry((queue.uid, start)).or_insert_with(|| (queue.clone(), 0)).1 += now.len() as u64;
            at += units as i64;
            rest = later;
            self.unsaved_bytes.fetch_sub(now.len().min(self.unsaved_bytes()), Ordering::Relaxed);
            if queue.set_saved(at) {
                self.warm.lock().push(queue.clone());
            }
        }
        Ok(())
    }

    fn file_for_write(&self, queue: &ConsumeQueue, start: u64, io: &mut Unsynced) -> io::Result<Arc<StoreFile>> {
        if queue.state().files.contains(&start) {
            return self.open(queue, start);
        }
        let dir = self.dir(queue);
        if !dir.is_dir() {
            fs::create_dir_all(&dir)?;
            io.dirs.extend([self.root.clone(), self.root.join(&*queue.topic)]);
        }
        io.dirs.push(dir.clone());
        let file = Arc::new(StoreFile::create(&dir.join(file_name(start)), self.file_size, self.faults.clone())?);
        self.open.lock().insert((queue.uid, start), file.clone());
        let mut state = queue.state();
        let at = state.files.partition_point(|s| *s < start);
        state.files.insert(at, start);
        Ok(file)
    }

    /// Syncs files with at least `least_bytes` of unsynced units; with 0 all of them, and new names.
    pub(crate) fn sync(&self, least_bytes: u64) -> io::Result<()> {
        // The list is taken, so that saving goes on while the disk works.
        let (files, dirs) = {
            let mut io = self.io.lock();
            let dirs = if least_bytes == 0 { std::mem::take(&mut io.dirs) } else { Vec::new() };
            let due: HashMap<_, _> = io.files.extract_if(|_, (_, bytes)| *bytes >= least_bytes).collect();
            (due, dirs)
        };
        let result = self.sync_files(&files, dirs.clone());
        if result.is_err() {
            let mut io = self.io.lock();
            io.dirs.extend(dirs);
            for (key, (queue, bytes)) in files {
                io.files.entry(key).or_insert((queue, 0)).1 += bytes;
            }
        }
        result
    }

    fn sync_files(&self, files: &UnsyncedFiles, mut dirs: Vec<PathBuf>) -> io::Result<()> {
        if files.len() + dirs.len() >= SYNCFS_FROM && self.faults.is_none() {
            rustix::fs::syncfs(fs::File::open(&self.root)?)?;
            return Ok(());
        }
        for ((_, start), (queue, _)) in files {
            match self.open(queue, *start) {
                Ok(file) => file.sync()?,
                // Removed meanwhile.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        dirs.sort();
        dirs.dedup();
        for dir in dirs {
            match sync_dir(&dir) {
                // The topic was deleted meanwhile.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Closes all files; they are opened again when somebody reads.
    pub(crate) fn close_files(&self) {
        self.open.lock().files.clear();
    }

    /// Frees the tails of queues nobody wrote to since the last call.
    pub(crate) fn cool(&self) {
        self.warm.lock().retain(|queue| !queue.is_dead() && !queue.cool());
    }

    // ---- removing ----

    /// Removes a topic's queues and their files.
    pub(crate) fn delete_topic(&self, topic: &str) -> io::Result<bool> {
        let mut io = self.io.lock();
        let Some(removed) = self.topics.write().remove(topic) else { return Ok(false) };
        for queue in removed.queues.read().values() {
            self.forget(queue, &mut io);
        }
        remove_dir(&self.root.join(topic))?;
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
        remove_dir(&self.dir(queue))
    }

    /// Empties a queue, so that it begins at 0 again.
    pub(crate) fn restart(&self, queue: &ConsumeQueue) -> io::Result<()> {
        let mut io = self.io.lock();
        io.files.retain(|(uid, _), _| *uid != queue.uid);
        self.open.lock().files.retain(|(uid, _), _| *uid != queue.uid);
        remove_dir(&self.dir(queue))?;
        queue.reset(Vec::new(), 0, 0);
        Ok(())
    }

    fn forget(&self, queue: &ConsumeQueue, io: &mut Unsynced) {
        queue.kill();
        io.files.retain(|(uid, _), _| *uid != queue.uid);
        self.open.lock().files.retain(|(uid, _), _| *uid != queue.uid);
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
            let last_unit = ((first + self.file_size) / UNIT as u64) as i64 - 1;
            if self.unit(queue, last_unit).is_none_or(|u| u.physical_offset >= min_physical) {
                break;
            }
            fs::remove_file(self.dir(queue).join(file_name(first)))?;
            queue.state().files.retain(|s| *s != first);
            self.open.lock().files.remove(&(queue.uid, first));
            removed += 1;
        }
        drop(io);
        self.correct_min(queue, min_physical);
        Ok(removed)
    }

    /// Finds the first unit whose message is still in the commit log.
    pub(crate) fn correct_min(&self, queue: &ConsumeQueue, min_physical: u64) {
        let first_file = queue.state().files.first().copied();
        let first = first_file.map_or_else(|| queue.tail_start(), |s| (s / UNIT as u64) as i64);
        let gone = |at: i64| self.unit(queue, at).is_some_and(|u| u.is_filler() || u.physical_offset < min_physical);
        let (mut low, mut high) = (first, queue.end());
        // Nearly always nothing has changed.
        let now = queue.min();
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
        queue.set_min(low);
    }

    // ---- loading ----

    /// Loads all queues from their folders. Queues that are damaged are removed; their number is the result, and the caller
    /// rebuilds them from the commit log.
    pub(crate) fn load(&self, search: EndSearch) -> Result<usize, OpenError> {
        fs::create_dir_all(&self.root).map_err(OpenError::io(&self.root))?;
        let mut damaged = 0;
        for topic in sub_dirs(&self.root)? {
            let Some(name) = topic.file_name().and_then(|n| n.to_str()) else { continue };
            for dir in sub_dirs(&topic)? {
                let id = dir.file_name().and_then(|n| n.to_str()).and_then(|n| n.parse::<i32>().ok());
                let Some(id) = id else { continue };
                let queue = self.get_or_make(name, id);
                if let Err(what) = self.load_queue(&queue, &dir, search) {
                    tracing::error!(dir = %dir.display(), what, "a consume queue is damaged; it is rebuilt from the commit log");
                    self.delete_queue(&queue).map_err(OpenError::io(&dir))?;
                    damaged += 1;
                }
            }
        }
        Ok(damaged)
    }

    fn load_queue(&self, queue: &ConsumeQueue, dir: &Path, search: EndSearch) -> Result<(), String> {
        let files = self.list(dir)?;
        queue.state().files = files.clone();
        let found = match search {
            EndSearch::Halving => self.end_by_halving(queue, &files),
            EndSearch::Walking => self.end_by_walking(queue, &files),
        };
        let (end, last) = found.map_err(|e| e.to_string())?;
        let next =
            (end as u64 * UNIT as u64).next_multiple_of(self.file_size).max(files.first().copied().unwrap_or(0) + 1);
        for start in files.iter().filter(|s| **s >= next) {
            if self.unit_in_file(queue, *start, 0).is_ok_and(|u| u.is_valid() && !u.is_filler()) {
                return Err(format!("units end at {end}, but file {} has some", file_name(*start)));
            }
        }
        let last_index = self.file_size / UNIT as u64 - 1;
        for start in files.iter().filter(|s| **s + self.file_size <= end as u64 * UNIT as u64) {
            for index in [0, last_index] {
                if !self.unit_in_file(queue, *start, index).is_ok_and(|u| u.is_valid()) {
                    return Err(format!("file {} has an empty unit", file_name(*start)));
                }
            }
        }
        // Files behind the one that holds the end contain nothing.
        let keep = end as u64 * UNIT as u64;
        let (files, empty): (Vec<u64>, Vec<u64>) =
            files.iter().partition(|s| **s < keep || **s == keep && Some(*s) == files.first());
        for start in empty {
            fs::remove_file(dir.join(file_name(start))).map_err(|e| e.to_string())?;
            self.open.lock().files.remove(&(queue.uid, start));
        }
        queue.reset(files, end, last.map_or(0, |u| u.physical_end()));
        Ok(())
    }

    fn list(&self, dir: &Path) -> Result<Vec<u64>, String> {
        let mut files = Vec::new();
        for entry in fs::read_dir(dir).map_err(|e| e.to_string())? {
            let entry = entry.map_err(|e| e.to_string())?;
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                continue;
            }
            let name = entry.file_name();
            let start: u64 = name.to_str().and_then(|n| n.parse().ok()).ok_or("a file's name is no offset")?;
            files.push((start, entry.metadata().map_err(|e| e.to_string())?.len()));
        }
        files.sort_unstable();
        if let Some((start, 0)) = files.last().copied() {
            fs::remove_file(dir.join(file_name(start))).map_err(|e| e.to_string())?;
            files.pop();
        }
        for pair in files.windows(2) {
            if pair[0].0 + self.file_size != pair[1].0 {
                return Err(format!("no file from {} on", pair[0].0 + self.file_size));
            }
        }
        match files.iter().find(|(start, len)| *len != self.file_size || start % self.file_size != 0) {
            Some((start, len)) => {
                Err(format!("file {} has {len} bytes instead of {}", file_name(*start), self.file_size))
            }
            None => Ok(files.into_iter().map(|(start, _)| start).collect()),
        }
    }

    fn unit_in_file(&self, queue: &ConsumeQueue, start: u64, index: u64) -> io::Result<Unit> {
        let file = self.open(queue, start)?;
        let mut raw = [0; UNIT];
        file.read_at(&mut raw, index * UNIT as u64)?;
        Ok(decode_unit((start / UNIT as u64 + index) as i64, &raw))
    }

    fn end_by_halving(&self, queue: &ConsumeQueue, files: &[u64]) -> io::Result<(i64, Option<Unit>)> {
        for start in files.iter().rev() {
            if !self.unit_in_file(queue, *start, 0)?.is_valid() {
                continue;
            }
            let (mut good, mut bad) = (0, self.file_size / UNIT as u64);
            while bad - good > 1 {
                let middle = good + (bad - good) / 2;
                if self.unit_in_file(queue, *start, middle)?.is_valid() {
                    good = middle;
                } else {
                    bad = middle;
                }
            }
            let last = self.unit_in_file(queue, *start, good)?;
            return Ok((last.queue_offset + 1, Some(last)));
        }
        Ok((files.first().map_or(0, |s| (*s / UNIT as u64) as i64), None))
    }

    fn end_by_walking(&self, queue: &ConsumeQueue, files: &[u64]) -> io::Result<(i64, Option<Unit>)> {
        let mut last: Option<Unit> = None;
        let from = files.len().saturating_sub(3);
        let mut chunk = vec![0; 3276 * UNIT];
        for start in &files[from..] {
            let file = self.open(queue, *start)?;
            let mut at = 0;
            while at < self.file_size {
                let want = chunk.len().min((self.file_size - at) as usize);
                file.read_at(&mut chunk[..want], at)?;
                let first = ((start + at) / UNIT as u64) as i64;
                for (raw, offset) in chunk[..want].chunks_exact(UNIT).zip(first..) {
                    let unit = decode_unit(offset, raw);
                    // Old units behind an end that was never cleared go back in the commit log.
                    let follows = last.is_none_or(|l| unit.physical_offset >= l.physical_end());
                    if !unit.is_valid() || !follows {
                        return Ok((offset, last));
                    }
                    last = Some(unit);
                }
                at += want as u64;
            }
        }
        let end = files.last().map_or(0, |s| ((s + self.file_size) / UNIT as u64) as i64);
        Ok((end, last))
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

    fn truncate(&self, queue: &ConsumeQueue, physical: u64) -> io::Result<()> {
        let files = queue.state().files.clone();
        let first = files.first().map_or(0, |s| (*s / UNIT as u64) as i64);
        let (mut low, mut high) = (first, queue.end());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.unit(queue, middle).is_some_and(|u| u.physical_end() <= physical) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let end_byte = low as u64 * UNIT as u64;
        let dir = self.dir(queue);
        let mut kept = Vec::new();
        for start in files {
            let path = dir.join(file_name(start));
            if start >= end_byte {
                self.open.lock().files.remove(&(queue.uid, start));
                fs::remove_file(&path)?;
                continue;
            }
            kept.push(start);
            if end_byte < start + self.file_size {
                let file = self.open(queue, start)?;
                file.file().set_len(end_byte - start)?;
                file.file().set_len(self.file_size)?;
            }
        }
        let last = if low > first { self.unit(queue, low - 1) } else { None };
        // An emptied queue is a new queue: it may begin again where the commit log says.
        let end = if kept.is_empty() { 0 } else { low };
        queue.reset(kept, end, last.map_or(0, |u| u.physical_end()));
        Ok(())
    }
}

/// Reads all of `buf`. False when that would wait for the disk and the caller may not.
fn read_resident(file: &StoreFile, buf: &mut [u8], at: u64, may_block: bool) -> io::Result<bool> {
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

fn sub_dirs(dir: &Path) -> Result<Vec<PathBuf>, OpenError> {
    let mut dirs = Vec::new();
    for entry in fs::read_dir(dir).map_err(OpenError::io(dir))? {
        let entry = entry.map_err(OpenError::io(dir))?;
        if entry.file_type().map_err(OpenError::io(dir))?.is_dir() {
            dirs.push(entry.path());
        }
    }
    Ok(dirs)
}

fn remove_dir(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

impl OpenFiles {
    fn get(&mut self, key: (u32, u64)) -> Option<Arc<StoreFile>> {
        self.clock += 1;
        let (file, used) = self.files.get_mut(&key)?;
        *used = self.clock;
        Some(file.clone())
    }

    fn insert(&mut self, key: (u32, u64), file: Arc<StoreFile>) {
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
}
