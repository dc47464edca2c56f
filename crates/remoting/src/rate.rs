//! Log lines that a flood of bad requests must not turn into a flood of lines.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Lets one event through per period and counts the others.
#[derive(Debug)]
pub struct RateLimited {
    last: Mutex<Option<Instant>>,
    skipped: AtomicU64,
}

const PERIOD: Duration = Duration::from_secs(1);

impl Default for RateLimited {
    fn default() -> Self {
        Self::new()
    }
}

impl RateLimited {
    pub const fn new() -> Self {
        Self { last: Mutex::new(None), skipped: AtomicU64::new(0) }
    }

    /// `Some(number of events skipped since the last one let through)` when the caller should log.
    pub fn allow(&self) -> Option<u64> {
        let now = Instant::now();
        let mut last = self.last.lock();
        if last.is_some_and(|last| now.duration_since(last) < PERIOD) {
            self.skipped.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        *last = Some(now);
        Some(self.skipped.swap(0, Ordering::Relaxed))
    }
}
