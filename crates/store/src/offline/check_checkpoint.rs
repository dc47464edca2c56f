//! Checking `checkpoint`.

use std::fs;
use std::io;

use super::OfflineStore;
use super::findings::{Finding, Findings, Remedy};
use crate::checkpoint::{OURS_AT, our_part};
use crate::clock::now_ms;

/// A clock may be wrong by this much, milliseconds.
const CLOCK_MARGIN: i64 = 24 * 3600 * 1000;

impl OfflineStore {
    pub(super) fn check_checkpoint(&self, found: &mut Findings) {
        let path = self.config.root.join("checkpoint");
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(_) if self.log.segments().is_empty() => return,
            Err(error) => {
                // What is there and cannot be read is in the way of a start, too.
                let missing = error.kind() == io::ErrorKind::NotFound;
                let remedy = if missing { Remedy::NextStart } else { Remedy::ByHand };
                found.add(Finding::new("checkpoint that cannot be read", remedy, &path, error.to_string()));
                return;
            }
        };
        let mut add = |kind, position, what: String| {
            found.add(Finding::new(kind, Remedy::NextStart, &path, what).at(position));
        };
        let limit = now_ms() + CLOCK_MARGIN;
        let times = [(0, "physicMsgTimestamp", self.times.physic), (8, "logicsMsgTimestamp", self.times.logics)];
        for (position, name, time) in times.into_iter().chain([(16, "indexMsgTimestamp", self.times.index)]) {
            if time < 0 || time > limit {
                add("time in the checkpoint", position, format!("{name} is {time}"));
            }
        }
        if our_part(&bytes) == Some(false) {
            add(
                "damaged marks in the checkpoint",
                OURS_AT as u64,
                "the sum over this broker's own marks is wrong".into(),
            );
        }
    }
}
