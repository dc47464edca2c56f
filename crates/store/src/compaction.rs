//! Topics of which only the last message of each key is kept (`cleanup.policy=COMPACTION`).

mod files;
mod load;
mod log;
mod pair;
mod positions;
mod round;
mod serve;
mod swap;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use crate::consume_queue::ConsumeQueue;
use crate::file::Faults;
use crate::folders::{if_there, queue_folders};
use crate::{StoreConfig, TopicKinds};
use files::{Folder, Sizes};
use positions::Positions;

pub(crate) use log::CompactionLog;
pub use round::CompactionRound;

/// What all compacted logs of a store share.
pub(crate) struct Compaction {
    pub(crate) enabled: bool,
    root: PathBuf,
    faults: Option<Arc<dyn Faults>>,
    sizes: Sizes,
    threads: usize,
    map_bytes: usize,
    positions: Arc<Positions>,
    /// New logs may believe their files: the last stop was clean and the store is being opened.
    trusted: AtomicBool,
    /// Counts changes of topics, from 1: after each it is asked anew which ones are compacted.
    changes: AtomicU64,
    /// The queues whose logs are followed.
    followed: Mutex<Vec<Arc<ConsumeQueue>>>,
}

/// When the thread of compaction does what.
pub(crate) struct Schedule {
    next_round: Instant,
    next_look: Instant,
    next_sync: Instant,
}

impl Schedule {
    pub(crate) fn new(interval: Duration) -> Self {
        let now = Instant::now();
        Schedule { next_round: now + interval, next_look: now, next_sync: now }
    }
}

impl Compaction {
    pub(crate) fn new(config: &StoreConfig, trusted: bool) -> Self {
        let root = config.root.join("compaction");
        let folder = Folder { log: root.clone(), queue: root.clone(), faults: config.faults.clone() };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = config.compaction_threads.clamp(1, cores);
        Compaction {
            enabled: config.enable_compaction,
            faults: config.faults.clone(),
            sizes: Sizes::new(config.compaction_file_size, config.compaction_queue_file_size),
            threads,
            map_bytes: config.max_offset_map_size / threads,
            positions: Arc::new(Positions::load(folder)),
            trusted: AtomicBool::new(trusted),
            changes: AtomicU64::new(1),
            followed: Mutex::default(),
            root,
        }
    }

    /// The log of a queue; `None` when its topic is not compacted.
    pub(crate) fn log_of<'a>(&self, queue: &'a ConsumeQueue, topics: &dyn TopicKinds) -> Option<&'a CompactionLog> {
        if let Some(known) = queue.compaction.get() {
            return known.as_deref();
        }
        let now = self.changes.load(Ordering::Acquire);
        if queue.not_compacted.load(Ordering::Acquire) == now {
            return None;
        }
        if !self.enabled || !topics.is_compaction(&queue.topic) {
            queue.not_compacted.store(now, Ordering::Release);
            return None;
        }
        queue.compaction.get_or_init(|| Some(Box::new(self.make(queue)))).as_deref()
    }

    /// A topic was made or changed.
    pub(crate) fn topic_changed(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    fn make(&self, queue: &ConsumeQueue) -> CompactionLog {
        let place = |kind: &str| self.root.join(kind).join(&*queue.topic).join(queue.id.to_string());
        CompactionLog {
            topic: queue.topic.clone(),
            id: queue.id,
            folder: Folder { log: place("compactionLog"), queue: place("compactionCq"), faults: self.faults.clone() },
            sizes: self.sizes,
            map_bytes: self.map_bytes,
            positions: self.positions.clone(),
            writing: Mutex::default(),
            round: Mutex::default(),
            state: RwLock::default(),
            trusted: AtomicBool::new(self.trusted.load(Ordering::Acquire)),
            suspected: AtomicBool::new(false),
            dead: AtomicBool::new(false),
            unreadable: AtomicU32::new(0),
        }
    }

    /// Topic and id of the queues that have files.
    pub(crate) fn on_disk(&self) -> io::Result<Vec<(String, i32)>> {
        let folders = queue_folders(&self.root.join("compactionLog"))?;
        Ok(folders.into_iter().map(|(topic, id, _)| (topic, id)).collect())
    }

    /// Removes the files of a topic.
    pub(crate) fn delete_topic(&self, topic: &str, queues: &[Arc<ConsumeQueue>]) -> io::Result<()> {
        for queue in queues {
            // Nobody makes a log for it from now on.
            if let Some(log) = queue.compaction.get_or_init(|| None) {
                log.delete()?;
            }
        }
        for kind in ["compactionLog", "compactionCq"] {
            if_there(fs::remove_dir_all(self.root.join(kind).join(topic)))?;
        }
        self.positions.forget_topic(topic)
    }
}
