//! All consume queues: the table, and reading units.

mod clean;
mod ext;
mod load;
mod open_files;
mod save;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::StoreConfig;
use crate::batch_unit::BatchUnit;
use crate::commit_log::file_name;
use crate::consume_queue::{ConsumeQueue, Put};
use crate::file::{Faults, StoreFile};
use crate::progress::Screen;
use crate::read::{QueueType, TopicKinds, Unit};
use open_files::{OpenFiles, read_resident};
use save::Unsynced;

pub(crate) use load::EndSearch;

pub(crate) struct Queues {
    plain: Folder,
    batch: Folder,
    ext_root: PathBuf,
    ext_file_size: u64,
    /// New units of plain queues get one in the extension.
    ext_enabled: bool,
    pub(crate) kinds: Arc<dyn TopicKinds>,
    faults: Option<Arc<dyn Faults>>,
    screen: Option<Screen>,
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
    /// A file could not be synced: which of its units are on the disk is unknown, and the next sync does not tell.
    doubtful: AtomicBool,
}

/// Where the queues of one kind are.
struct Folder {
    root: PathBuf,
    /// Whole units.
    file_size: u64,
}

impl Folder {
    fn new(config: &StoreConfig, kind: QueueType) -> Self {
        let (root, file_size) = config.queue_folder(kind);
        Folder { root, file_size }
    }
}

struct Topic {
    name: Arc<str>,
    queues: RwLock<BTreeMap<i32, Arc<ConsumeQueue>>>,
    /// It is being deleted: queues are made dead. Changed under the lock of `queues`.
    dead: AtomicBool,
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
    pub(crate) fn new(config: &StoreConfig, kinds: Arc<dyn TopicKinds>) -> Self {
        let (ext_root, ext_file_size) = config.ext_folder();
        Queues {
            plain: Folder::new(config, QueueType::Simple),
            batch: Folder::new(config, QueueType::Batch),
            ext_root,
            ext_file_size,
            ext_enabled: config.enable_consume_queue_ext,
            kinds,
            faults: config.faults.clone(),
            screen: config.screen.clone(),
            topics: RwLock::default(),
            next_uid: AtomicU32::new(0),
            open: Mutex::new(OpenFiles::new(config.max_open_queue_files)),
            listed: Mutex::default(),
            warm: Mutex::default(),
            unsaved_bytes: AtomicUsize::new(0),
            io: Mutex::default(),
            doubtful: AtomicBool::new(false),
        }
    }

    /// Where the plain queues are.
    pub(crate) fn root(&self) -> &Path {
        &self.plain.root
    }

    fn folder(&self, kind: QueueType) -> &Folder {
        match kind {
            QueueType::Simple => &self.plain,
            QueueType::Batch => &self.batch,
        }
    }

    pub(crate) fn units_per_file(&self, kind: QueueType) -> i64 {
        (self.folder(kind).file_size / kind.unit_len() as u64) as i64
    }

    /// The file a unit lies in, by its first byte, and the unit's byte in it.
    fn file_of(&self, kind: QueueType, index: i64) -> (u64, u64) {
        let byte = index as u64 * kind.unit_len() as u64;
        let in_file = byte % self.folder(kind).file_size;
        (byte - in_file, in_file)
    }

    pub(crate) fn get(&self, topic: &str, queue: i32) -> Option<Arc<ConsumeQueue>> {
        let topics = self.topics.read();
        let queues = topics.get(topic)?.queues.read();
        queues.get(&queue).cloned()
    }

    /// The queue, made of its topic's kind when it does not exist.
    pub(crate) fn get_or_make(&self, topic: &str, queue: i32) -> Arc<ConsumeQueue> {
        if let Some(found) = self.get(topic, queue) {
            return found;
        }
        self.make(topic, queue, self.kinds.queue_type(topic))
    }

    fn make(&self, topic: &str, queue: i32, kind: QueueType) -> Arc<ConsumeQueue> {
        let mut topics = self.topics.write();
        let topic = match topics.get(topic) {
            Some(topic) => topic.clone(),
            None => {
                let name: Arc<str> = topic.into();
                let topic =
                    Arc::new(Topic { name: name.clone(), queues: RwLock::default(), dead: AtomicBool::default() });
                topics.insert(name, topic.clone());
                topic
            }
        };
        let mut queues = topic.queues.write();
        let make = || {
            let uid = self.next_uid.fetch_add(2, Ordering::Relaxed);
            let queue = ConsumeQueue::new(uid, topic.name.clone(), queue, kind);
            if topic.dead.load(Ordering::Relaxed) {
                queue.kill();
            }
            Arc::new(queue)
        };
        queues.entry(queue).or_insert_with(make).clone()
    }

    /// Whether so many topics, or more, have names with a prefix.
    pub(crate) fn has_topics(&self, prefix: &str, many: usize) -> bool {
        let topics = self.topics.read();
        topics.len() >= many && topics.keys().filter(|name| name.starts_with(prefix)).count() >= many
    }

    pub(crate) fn topic_names(&self) -> Vec<Arc<str>> {
        self.topics.read().keys().cloned().collect()
    }

    pub(crate) fn queue_ids(&self, topic: &str) -> Vec<i32> {
        self.topics.read().get(topic).map_or_else(Vec::new, |t| t.queues.read().keys().copied().collect())
    }

    pub(crate) fn queues_of(&self, topic: &str) -> Vec<Arc<ConsumeQueue>> {
        self.topics.read().get(topic).map_or_else(Vec::new, |t| t.queues.read().values().cloned().collect())
    }

    pub(crate) fn all(&self) -> Vec<Arc<ConsumeQueue>> {
        let topics = self.topics.read();
        topics.values().flat_map(|t| t.queues.read().values().cloned().collect::<Vec<_>>()).collect()
    }

    /// How many queues have files, and the sum of the numbers of their last files, which does not fall when old files go.
    pub(crate) fn extent(&self) -> (u32, u64) {
        let (mut queues, mut last_files) = (0, 0);
        // Not over a copy: this is done for each checkpoint.
        for topic in self.topics.read().values() {
            for queue in topic.queues.read().values() {
                if let Some(last) = queue.state().files.last() {
                    queues += 1;
                    last_files += last / self.folder(queue.kind).file_size + 1;
                }
            }
        }
        (queues, last_files)
    }

    pub(crate) fn max_physical(&self) -> u64 {
        self.all().iter().map(|q| q.state().max_physical).max().unwrap_or(0)
    }

    /// Adds a record's unit to a queue.
    pub(crate) fn put(&self, queue: &Arc<ConsumeQueue>, unit: &BatchUnit) -> Put {
        let ext = self.extends(queue).then_some(self.ext_file_size);
        let put = queue.put(unit, self.units_per_file(queue.kind), ext);
        if let Put::Done { first } = put {
            self.unsaved_bytes.fetch_add(queue.kind.unit_len(), Ordering::Relaxed);
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

    /// Units from that of the message at `offset` on, at most `max`, from one file and the tail. Tags codes that are addresses
    /// of the extension are replaced by what stands there; where nothing does they stay.
    pub(crate) fn read(
        &self,
        queue: &ConsumeQueue,
        offset: i64,
        max: usize,
        may_block: bool,
        into: &mut Vec<Unit>,
    ) -> UnitRead {
        let read = match self.index_of(queue, offset, may_block) {
            Ok(index) => self.read_units(queue, index, max, may_block, into),
            Err(failed) => failed,
        };
        if read == UnitRead::Found { self.resolve(queue, into, may_block) } else { read }
    }

    /// The unit of the message at `offset`, waiting for the disk if need be.
    pub(crate) fn unit(&self, queue: &ConsumeQueue, offset: i64) -> Option<Unit> {
        if offset < 0 || offset >= queue.end() {
            return None;
        }
        self.unit_at(queue, self.index_of(queue, offset, true).ok()?)
    }

    /// The unit at an index, waiting for the disk if need be.
    pub(crate) fn unit_at(&self, queue: &ConsumeQueue, index: i64) -> Option<Unit> {
        let mut one = Vec::with_capacity(1);
        self.read_units(queue, index, 1, true, &mut one);
        one.pop().filter(Unit::is_valid)
    }

    /// Index of the unit that holds `offset`, or of the first behind it when none does.
    pub(crate) fn index_of(&self, queue: &ConsumeQueue, offset: i64, may_block: bool) -> Result<i64, UnitRead> {
        if queue.kind == QueueType::Simple {
            return Ok(offset);
        }
        let mut high = match queue.search_tail(offset) {
            Ok(index) => return Ok(index),
            Err(tail_start) => tail_start,
        };
        let mut low = self.first_index(queue);
        let mut one = Vec::with_capacity(1);
        while low < high {
            let middle = low + (high - low) / 2;
            one.clear();
            match self.read_units(queue, middle, 1, may_block, &mut one) {
                UnitRead::Found => {}
                failed => return Err(failed),
            }
            match one.first() {
                Some(unit) if unit.end() <= offset => low = middle + 1,
                Some(_) => high = middle,
                None => return Err(UnitRead::Unreadable),
            }
        }
        Ok(low)
    }

    /// Queue offset of the unit at an index; the queue's end where there is none.
    pub(crate) fn offset_of(&self, queue: &ConsumeQueue, index: i64) -> i64 {
        match queue.kind {
            QueueType::Simple => index,
            QueueType::Batch => self.unit_at(queue, index).map_or_else(|| queue.end(), |unit| unit.queue_offset),
        }
    }

    /// Index of the first unit the queue still has.
    fn first_index(&self, queue: &ConsumeQueue) -> i64 {
        let first = queue.state().files.first().copied();
        first.map_or_else(|| queue.tail_start(), |start| (start / queue.kind.unit_len() as u64) as i64)
    }

    /// Where a reader goes on behind units that are damaged: at the next good one.
    pub(crate) fn after_hole(&self, queue: &ConsumeQueue, offset: i64) -> i64 {
        let end = self.after_file_of(queue, offset, true);
        if queue.kind == QueueType::Batch {
            return end;
        }
        let end = end.min(queue.end());
        (offset + 1..end).find(|at| self.unit_at(queue, *at).is_some()).unwrap_or(end)
    }

    /// Where a reader goes on behind a file that cannot be read.
    pub(crate) fn after_file_of(&self, queue: &ConsumeQueue, offset: i64, may_block: bool) -> i64 {
        let Ok(index) = self.index_of(queue, offset, may_block) else { return offset };
        let per_file = self.units_per_file(queue.kind);
        let next = index - index % per_file + per_file;
        match queue.kind {
            QueueType::Simple => next,
            QueueType::Batch => self.unit_at(queue, next).map_or(offset, |unit| unit.queue_offset),
        }
    }

    fn read_units(
        &self,
        queue: &ConsumeQueue,
        index: i64,
        max: usize,
        may_block: bool,
        into: &mut Vec<Unit>,
    ) -> UnitRead {
        if queue.tail_units(index, max, into).is_some() {
            return UnitRead::Found;
        }
        let (kind, unit_len) = (queue.kind, queue.kind.unit_len());
        let (start, in_file) = self.file_of(kind, index);
        let tail_start = queue.tail_start();
        let rest = (self.folder(kind).file_size - in_file) / unit_len as u64;
        let wanted = max.min(rest.min((tail_start - index).max(0) as u64) as usize);
        let mut raw = vec![0; wanted * unit_len];
        let Ok(file) = self.open(queue, start) else { return UnitRead::Unreadable };
        match read_resident(&file, &mut raw, in_file, may_block) {
            Ok(true) => {}
            Ok(false) => return UnitRead::Cold,
            Err(error) => {
                tracing::error!(path = %file.path().display(), %error, "reading a consume queue failed");
                return UnitRead::Unreadable;
            }
        }
        let units = raw.chunks_exact(unit_len).zip(index..).map(|(raw, at)| kind.decode(at, raw));
        into.extend(units.take_while(Unit::is_valid));
        if into.len() == wanted && wanted < max && index + wanted as i64 == tail_start {
            queue.tail_units(tail_start, max - wanted, into);
        }
        UnitRead::Found
    }

    fn open(&self, queue: &ConsumeQueue, start: u64) -> io::Result<Arc<StoreFile>> {
        self.open_file((queue.uid, start), || self.dir(queue).join(file_name(start)))
    }

    fn open_file(&self, key: (u32, u64), path: impl FnOnce() -> PathBuf) -> io::Result<Arc<StoreFile>> {
        if let Some(file) = self.open.lock().get(key) {
            return Ok(file);
        }
        let file = Arc::new(StoreFile::open(&path(), self.faults.clone())?);
        self.open.lock().insert(key, file.clone());
        Ok(file)
    }

    fn dir(&self, queue: &ConsumeQueue) -> PathBuf {
        self.folder(queue.kind).root.join(&*queue.topic).join(queue.id.to_string())
    }
}
