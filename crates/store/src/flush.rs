//! Flushing: one `fdatasync` for all that wait for the disk.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::{FlushDiskType, FlushError, Store, writeback};

const PAGE: u64 = 4096;
/// With so much to write at a flush, writing begins before the next one.
const BUSY_BYTES: u64 = 1 << 20;
const WRITEBACK_EVERY: Duration = Duration::from_millis(20);
/// Bytes before the end that are left alone: writers are about to need their pages.
const UNTOUCHED_BYTES: u64 = 128 << 10;

type Done = Box<dyn FnOnce(Result<(), FlushError>) + Send>;

/// Somebody who waits for the disk.
pub(crate) struct Waiter {
    ticket: u64,
    overdue: Instant,
    done: Done,
}

/// When the flush thread did what.
pub(crate) struct FlushClock {
    flushed: Instant,
    thorough: Instant,
    busy: bool,
    /// Writing was begun up to here.
    started: u64,
}

impl FlushClock {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        FlushClock { flushed: now, thorough: now, busy: false, started: 0 }
    }
}

impl Store {
    /// Calls `done` once everything up to the ticket `end` is on the disk, after one sync for all that wait. Usually from the
    /// flush thread; at once when it is there already or cannot be. `done` must be quick and must not block.
    ///
    /// After `syncFlushTimeout` it is called with [`FlushError::Timeout`].
    pub fn when_flushed(&self, end: u64, done: Box<dyn FnOnce(Result<(), FlushError>) + Send>) {
        if self.flushed_ticket.load(Ordering::Acquire) >= end {
            done(self.outcome(end).map_err(FlushError::Write));
            return;
        }
        if self.gate.is_stopped() {
            done(Err(FlushError::Failed("an earlier write or flush failed".into())));
            return;
        }
        {
            let mut waiters = self.waiters.lock();
            // Under the lock: what close() leaves behind is answered by close().
            if !self.flush_signal.is_stopping() {
                let overdue = Instant::now() + self.config.sync_flush_timeout;
                waiters.push(Waiter { ticket: end, overdue, done });
                drop(waiters);
                self.flush_signal.wake();
                return;
            }
        }
        done(Err(FlushError::Closed));
    }

    /// One pass of the flush thread; returns how long it may sleep.
    pub(crate) fn flush_pass(&self, clock: &mut FlushClock) -> Duration {
        let interval = self.config.flush_interval_commit_log;
        let sync = self.config.flush_disk_type == FlushDiskType::Sync;
        if !self.waiters.lock().is_empty() {
            self.write_all();
        }
        let waiting = !self.waiters.lock().is_empty();
        if clock.busy && !sync && !waiting && clock.flushed.elapsed() < interval {
            self.start_writeback(&mut clock.started);
            return WRITEBACK_EVERY;
        }
        let behind = self.positions.written() - self.positions.flushed();
        let thorough = clock.thorough.elapsed() >= self.config.flush_commit_log_thorough_interval;
        let enough = behind / PAGE >= self.config.flush_commit_log_least_pages;
        if (behind > 0 && (sync || thorough || enough)) || waiting {
            self.flush_now();
        }
        clock.flushed = Instant::now();
        if thorough {
            clock.thorough = clock.flushed;
        }
        clock.busy = !sync && behind >= BUSY_BYTES;
        if clock.busy { WRITEBACK_EVERY.min(interval) } else { interval }
    }

    /// Gives the disk what is whole and will not be touched again, a little at a time. What a flush finds then is little: one
    /// that has half a second of messages to write keeps a processor and the pages writers want for tens of milliseconds.
    fn start_writeback(&self, started: &mut u64) {
        let from = self.positions.flushed().max(*started);
        let to = self.positions.written().saturating_sub(UNTOUCHED_BYTES) / PAGE * PAGE;
        if to < from + UNTOUCHED_BYTES {
            return;
        }
        for segment in self.log.segments() {
            let (begin, end) = (from.max(segment.start), to.min(segment.end()));
            if begin < end {
                writeback::start(segment.file.file(), begin - segment.start, end - begin);
            }
        }
        *started = to;
    }

    /// Syncs what is written and answers those who waited for it.
    pub(crate) fn flush_now(&self) {
        let ticket = self.written_ticket.load(Ordering::Acquire);
        let time = self.last_written_time.load(Ordering::Acquire);
        // Read after the ticket: what is written by then covers it.
        let to = self.positions.written();
        let result = self.sync_log(to);
        if let Err(error) = &result {
            self.gate.stop(format!("flushing the commit log failed: {error}"));
        } else {
            self.gate.lawful(self.positions.advance_flushed(to));
            self.last_flushed_time.store(time, Ordering::Release);
            self.release_flushed(to);
            self.flushed_ticket.store(ticket, Ordering::Release);
        }
        self.answer_waiters(ticket, result.err().map(|e| e.to_string()));
    }

    fn sync_log(&self, to: u64) -> std::io::Result<()> {
        if self.gate.is_stopped() {
            return Err(std::io::Error::other("an earlier write or flush failed"));
        }
        let from = self.positions.flushed();
        if from >= to {
            return Ok(());
        }
        for segment in self.log.segments() {
            if segment.start < to && from < segment.end() {
                segment.sync()?;
            }
        }
        Ok(())
    }

    /// Under SYNC_FLUSH messages become readable now.
    fn release_flushed(&self, to: u64) {
        loop {
            let next = self.unflushed.lock().pop_front_if(|d| d.end <= to);
            let Some(next) = next else { break };
            self.dispatch(&next.entries, next.end, next.last_store_time);
        }
    }

    fn answer_waiters(&self, ticket: u64, failed: Option<String>) {
        let mut due = Vec::new();
        {
            let mut waiters = self.waiters.lock();
            if failed.is_some() {
                due.append(&mut waiters);
            } else {
                due.extend(waiters.extract_if(.., |w| w.ticket <= ticket));
            }
        }
        for waiter in due {
            let result = match (&failed, self.outcome(waiter.ticket)) {
                (_, Err(refused)) => Err(FlushError::Write(refused)),
                (Some(error), _) => Err(FlushError::Failed(error.clone())),
                (None, Ok(())) => Ok(()),
            };
            (waiter.done)(result);
        }
    }

    /// Answers those who waited too long. Runs on a thread that never waits for the disk, for that is what they wait for.
    pub(crate) fn answer_overdue(&self, now: Instant) {
        let overdue: Vec<Waiter> = self.waiters.lock().extract_if(.., |w| w.overdue <= now).collect();
        for waiter in overdue {
            (waiter.done)(Err(FlushError::Timeout));
        }
    }

    /// Answers everybody who still waits when the store closes.
    pub(crate) fn answer_closed(&self) {
        let left = std::mem::take(&mut *self.waiters.lock());
        for waiter in left {
            (waiter.done)(Err(FlushError::Closed));
        }
    }
}
