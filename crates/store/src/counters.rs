//! Counts since the start.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::group::Group;

#[derive(Default)]
pub(crate) struct Counters {
    messages: AtomicU64,
    bytes: AtomicU64,
    groups: AtomicU64,
    max_us: AtomicU64,
    waited_us: AtomicU64,
    distribution: [AtomicU64; 13],
}

/// What was counted.
pub(crate) struct Counted {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) groups: u64,
    pub(crate) max_us: u64,
    /// What all messages' writes took together.
    pub(crate) waited_us: u64,
    pub(crate) distribution: [u64; 13],
}

impl Counters {
    /// A group was written; only its writer counts, so plain additions do.
    pub(crate) fn wrote(&self, group: &Group, took: Duration) {
        self.messages.fetch_add(group.messages, Ordering::Relaxed);
        self.bytes.fetch_add(group.end - group.start, Ordering::Relaxed);
        self.groups.fetch_add(1, Ordering::Relaxed);
        let us = took.as_micros() as u64;
        self.waited_us.fetch_add(us * group.messages, Ordering::Relaxed);
        if us > self.max_us.load(Ordering::Relaxed) {
            self.max_us.store(us, Ordering::Relaxed);
        }
        if let Some(bucket) = self.distribution.get(bucket(us / 1000)) {
            bucket.fetch_add(group.messages, Ordering::Relaxed);
        }
    }

    pub(crate) fn read(&self) -> Counted {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counted {
            messages: get(&self.messages),
            bytes: get(&self.bytes),
            groups: get(&self.groups),
            max_us: get(&self.max_us),
            waited_us: get(&self.waited_us),
            distribution: std::array::from_fn(|i| self.distribution.get(i).map_or(0, get)),
        }
    }
}

/// Java's buckets of put times in milliseconds.
fn bucket(ms: u64) -> usize {
    const UPPER: [u64; 11] = [10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10_000];
    if ms == 0 { 0 } else { 1 + UPPER.iter().position(|upper| ms < *upper).unwrap_or(UPPER.len()) }
}

#[cfg(test)]
mod tests {
    use super::bucket;

    #[test]
    fn buckets_are_javas() {
        let expected =
            [(0, 0), (1, 1), (9, 1), (10, 2), (49, 2), (50, 3), (999, 6), (1000, 7), (9999, 11), (10_000, 12)];
        for (ms, index) in expected {
            assert_eq!(bucket(ms), index, "{ms} ms");
        }
    }
}
