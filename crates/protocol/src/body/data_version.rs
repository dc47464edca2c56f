//! The version of a table.

use serde::{Deserialize, Serialize};

/// Tells two states of a table apart. Equal only when all three numbers are; ordered by state version, then counter,
/// then time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DataVersion {
    /// The master's epoch in controller mode, else 0.
    pub state_version: i64,
    pub counter: i64,
    /// Milliseconds since the epoch.
    pub timestamp: i64,
}

impl DataVersion {
    /// Moves on at the time `now`.
    pub fn next(&mut self, state_version: i64, now: i64) {
        self.timestamp = now;
        self.state_version = state_version;
        self.counter += 1;
    }
}
