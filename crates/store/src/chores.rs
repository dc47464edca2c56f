//! What the queue thread does by the clock: units into their files and onto the disk, and the marks that say how far.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::Store;
use crate::checkpoint::NO_BOOT;

/// How often queue units are written and the small chores are done.
pub(crate) const QUEUE_TICK: Duration = Duration::from_millis(200);
/// How often pages of old messages are let go of.
const RELEASE_EVERY: Duration = Duration::from_secs(1);
/// Idle queues give their memory back after about this time.
const COOL_EVERY: Duration = Duration::from_secs(10);

impl Store {
    pub(crate) fn queue_pass(&self) -> Duration {
        let chores = &mut *self.chores.lock();
        let now = Instant::now();
        self.gate.retry(now);
        // A caller that appended but did not write out must not keep others' messages back for ever.
        self.write_all();
        self.log.prepare_next(self.positions.written());
        let confirmed = self.positions.confirmed();
        let saved = self.queues.save_all().is_ok() && !self.deleted.is_undecided();
        if saved && confirmed > chores.queued {
            chores.queued = confirmed;
            self.checkpoint.lock().1.queued = confirmed;
            chores.changed = true;
        }
        if now >= chores.next_sync {
            chores.next_sync = now + self.config.flush_interval_consume_queue;
            let thorough = now >= chores.next_thorough;
            if thorough {
                chores.next_thorough = now + self.config.flush_consume_queue_thorough_interval;
            }
            self.sync_queues(thorough, saved.then_some(chores.queued));
            self.save_deleted();
            chores.changed = true;
        }
        if std::mem::take(&mut chores.changed) && chores.worth_writing(self) {
            self.checkpoint_now();
        }
        if now >= chores.next_release {
            chores.next_release = now + RELEASE_EVERY;
            self.log.release_pages(self.positions.written());
        }
        if now >= chores.next_cool {
            chores.next_cool = now + COOL_EVERY;
            self.queues.cool();
        }
        QUEUE_TICK
    }

    /// Syncs queue files; a thorough sync moves the mark from which a crashed machine starts.
    fn sync_queues(&self, thorough: bool, queued: Option<u64>) {
        let time = self.last_dispatched_time.load(Ordering::Acquire);
        let least = if thorough { 0 } else { self.config.flush_consume_queue_least_pages * 4096 };
        let flushed = self.positions.flushed();
        if let Err(error) = self.queues.sync(least) {
            // The units can be built again, so nothing is lost; the mark stays.
            tracing::error!(%error, "flushing consume queues failed");
            self.checkpoint_now();
            return;
        }
        if let Some(queued) = queued.filter(|_| thorough && !self.queues.doubtful()) {
            let mut checkpoint = self.checkpoint.lock();
            checkpoint.1.durable = queued.min(flushed).max(checkpoint.1.durable);
            if queued <= flushed {
                checkpoint.0.times.logics = time;
            }
        }
    }

    /// Puts all units onto the disk, and the mark that says so. Returns the mark: units of the commit log below it are safe.
    pub(crate) fn secure_queues(&self) -> std::io::Result<u64> {
        // A sync of the queue thread that is still under way has taken the list of what is not synced.
        let _one = self.chores.lock();
        let confirmed = self.positions.confirmed();
        self.queues.save_all()?;
        self.sync_queues(true, (!self.deleted.is_undecided()).then_some(confirmed));
        self.write_checkpoint(false)?;
        Ok(self.checkpoint.lock().1.durable)
    }

    pub(crate) fn checkpoint_now(&self) {
        if let Err(error) = self.write_checkpoint(false) {
            tracing::warn!(%error, "writing the checkpoint failed");
        }
    }

    pub(crate) fn write_checkpoint(&self, clean: bool) -> std::io::Result<()> {
        let mut checkpoint = self.checkpoint.lock();
        let (file, progress) = &mut *checkpoint;
        file.times.physic = self.last_flushed_time.load(Ordering::Acquire);
        let index = self.index.flushed();
        file.times.index = file.times.index.max(index.time);
        progress.index_flushed = index.offset.unwrap_or(0);
        progress.index_last = self.index.last_offset();
        file.times.confirm = self.positions.confirmed() as i64;
        progress.flushed = self.positions.flushed();
        progress.indexed = self.index.position();
        (progress.queues, progress.last_files) = self.queues.extent();
        progress.clean = clean;
        if self.queues.doubtful() {
            // The next start believes the units below the mark alone, as after a crash of the machine.
            progress.boot = NO_BOOT;
        }
        file.write(progress)?;
        file.sync()
    }
}

/// When the queue thread does what.
pub(crate) struct Chores {
    queued: u64,
    changed: bool,
    written_at: u64,
    next_sync: Instant,
    next_thorough: Instant,
    next_release: Instant,
    next_cool: Instant,
}

impl Chores {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Chores {
            queued: 0,
            changed: false,
            written_at: u64::MAX,
            next_sync: now,
            next_thorough: now + Duration::from_secs(10),
            next_release: now,
            next_cool: now + COOL_EVERY,
        }
    }

    /// The next pass is a thorough one.
    pub(crate) fn is_due(&mut self) {
        self.next_sync = Instant::now();
        self.next_thorough = self.next_sync;
    }

    /// An idle store writes no checkpoints.
    fn worth_writing(&mut self, store: &Store) -> bool {
        let sum = store
            .positions
            .confirmed()
            .wrapping_add(store.positions.flushed())
            .wrapping_add(store.index.position())
            .wrapping_add(store.checkpoint.lock().1.durable);
        std::mem::replace(&mut self.written_at, sum) != sum
    }
}
