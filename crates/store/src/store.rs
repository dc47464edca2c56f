//! The store itself.

use std::sync::Arc;

use bytes::Bytes;

use crate::*;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process (ours or Java's) has this directory.
    #[error("Lock failed, MQ already started: {0} is held by another process")]
    Locked(String),
    #[error("{path}: {what}")]
    Bad { path: String, what: String },
    #[error("{path}: {source}")]
    Io { path: String, source: std::io::Error },
}

/// An open store. All methods may be called from any thread.
pub struct Store {}

impl Store {
    /// Locks the directory, recovers, starts the background threads.
    pub fn open(
        config: StoreConfig,
        topics: Arc<dyn TopicKinds>,
        listener: Box<dyn ArrivalListener>,
    ) -> Result<Arc<Store>, OpenError> {
        let _ = (config, topics, listener);
        unimplemented!()
    }

    /// Encodes a message into the group buffer and gives it its offsets. It is neither readable nor safe before `write_out`.
    pub fn append(&self, message: &Append<'_>) -> Result<Appended, PutError> {
        let _ = message;
        unimplemented!()
    }

    /// Like `append` for all items at once: neighbouring records, consecutive queue offsets, all or none.
    pub fn append_batch(&self, batch: &AppendBatch<'_>) -> Result<AppendedBatch, PutError> {
        let _ = batch;
        unimplemented!()
    }

    /// Returns when everything appended up to the ticket `end` has been handed to the kernel. One caller writes for all.
    pub fn write_out(&self, end: u64) -> Result<(), WriteError> {
        let _ = end;
        unimplemented!()
    }

    /// Calls `done` from the flush thread once everything up to the ticket `end` is on the disk, after one sync for all that wait.
    pub fn when_flushed(&self, end: u64, done: Box<dyn FnOnce(Result<(), FlushError>) + Send>) {
        let _ = (end, done);
        unimplemented!()
    }

    /// Reads messages of a queue.
    pub fn get(&self, request: &GetRequest<'_>) -> GetResult {
        let _ = request;
        unimplemented!()
    }

    /// Units of a queue from `offset` on, at most `max`, without the messages. Empty when there are none.
    pub fn units(&self, topic: &str, queue: i32, offset: i64, max: usize) -> Vec<Unit> {
        let _ = (topic, queue, offset, max);
        unimplemented!()
    }

    /// First readable offset; 0 for a queue that does not exist.
    pub fn min_offset(&self, topic: &str, queue: i32) -> i64 {
        let _ = (topic, queue);
        unimplemented!()
    }

    /// The offset the next readable message will get; 0 for a queue that does not exist.
    pub fn max_offset(&self, topic: &str, queue: i32) -> i64 {
        let _ = (topic, queue);
        unimplemented!()
    }

    /// Queue ids of a topic that have messages, ascending.
    pub fn queue_ids(&self, topic: &str) -> Vec<i32> {
        let _ = topic;
        unimplemented!()
    }

    /// Topics that have queues in the store.
    pub fn topics(&self) -> Vec<String> {
        unimplemented!()
    }

    /// Queue offset by store time (milliseconds since 1970).
    pub fn offset_by_time(&self, topic: &str, queue: i32, timestamp: i64, boundary: Boundary) -> i64 {
        let _ = (topic, queue, timestamp, boundary);
        unimplemented!()
    }

    /// The record that starts at a commit log offset. `None` when there is none.
    pub fn record_at(&self, physical_offset: u64) -> Option<Bytes> {
        let _ = physical_offset;
        unimplemented!()
    }

    /// Store time of the message at a queue offset, milliseconds since 1970; −1 when it does not exist.
    pub fn store_time_at(&self, topic: &str, queue: i32, offset: i64) -> i64 {
        let _ = (topic, queue, offset);
        unimplemented!()
    }

    /// Store time of the first message of a queue, milliseconds since 1970; −1 when it has none.
    pub fn earliest_time(&self, topic: &str, queue: i32) -> i64 {
        let _ = (topic, queue);
        unimplemented!()
    }

    /// Messages whose key hash matches, by physical offset. Keys with the same hash are not told apart, as in Java.
    pub fn query_key(&self, topic: &str, key: &str, max: usize, begin: i64, end: i64) -> KeyQueryResult {
        let _ = (topic, key, max, begin, end);
        unimplemented!()
    }

    /// Removes the queues of a topic. Its records stay in the commit log until retention takes them.
    pub fn delete_topic(&self, topic: &str) {
        let _ = topic;
        unimplemented!()
    }

    /// Removes the queues of all topics for which `keep` says false. Returns the removed topics.
    pub fn clean_unused_topics(&self, keep: &dyn Fn(&str) -> bool) -> Vec<String> {
        let _ = keep;
        unimplemented!()
    }

    /// Removes queues whose last message is no longer in the commit log, except those of topics `keep` says true for.
    pub fn clean_expired_queues(&self, keep: &dyn Fn(&str) -> bool) -> usize {
        let _ = keep;
        unimplemented!()
    }

    /// One step of retention: removes at most `deleteFileBatchMax` old commit log files and what hangs on them, if it is time
    /// (`now`: milliseconds since 1970). Runs by itself every `cleanResourceInterval`. Returns the number of removed files.
    pub fn delete_expired(&self, now: i64) -> usize {
        let _ = now;
        unimplemented!()
    }

    /// Removes expired files now, whatever the hour.
    pub fn delete_expired_now(&self) -> usize {
        unimplemented!()
    }

    pub fn stats(&self) -> StoreStats {
        unimplemented!()
    }

    pub fn min_physical_offset(&self) -> u64 {
        unimplemented!()
    }

    /// End of what was written.
    pub fn max_physical_offset(&self) -> u64 {
        unimplemented!()
    }

    /// Refuses new appends, writes and flushes everything, stops the threads, removes `abort`, frees the lock. A second call does nothing.
    pub fn close(&self) {
        unimplemented!()
    }
}

/// Answer of a key query.
#[derive(Debug, Clone, Default)]
pub struct KeyQueryResult {
    pub messages: Vec<Bytes>,
    /// Last update of the index: store time of its last entry, milliseconds since 1970.
    pub index_last_update_timestamp: i64,
    pub index_last_update_physical_offset: u64,
}
