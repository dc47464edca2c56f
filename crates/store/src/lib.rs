//! Commit log, consume queues and key index in the files of RocketMQ's Java broker.
//!
//! Threads and system calls, no runtime. `append` puts records of all callers into one buffer under one lock; `write_out` lets
//! one caller write it for all; readers get slices of the mapped files.

mod append;
mod aside;
mod batch_unit;
mod checkpoint;
mod chores;
mod clock;
mod commit_log;
mod compaction;
mod config;
mod consume_queue;
mod counters;
mod deleted;
mod ext;
mod facts;
mod file;
mod flush;
mod folders;
mod gate;
mod get;
mod group;
mod guard;
mod index;
mod index_file;
mod inner_batch;
mod keys;
mod mend;
mod mmap;
mod multi_dispatch;
pub mod offline;
mod positions;
mod progress;
mod put;
mod queues;
mod read;
mod recovery;
mod residency;
mod retention;
mod search;
mod signal;
mod stats;
mod store;
mod topics;
mod walk;
mod write;
mod writeback;

/// The topic whose queues are ordered by deliver time.
pub(crate) const SCHEDULE_TOPIC: &str = "SCHEDULE_TOPIC_XXXX";

pub use append::{
    Append, AppendBatch, Appended, AppendedBatch, BatchItem, FlushError, PutError, PutStatus, WriteError,
};
pub use compaction::CompactionRound;
pub use config::{FlushDiskType, StoreConfig};
pub use file::Faults;
pub use progress::Screen;
pub use read::{
    Arrival, ArrivalListener, Boundary, GetRequest, GetResult, GetStatus, QueueType, RecordFilter, TopicKinds, Unit,
};
pub use search::KeyQueryResult;
pub use stats::StoreStats;
pub use store::{OpenError, Store};
