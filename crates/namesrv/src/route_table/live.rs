//! When each broker was last heard of, and over which connection.

use std::collections::HashMap;
use std::sync::Arc;

use super::brokers::BrokerAddr;
use super::types::{ConnectionId, DataVersion};

/// How long a broker that names no time-out of its own may stay silent, in milliseconds.
pub const DEFAULT_BROKER_TIMEOUT_MS: i64 = 120_000;

/// The state of a live entry when somebody decided that its broker must go. The removal does nothing once the broker
/// has registered again or, where silence was the reason, has been heard of again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveMark {
    registration: u64,
    heard_ms: Option<i64>,
}

#[derive(Debug, Clone)]
pub(crate) struct Live {
    /// Counts registrations over all brokers: no two entries ever have the same.
    registration: u64,
    pub last_update_ms: i64,
    pub timeout_ms: i64,
    pub version: DataVersion,
    pub connection: ConnectionId,
    pub ha_addr: Option<Arc<str>>,
}

#[derive(Debug, Default)]
pub(crate) struct LiveTable {
    entries: HashMap<BrokerAddr, Live>,
    registrations: u64,
}

impl LiveTable {
    pub(crate) fn get(&self, key: &BrokerAddr) -> Option<&Live> {
        self.entries.get(key)
    }

    pub(crate) fn remove(&mut self, key: &BrokerAddr) -> Option<Live> {
        self.entries.remove(key)
    }

    /// Puts a new entry in the place of the old one, under a new identity; returns the old one.
    pub(crate) fn replace(&mut self, key: BrokerAddr, mut live: Live) -> Option<Live> {
        self.registrations += 1;
        live.registration = self.registrations;
        self.entries.insert(key, live)
    }

    pub(crate) fn touch(&mut self, key: &BrokerAddr, now_ms: i64) -> Option<&Live> {
        let live = self.entries.get_mut(key)?;
        live.last_update_ms = now_ms;
        Some(live)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&BrokerAddr, &Live)> {
        self.entries.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

impl Live {
    pub(crate) fn new(now_ms: i64, timeout_ms: Option<i64>, version: DataVersion, connection: ConnectionId) -> Self {
        Self {
            registration: 0,
            last_update_ms: now_ms,
            timeout_ms: timeout_ms.unwrap_or(DEFAULT_BROKER_TIMEOUT_MS),
            version,
            connection,
            ha_addr: None,
        }
    }

    pub(crate) fn expired(&self, now_ms: i64) -> bool {
        self.last_update_ms.saturating_add(self.timeout_ms) < now_ms
    }

    pub(crate) fn mark(&self, until_heard: bool) -> LiveMark {
        LiveMark { registration: self.registration, heard_ms: until_heard.then_some(self.last_update_ms) }
    }

    pub(crate) fn is_still(&self, mark: &LiveMark) -> bool {
        self.registration == mark.registration && mark.heard_ms.is_none_or(|heard| heard == self.last_update_ms)
    }
}
