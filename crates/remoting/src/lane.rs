//! Lanes: how many requests of one kind may be under way at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A class of requests with a limit. What Java bounds by a thread pool's queue is bounded here by permits.
#[derive(Debug, Clone)]
pub struct Lane {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: &'static str,
    limit: usize,
    in_flight: AtomicUsize,
}

impl Lane {
    /// `limit` counts requests that have entered and not yet left.
    pub fn new(name: &'static str, limit: usize) -> Self {
        Self { inner: Arc::new(Inner { name, limit, in_flight: AtomicUsize::new(0) }) }
    }

    /// `None` when the lane is full: answer with [`crate::Reply::overloaded`].
    pub fn try_enter(&self) -> Option<LanePermit> {
        if self.inner.in_flight.fetch_add(1, Ordering::Relaxed) >= self.inner.limit {
            self.inner.in_flight.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(LanePermit { lane: self.inner.clone() })
    }

    pub fn name(&self) -> &'static str {
        self.inner.name
    }

    pub fn limit(&self) -> usize {
        self.inner.limit
    }

    pub fn in_flight(&self) -> usize {
        self.inner.in_flight.load(Ordering::Relaxed)
    }
}

/// One request's place in a lane, given back when dropped. It may ride in the [`crate::Reply`].
#[derive(Debug)]
pub struct LanePermit {
    lane: Arc<Inner>,
}

impl Drop for LanePermit {
    fn drop(&mut self) {
        self.lane.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_lane_refuses_until_somebody_leaves() {
        let lane = Lane::new("send", 2);
        let first = lane.try_enter().unwrap();
        let _second = lane.try_enter().unwrap();
        assert!(lane.try_enter().is_none());
        assert_eq!(lane.in_flight(), 2);
        drop(first);
        assert!(lane.try_enter().is_some());
    }
}
