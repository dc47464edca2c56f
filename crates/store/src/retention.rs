//! Removing what is too old or what the disk has no room for.

use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::Timelike;
use parking_lot::Mutex;

use crate::Store;

/// Rounds a manual request is good for, as in Java.
const MANUAL_ROUNDS: i32 = 20;

/// What retention remembers between its rounds.
#[derive(Default)]
pub(crate) struct Cleaner {
    manual: AtomicI32,
    /// Commit log minimum at which queues and index were last cleaned.
    cleaned_at: AtomicU64,
    round: Mutex<()>,
}

/// Why files go in this round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Not,
    /// Files older than `fileReservedTime`.
    Expired,
    /// The disk is so full that age does not matter.
    AtOnce,
}

/// The disk as retention sees it, percent used (rounded up); `None` when it cannot be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) commit_log: Option<u32>,
    pub(crate) consume_queue: Option<u32>,
}

/// Levels in percent, in Java's bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Levels {
    pub(crate) used: u32,
    pub(crate) forcibly: u32,
    pub(crate) warning: u32,
}

/// What one look at the disk means: why to delete, and whether messages are refused (`None`: as before).
pub(crate) fn judge(usage: Usage, levels: Levels, hour_has_come: bool, manual: bool) -> (Why, Option<bool>) {
    let worst = usage.commit_log.max(usage.consume_queue);
    let refuse = match worst {
        Some(p) if p > levels.warning => Some(true),
        Some(p) if p > levels.forcibly => None,
        _ => Some(false),
    };
    let why = match worst {
        Some(p) if p > levels.forcibly => Why::AtOnce,
        Some(p) if p > levels.used => Why::Expired,
        _ if hour_has_come || manual => Why::Expired,
        _ => Why::Not,
    };
    (why, refuse)
}

impl Cleaner {
    pub(crate) fn new() -> Self {
        Cleaner::default()
    }
}

impl Store {
    /// One step of retention: removes at most `deleteFileBatchMax` old commit log files and what hangs on them, if it is time
    /// (`now`: milliseconds since 1970). Runs by itself every `cleanResourceInterval`. Returns the number of removed files.
    pub fn delete_expired(&self, now: i64) -> usize {
        let _one = self.cleaner.round.lock();
        if self.gate.is_closed() {
            return 0;
        }
        let manual = self.cleaner.manual.load(Ordering::Acquire) > 0;
        if manual {
            self.cleaner.manual.fetch_sub(1, Ordering::AcqRel);
        }
        let (usage, full_dirs) = self.disk_usage();
        self.log.set_full_dirs(full_dirs);
        let (mut why, refuse) = judge(usage, self.levels(), self.hour_has_come(now), manual);
        if let Some(full) = refuse {
            self.gate.set_disk_full(full);
        }
        if why == Why::AtOnce && !self.config.clean_file_forcibly {
            why = Why::Expired;
        }
        let removed = if why == Why::Not { 0 } else { self.delete_files(now, why == Why::AtOnce) };
        self.follow_minimum();
        removed
    }

    /// Removes expired files now, whatever the hour: at once a batch, the rest in the following rounds.
    pub fn delete_expired_now(&self) -> usize {
        self.cleaner.manual.store(MANUAL_ROUNDS, Ordering::Release);
        self.delete_expired(crate::clock::now_ms())
    }

    fn delete_files(&self, now: i64, at_once: bool) -> usize {
        let keep_ms = self.config.file_reserved_time.as_millis() as i64;
        let mut removed = 0;
        let mut released = None;
        while removed < self.config.delete_file_batch_max {
            let segments = self.log.segments();
            // Never the last: it is being written.
            let [first, _, ..] = segments.as_slice() else { break };
            if !at_once && modified_ms(first.file.path()).is_none_or(|at| at + keep_ms > now) {
                break;
            }
            // Something behind it is on the disk: else a crash would leave no log to go on from.
            if first.end() >= self.positions.flushed() {
                break;
            }
            if first.end() > *released.get_or_insert_with(|| self.released(at_once)) {
                tracing::warn!(path = %first.file.path().display(), "kept, because queues or compacted logs do not have its messages on the disk yet");
                break;
            }
            if let Err(error) = self.log.remove_first() {
                tracing::error!(path = %first.file.path().display(), %error, "cannot remove an old commit log file");
                break;
            }
            tracing::info!(path = %first.file.path().display(), at_once, "removed an old commit log file");
            removed += 1;
            if removed < self.config.delete_file_batch_max && !self.clean_signal.is_stopping() {
                // Unlinking a gigabyte keeps the file system busy; writers get their turn in between.
                std::thread::sleep(self.config.delete_commit_log_files_interval.min(Duration::from_secs(1)));
            }
        }
        removed
    }

    /// The offset below which the commit log may go: compacted logs have their messages from there, and the units of the queues
    /// are on the disk. After a crash units are made again from the commit log, and offsets must not shift by those that are
    /// missing.
    fn released(&self, at_once: bool) -> u64 {
        let copied = self.copied_until();
        match self.secure_queues() {
            // On a full disk nothing can be written before something has gone.
            _ if at_once => {
                if copied < u64::MAX {
                    tracing::error!(
                        from = copied,
                        "the disk is nearly full: commit log files go although compacted logs lack messages of them"
                    );
                }
                u64::MAX
            }
            Ok(secured) => copied.min(secured),
            Err(error) => {
                tracing::error!(%error, "no file is removed, because consume queues cannot be flushed");
                0
            }
        }
    }

    /// Lets queues and index follow the commit log's minimum.
    fn follow_minimum(&self) {
        let min = self.log.min_offset();
        if self.cleaner.cleaned_at.swap(min, Ordering::AcqRel) == min {
            return;
        }
        self.deleted.forget_below(min);
        // Units that are only in memory may belong into files that go now. The queue thread reports an error.
        let _ = self.queues.save_all();
        for queue in self.queues.all() {
            if let Err(error) = self.queues.clean(&queue, min) {
                tracing::error!(topic = %queue.topic, queue = queue.id, %error, "cannot remove old consume queue files");
            }
        }
        if let Err(error) = self.index.clean(min) {
            tracing::error!(%error, "cannot remove old index files");
        }
    }

    fn levels(&self) -> Levels {
        Levels {
            used: self.config.disk_max_used_space_ratio.clamp(10, 95),
            forcibly: self.config.disk_space_clean_forcibly_ratio.clamp(30, 85),
            warning: self.config.disk_space_warning_level_ratio.clamp(35, 90),
        }
    }

    fn hour_has_come(&self, now: i64) -> bool {
        let Some(utc) = chrono::DateTime::from_timestamp_millis(now) else { return false };
        let hour = utc.with_timezone(&chrono::Local).hour();
        self.config.delete_when.iter().any(|h| u32::from(*h) == hour)
    }

    /// Of several commit log folders the least full one counts; those above the forcible level get no new file.
    fn disk_usage(&self) -> (Usage, Vec<std::path::PathBuf>) {
        let forcibly = self.levels().forcibly;
        let shares: Vec<_> = self.log.dirs().iter().map(|dir| (dir, used_percent(dir))).collect();
        let full = shares.iter().filter(|(_, p)| p.is_some_and(|p| p > forcibly)).map(|(dir, _)| (*dir).clone());
        let commit_log = shares.iter().filter_map(|(_, p)| *p).min();
        (Usage { commit_log, consume_queue: used_percent(self.queues.root()) }, full.collect())
    }

    /// Removes queues whose last message is no longer in the commit log, except those of topics `keep` says true for.
    pub fn clean_expired_queues(&self, keep: &dyn Fn(&str) -> bool) -> usize {
        let min = self.log.min_offset();
        let mut removed = 0;
        for queue in self.queues.all() {
            let last = queue.state().max_physical;
            // What a compacted topic holds does not depend on the commit log, and its offsets must go on.
            let compacted = self.compacted(&queue).is_some();
            if keep(&queue.topic) || compacted || last == 0 || last > min || queue.end() == 0 {
                continue;
            }
            match self.queues.delete_queue(&queue) {
                Ok(()) => removed += 1,
                Err(error) => {
                    tracing::error!(topic = %queue.topic, queue = queue.id, %error, "cannot remove an expired queue");
                }
            }
        }
        removed
    }
}

fn modified_ms(path: &Path) -> Option<i64> {
    let time: SystemTime = std::fs::metadata(path).ok()?.modified().ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_millis() as i64)
}

/// Used share of the partition as Java computes it, in percent, rounded up.
fn used_percent(path: &Path) -> Option<u32> {
    let (used, usable) = used_and_usable(path)?;
    Some((used * 100).div_ceil((used + usable).max(1)) as u32)
}

fn used_and_usable(path: &Path) -> Option<(u64, u64)> {
    let stat = rustix::fs::statvfs(path).ok()?;
    let used = stat.f_blocks.checked_sub(stat.f_bfree)?.checked_mul(stat.f_frsize)?;
    (stat.f_blocks > 0).then(|| (used, stat.f_bavail.saturating_mul(stat.f_frsize)))
}

/// Used bytes of the partition; 0 when unknown.
pub(crate) fn used_bytes(path: &Path) -> u64 {
    used_and_usable(path).map_or(0, |(used, _)| used)
}

/// Used share of the partition, 0.0–1.0; −1 when unknown.
pub(crate) fn used_ratio(path: &Path) -> f64 {
    used_percent(path).map_or(-1.0, |p| f64::from(p) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: Levels = Levels { used: 75, forcibly: 85, warning: 90 };

    fn at(commit_log: u32, consume_queue: u32) -> Usage {
        Usage { commit_log: Some(commit_log), consume_queue: Some(consume_queue) }
    }

    #[test]
    fn the_levels_mean_what_they_mean_in_java() {
        assert_eq!(judge(at(50, 50), LEVELS, false, false), (Why::Not, Some(false)));
        assert_eq!(judge(at(50, 50), LEVELS, true, false), (Why::Expired, Some(false)));
        assert_eq!(judge(at(50, 50), LEVELS, false, true), (Why::Expired, Some(false)));
        assert_eq!(judge(at(76, 50), LEVELS, false, false), (Why::Expired, Some(false)));
        assert_eq!(judge(at(50, 76), LEVELS, false, false), (Why::Expired, Some(false)));
        assert_eq!(judge(at(86, 50), LEVELS, false, false), (Why::AtOnce, None), "the flag stays as it is");
        assert_eq!(judge(at(91, 50), LEVELS, false, false), (Why::AtOnce, Some(true)));
        assert_eq!(judge(at(50, 91), LEVELS, false, false), (Why::AtOnce, Some(true)));
        assert_eq!(judge(at(85, 85), LEVELS, false, false), (Why::Expired, Some(false)), "cleared at 85");
    }

    #[test]
    fn at_the_forcible_level_compacted_logs_that_cannot_be_written_hold_nothing_up() {
        struct Compacted;
        impl crate::TopicKinds for Compacted {
            fn is_compaction(&self, _: &str) -> bool {
                true
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let config = crate::StoreConfig::new(dir.path());
        let store = Store::open(config, std::sync::Arc::new(Compacted), Box::new(())).unwrap();
        std::fs::create_dir_all(dir.path().join("compaction")).unwrap();
        std::fs::write(dir.path().join("compaction/compactionLog"), "no folder").unwrap();
        let address = ([127, 0, 0, 1], 1).into();
        let sent = store.append(&crate::Append {
            topic: "C",
            queue_id: 0,
            flag: 0,
            sys_flag: 0,
            born_timestamp: 0,
            born_host: address,
            store_host: address,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body: b"x",
            properties: b"KEYS\x01k",
            more_properties: &[],
        });
        store.write_out(sent.unwrap().end).unwrap();
        assert_eq!(store.released(false), 0);
        assert_eq!(store.released(true), u64::MAX);
    }

    #[test]
    fn the_share_of_a_real_partition_is_a_percentage() {
        let percent = used_percent(Path::new("/")).unwrap();
        assert!((1..=100).contains(&percent), "{percent}");
        assert_eq!(used_percent(Path::new("/no/such/folder")), None);
    }
}
