//! All consume queues: the table, and reading units.

mod clean;
mod load;
mod open_files;
mod save;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::StoreConfig;
use crate::commit_log::file_name;
use crate::consume_queue::{ConsumeQueue, Put, UNIT, decode_unit};
use crate::file::{Faults, StoreFile};
use crate::progress::Screen;
use crate::read::Unit;
use open_files::{OpenFiles, read_resident};
use save::Unsynced;

pub(crate) use load::EndSearch;

pub(crate) struct Queues {
    pub(crate) root: PathBuf,
    file_size: u64,
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
}

struct Topic {
    name: Arc<str>,
    queues: RwLock<BTreeMap<i32, Arc<ConsumeQueue>>>,
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
            screen: config.screen.clone(),
            topics: RwLock::default(),
            next_uid: AtomicU32::new(0),
            open: Mutex::new(OpenFiles::new(config.max_open_queue_files)),
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
}
