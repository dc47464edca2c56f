//! An operator's tools for a stopped store: check it, print records, build queues and index again.
//!
//! `OfflineStore` opens every file for reading only, makes none, and holds the directory's lock as a reader: a running
//! broker (ours or Java's) keeps it out, and it keeps a broker from starting. Several readers may look at once.

mod check;
mod check_checkpoint;
mod check_compaction;
mod check_config;
mod check_index;
mod check_log;
mod check_queue;
mod dump;
mod files;
mod findings;
mod rebuild;
mod scan;
mod topics;
mod units;

use crate::StoreConfig;
use crate::checkpoint::{Progress, Times};
use crate::commit_log::CommitLog;
use crate::deleted::Deleted;
use crate::guard::DirLock;

pub use dump::{Damage, Dumped, Selection};
pub use findings::{Finding, Findings, Remedy, Totals};
pub use rebuild::{Rebuilt, rebuild};
pub use topics::KnownTopics;

/// A stopped store, opened for reading.
pub struct OfflineStore {
    config: StoreConfig,
    topics: KnownTopics,
    deleted: Deleted,
    log: CommitLog,
    /// What was already wrong with the commit log's files.
    found_at_open: Vec<Finding>,
    /// The last process did not end in order.
    abort: bool,
    times: Times,
    progress: Option<Progress>,
    _lock: Option<DirLock>,
}
