//! What is counted while it runs.

use std::collections::BTreeMap;
use std::time::Instant;

use hdrhistogram::Histogram;
use parking_lot::Mutex;

/// The longest time that is told apart, in microseconds.
const LONGEST: u64 = 600_000_000;
const DIGITS: u8 = 3;

/// Counters of one direction, shared by all its connections. Locked once per read of a socket.
pub(crate) struct Stats {
    inner: Mutex<Inner>,
}

struct Inner {
    now: Counts,
    total: Counts,
}

/// What happened in a stretch of time.
#[derive(Clone)]
pub(crate) struct Counts {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// By what went wrong.
    pub(crate) failures: BTreeMap<String, u64>,
    /// Microseconds from asking to the answer.
    pub(crate) latency: Histogram<u64>,
    /// Microseconds from when a message was due to when a consumer had it.
    pub(crate) end_to_end: Histogram<u64>,
}

impl Counts {
    fn new() -> Self {
        // The bounds are constants that the histogram accepts.
        let histogram = || Histogram::new_with_bounds(1, LONGEST, DIGITS).unwrap_or_else(|_| endless());
        Self { messages: 0, bytes: 0, failures: BTreeMap::new(), latency: histogram(), end_to_end: histogram() }
    }

    fn clear(&mut self) {
        self.messages = 0;
        self.bytes = 0;
        self.failures.clear();
        self.latency.reset();
        self.end_to_end.reset();
    }

    fn add(&mut self, other: &Self) {
        self.messages += other.messages;
        self.bytes += other.bytes;
        for (what, count) in &other.failures {
            *self.failures.entry(what.clone()).or_default() += count;
        }
        // Both have the same bounds.
        let _ = self.latency.add(&other.latency);
        let _ = self.end_to_end.add(&other.end_to_end);
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    pub(crate) fn fail(&mut self, what: String, count: u64) {
        if count > 0 {
            *self.failures.entry(what).or_default() += count;
        }
    }
}

/// A histogram that grows as needed.
fn endless() -> Histogram<u64> {
    #[allow(clippy::expect_used)] // 3 is one of the five numbers of digits that are allowed.
    Histogram::new(DIGITS).expect("three digits are allowed")
}

impl Stats {
    pub(crate) fn new() -> Self {
        Self { inner: Mutex::new(Inner { now: Counts::new(), total: Counts::new() }) }
    }

    pub(crate) fn record(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.inner.lock().now);
    }

    /// Forgets the warm-up.
    pub(crate) fn reset(&self) {
        let mut inner = self.inner.lock();
        inner.now.clear();
        inner.total.clear();
    }

    /// What happened since the last call.
    pub(crate) fn lap(&self) -> Counts {
        let mut guard = self.inner.lock();
        let Inner { now, total } = &mut *guard;
        total.add(now);
        let lap = now.clone();
        now.clear();
        lap
    }

    /// What happened since the start or the reset.
    pub(crate) fn total(&self) -> Counts {
        self.lap();
        self.inner.lock().total.clone()
    }
}

/// A clock that counts nanoseconds from the start of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now() }
    }

    pub(crate) fn now(self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

pub(crate) fn micros(from: u64, to: u64) -> u64 {
    (to.saturating_sub(from) / 1000).clamp(1, LONGEST)
}
