//! Commit log, consume queues and key index in the files of RocketMQ's Java broker.
//!
//! Threads and system calls, no runtime. `append` puts records of all callers into one buffer under one lock; `write_out` lets
//! one caller write it for all; readers get slices of the mapped files.

mod append;
mod config;
mod file;
mod read;
mod stats;
mod store;

pub use append::{
    Append, AppendBatch, Appended, AppendedBatch, BatchItem, FlushError, PutError, PutStatus, WriteError,
};
pub use config::{FlushDiskType, StoreConfig};
pub use file::Faults;
pub use read::{
    Arrival, ArrivalListener, Boundary, GetRequest, GetResult, GetStatus, QueueType, RecordFilter, TopicKinds, Unit,
};
pub use stats::StoreStats;
pub use store::{KeyQueryResult, OpenError, Store};
