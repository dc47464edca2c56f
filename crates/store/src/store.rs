//! The store: its parts, opening, background threads, closing.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use std::collections::VecDeque;

use crate::checkpoint::{Checkpoint, Progress, boot_id};
use crate::chores::{Chores, QUEUE_TICK};
use crate::clock::now_ms;
use crate::commit_log::CommitLog;
use crate::compaction::{Compaction, Schedule};
use crate::counters::Counters;
use crate::deleted::Deleted;
use crate::file::sync_names;
use crate::flush::{FlushClock, Waiter};
use crate::gate::Gate;
use crate::group::Appender;
use crate::guard::{Abort, DirLock};
use crate::index::{Flushed, Index};
use crate::mend::Lost;
use crate::positions::Positions;
use crate::queues::Queues;
use crate::recovery::{Known, LastExit, Recovery};
use crate::retention::Cleaner;
use crate::signal::Signal;
use crate::write::{Dispatch, Refused, Writer};
use crate::{ArrivalListener, StoreConfig, TopicKinds};

/// How often it is looked for those who have waited too long.
const OVERDUE_TICK: Duration = Duration::from_millis(200);
/// How often the index takes what few keys wait.
const INDEX_TICK: Duration = Duration::from_millis(500);

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process (ours or Java's) has this directory.
    #[error("Lock failed, MQ already started: {0} is in use")]
    Locked(String),
    #[error("{path}: {what}")]
    Bad { path: String, what: String },
    #[error("{path}: {source}")]
    Io { path: String, source: std::io::Error },
}

impl OpenError {
    pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> OpenError {
        let path = path.display().to_string();
        move |source| OpenError::Io { path: path.clone(), source }
    }

    pub(crate) fn bad(path: &Path, what: String) -> OpenError {
        OpenError::Bad { path: path.display().to_string(), what }
    }
}

/// An open store. All methods may be called from any thread. Dropping it closes it.
pub struct Store {
    pub(crate) config: StoreConfig,
    pub(crate) topics: Arc<dyn TopicKinds>,
    pub(crate) listener: Box<dyn ArrivalListener>,
    pub(crate) log: CommitLog,
    pub(crate) queues: Queues,
    pub(crate) index: Index,
    pub(crate) compaction: Compaction,
    pub(crate) deleted: Deleted,
    pub(crate) lost_units: Lost,
    pub(crate) positions: Positions,
    pub(crate) gate: Gate,
    pub(crate) counters: Counters,
    pub(crate) cleaner: Cleaner,
    pub(crate) start_timestamp: i64,
    /// Physical memory of the machine.
    pub(crate) memory_bytes: u64,

    pub(crate) appender: Mutex<Appender>,
    pub(crate) writer: Mutex<Writer>,
    /// Tickets up to here have been written or refused.
    pub(crate) written_ticket: AtomicU64,
    pub(crate) flushed_ticket: AtomicU64,
    pub(crate) refused: Mutex<Refused>,
    pub(crate) refusals: AtomicU64,
    /// Under SYNC_FLUSH: written, but to be shown only after the flush.
    pub(crate) unflushed: Mutex<VecDeque<Dispatch>>,
    pub(crate) waiters: Mutex<Vec<Waiter>>,
    pub(crate) last_written_time: AtomicI64,
    pub(crate) last_flushed_time: AtomicI64,
    pub(crate) last_dispatched_time: AtomicI64,

    pub(crate) flush_signal: Arc<Signal>,
    pub(crate) queue_signal: Arc<Signal>,
    pub(crate) index_signal: Arc<Signal>,
    pub(crate) clean_signal: Arc<Signal>,
    overdue_signal: Arc<Signal>,
    pub(crate) compaction_signal: Arc<Signal>,
    threads: Mutex<Vec<JoinHandle<()>>>,

    pub(crate) checkpoint: Mutex<(Checkpoint, Progress)>,
    pub(crate) chores: Mutex<Chores>,
    abort: Abort,
    abandoned: AtomicBool,
    lock: Mutex<Option<DirLock>>,
}

impl Store {
    /// Locks the directory, recovers, starts the background threads.
    pub fn open(
        config: StoreConfig,
        topics: Arc<dyn TopicKinds>,
        listener: Box<dyn ArrivalListener>,
    ) -> Result<Arc<Store>, OpenError> {
        let root = config.root.clone();
        let lock = DirLock::take(&root)?;
        let abort = Abort::in_dir(&root);
        let was_running = abort.exists();
        let log = CommitLog::load(&config)?;
        let path = root.join("checkpoint");
        let (checkpoint, progress) = Checkpoint::open(&path, config.faults.clone()).map_err(OpenError::io(&path))?;
        let boot = boot_id();
        let known = Known::new(was_running, checkpoint.times, progress, boot);
        let exit = known.exit;
        let index = Index::new(&config);
        // From here on files change: a death before the end must not look like a clean stop.
        match abort.write() {
            // It says what it has to say already; only its content, for humans, is the last process's.
            Err(error) if was_running => tracing::warn!(%error, "the abort file stays as it was"),
            result => result.map_err(OpenError::io(&root.join("abort")))?,
        }
        sync_names(&root, &config.faults).map_err(OpenError::io(&root))?;

        let queues = Queues::new(&config, topics.clone());
        let deleted = Deleted::load(&root, config.faults.clone());
        let found =
            Recovery { config: &config, log: &log, queues: &queues, deleted: &deleted, known }.run(&mut |from| {
                let marks = progress.unwrap_or_default();
                let lower = Progress {
                    queued: marks.queued.min(from),
                    durable: marks.durable.min(from),
                    clean: false,
                    ..marks
                };
                checkpoint.write(&lower).and_then(|()| checkpoint.sync()).map_err(OpenError::io(&path))
            })?;
        deleted.lower(found.end);
        deleted.forget_below(log.min_offset());
        let flushed = Flushed { time: checkpoint.times.index, offset: progress.map(|p| p.index_flushed) };
        index.load(flushed, exit == LastExit::Crashed)?;
        let indexed = progress.filter(|_| exit != LastExit::Crashed).map(|p| (p.indexed, p.index_last));
        index.cut(found.end).map_err(OpenError::io(index.dir()))?;
        index.resume(&log, indexed, found.end).map_err(OpenError::io(index.dir()))?;

        // What a killed process had written was not all flushed.
        let unflushed = progress.map_or(found.from, |p| p.flushed.min(found.from));
        let progress = progress.unwrap_or_default();
        let progress = Progress {
            // What was built again behind this is in memory, and the marks may have been those of a longer log.
            queued: found.from,
            durable: progress.durable.min(found.from),
            boot,
            ..progress
        };
        let last_time = if found.last_time > 0 { found.last_time } else { checkpoint.times.physic };
        let store = Arc::new(Store {
            appender: Mutex::new(Appender::new(found.end, config.commit_log_file_size)),
            writer: Mutex::default(),
            written_ticket: AtomicU64::new(found.end),
            flushed_ticket: AtomicU64::new(found.end),
            positions: Positions::at(found.end),
            refused: Mutex::default(),
            refusals: AtomicU64::new(0),
            unflushed: Mutex::default(),
            waiters: Mutex::default(),
            last_written_time: AtomicI64::new(last_time),
            last_flushed_time: AtomicI64::new(checkpoint.times.physic),
            last_dispatched_time: AtomicI64::new(last_time),
            gate: Gate::new(config.slave && !config.duplication_enable),
            counters: Counters::default(),
            cleaner: Cleaner::new(),
            start_timestamp: now_ms(),
            memory_bytes: memory_bytes(),
            flush_signal: Arc::default(),
            queue_signal: Arc::default(),
            index_signal: Arc::default(),
            clean_signal: Arc::default(),
            overdue_signal: Arc::default(),
            compaction_signal: Arc::default(),
            compaction: Compaction::new(&config, exit == LastExit::Clean),
            threads: Mutex::default(),
            checkpoint: Mutex::new((checkpoint, progress)),
            chores: Mutex::new(Chores::new()),
            abort,
            abandoned: AtomicBool::new(false),
            lock: Mutex::new(Some(lock)),
            config,
            topics,
            listener,
            log,
            queues,
            index,
            deleted,
            lost_units: Lost::default(),
        });
        // What recovery found may never have been synced.
        store.sync_recovered(unflushed).map_err(OpenError::io(&root))?;
        store.save_deleted();
        store.load_compaction()?;
        store.start_threads().map_err(OpenError::io(&root))?;
        Ok(store)
    }

    fn sync_recovered(&self, from: u64) -> std::io::Result<()> {
        let end = self.positions.written();
        for segment in self.log.segments() {
            if segment.end() > from && segment.start < end {
                segment.sync()?;
            }
        }
        self.write_checkpoint(false)
    }

    fn start_threads(self: &Arc<Self>) -> std::io::Result<()> {
        let mut clock = FlushClock::new();
        let flush = self.spawn("store-flush", &self.flush_signal, move |store| store.flush_pass(&mut clock))?;
        let queues = self.spawn("store-queues", &self.queue_signal, |store| store.queue_pass())?;
        let index = self.spawn("store-index", &self.index_signal, |store| store.index_pass())?;
        let clean = self.spawn("store-clean", &self.clean_signal, |store| {
            store.delete_expired(now_ms());
            store.config.clean_resource_interval
        })?;
        let overdue = self.spawn("store-overdue", &self.overdue_signal, |store| {
            store.answer_overdue(Instant::now());
            OVERDUE_TICK
        })?;
        self.threads.lock().extend([flush, queues, index, clean, overdue]);
        if self.compaction.enabled {
            let mut schedule = Schedule::new(self.config.compaction_interval);
            let pass = move |store: &Store| store.compaction_pass(&mut schedule);
            self.threads.lock().push(self.spawn("store-compact", &self.compaction_signal, pass)?);
        }
        Ok(())
    }

    /// Starts a thread that waits, at first for a pass' usual pause, and then does a pass. It holds the store only meanwhile.
    fn spawn(
        self: &Arc<Self>,
        name: &str,
        signal: &Arc<Signal>,
        mut pass: impl FnMut(&Store) -> Duration + Send + 'static,
    ) -> std::io::Result<JoinHandle<()>> {
        let (weak, signal): (Weak<Store>, _) = (Arc::downgrade(self), signal.clone());
        std::thread::Builder::new().name(name.into()).spawn(move || {
            let mut pause = QUEUE_TICK;
            loop {
                signal.wait(pause);
                if signal.is_stopping() {
                    return;
                }
                let Some(store) = weak.upgrade() else { return };
                pause = pass(&store);
            }
        })
    }

    // ---- passes of the background threads ----

    fn index_pass(&self) -> Duration {
        if let Err(error) = self.index.catch_up(&self.log, self.positions.confirmed()) {
            tracing::warn!(%error, "the key index cannot be written for now");
        }
        INDEX_TICK
    }

    // ---- closing ----

    /// Refuses new appends, writes and flushes everything, stops the threads, removes `abort`, frees the lock. A second call
    /// does nothing.
    pub fn close(&self) {
        if !self.gate.close() {
            return;
        }
        self.stop_threads();
        if !self.abandoned.load(Ordering::Acquire) {
            self.write_all();
            self.flush_now();
            match self.finish() {
                Ok(()) => tracing::info!(end = self.positions.written(), "the store is closed"),
                Err(error) => tracing::error!(%error, "closing the store: the next start will check its files"),
            }
        }
        self.answer_closed();
        self.queues.close_files();
        self.lock.lock().take();
    }

    fn stop_threads(&self) {
        let signals = [
            &self.flush_signal,
            &self.queue_signal,
            &self.index_signal,
            &self.clean_signal,
            &self.compaction_signal,
            &self.overdue_signal,
        ];
        signals.into_iter().for_each(|signal| signal.stop());
        let me = std::thread::current().id();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // A background thread may be the one that drops the store.
            if thread.thread().id() != me && thread.join().is_err() {
                tracing::error!("a thread of the store had panicked");
            }
        }
    }

    /// Everything onto the disk, then the marks that say so.
    fn finish(&self) -> std::io::Result<()> {
        if self.gate.is_stopped() {
            return Err(std::io::Error::other("an earlier write or flush failed"));
        }
        self.log.drop_prepared();
        self.queues.save_all()?;
        if let Err(error) = self.queues.sync(0) {
            tracing::error!(%error, "flushing consume queues failed");
        }
        let unsettled = match (self.queues.doubtful(), self.deleted.is_undecided()) {
            (true, _) => Some("consume queues could not be flushed"),
            (false, true) => Some("the deletion of a topic has failed"),
            (false, false) => None,
        };
        if let Some(why) = unsettled {
            self.write_checkpoint(false)?;
            return Err(std::io::Error::other(why));
        }
        let indexed = self.index.catch_up(&self.log, self.positions.confirmed()).and_then(|()| self.index.flush());
        if let Err(error) = indexed {
            // It is caught up at the next start.
            tracing::warn!(%error, "the key index is incomplete");
        }
        self.save_deleted();
        // What is missing is copied after the next start.
        self.copied_until();
        {
            let mut checkpoint = self.checkpoint.lock();
            let end = self.positions.confirmed();
            checkpoint.1.queued = end;
            checkpoint.1.durable = end;
            checkpoint.0.times.logics = self.last_dispatched_time.load(Ordering::Acquire);
        }
        self.write_checkpoint(true)?;
        self.abort.remove()
    }

    /// Does now what the background threads do by the clock: for tests of recovery.
    #[doc(hidden)]
    pub fn pass(&self, thorough: bool) {
        if thorough {
            self.chores.lock().is_due();
        }
        self.index_pass();
        self.queue_pass();
    }

    /// Leaves everything as a killed process would: for tests of recovery.
    #[doc(hidden)]
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
        self.close();
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}

fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram * u64::from(info.mem_unit)
}
