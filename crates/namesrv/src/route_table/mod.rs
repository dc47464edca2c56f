//! The name server's tables as one state machine: an event and the time go in, an answer and what else must be done
//! come out. Nothing here reads a clock, opens a socket or writes a log line.
//!
//! Registrations, removals and admin changes are applied one at a time, under `order`. Queries never take that lock:
//! brokers are an immutable picture behind an atomic pointer, and topics lie in shards that a registration locks one
//! after the other, each for the few of its topics that fall into it and have changed. A picture of the brokers is
//! published before the rows that go with it: a broker's name appears before its topics, and goes before them, so
//! that no route shows an address that is gone.

mod brokers;
mod encoded;
mod json_text;
mod live;
mod query;
mod register;
mod route;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
mod topics;
mod types;
mod unregister;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

pub use brokers::{BrokerAddr, BrokerGroup, Brokers, MASTER_ID};
pub use encoded::RouteForm;
pub use json_text::Dialect;
pub use live::{DEFAULT_BROKER_TIMEOUT_MS, LiveMark};
pub use query::{TableSizes, UnitFilter, VersionCheck};
pub use types::*;

use live::LiveTable;
use topics::Topics;

/// Bytes of encoded route answers kept by default.
pub const DEFAULT_ENCODED_LIMIT: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub struct RouteTable {
    /// Held while an event is applied. Never taken by a query.
    order: Mutex<()>,
    brokers: ArcSwap<Brokers>,
    /// Held for single look-ups only, also while `order` is held.
    live: Mutex<LiveTable>,
    topics: Topics,
    encoded_limit_per_shard: usize,
    routes_encoded: AtomicU64,
}

impl Default for RouteTable {
    fn default() -> Self {
        Self::new(DEFAULT_ENCODED_LIMIT)
    }
}

impl RouteTable {
    /// `encoded_limit`: bytes of encoded answers to keep.
    pub fn new(encoded_limit: usize) -> Self {
        Self {
            order: Mutex::new(()),
            brokers: ArcSwap::default(),
            live: Mutex::default(),
            topics: Topics::new(),
            encoded_limit_per_shard: encoded_limit / topics::SHARDS,
            routes_encoded: AtomicU64::new(0),
        }
    }

    /// The brokers as of now.
    pub fn brokers(&self) -> Arc<Brokers> {
        self.brokers.load_full()
    }

    /// A picture to change and publish. Only while `order` is held.
    fn next_brokers(&self) -> Brokers {
        let mut next = Brokers::clone(&self.brokers.load());
        next.version += 1;
        next
    }

    fn publish_if_changed(&self, next: Brokers) {
        let now = self.brokers.load();
        if next.by_name != now.by_name || next.clusters != now.clusters || next.filter_version != now.filter_version {
            self.publish(next);
        }
    }

    fn publish(&self, next: Brokers) {
        self.brokers.store(Arc::new(next));
    }
}
