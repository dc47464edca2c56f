//! Numbers for runtime information and metrics.

/// A snapshot of the store's state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoreStats {
    /// First and last physical offset of the commit log (the last one is exclusive).
    pub commit_log_min_offset: u64,
    pub commit_log_max_offset: u64,
    /// Everything below is on the disk.
    pub flushed_offset: u64,
    /// Everything below may be read.
    pub confirm_offset: u64,
    /// Bytes written but not yet in the consume queues.
    pub dispatch_behind_bytes: u64,
    /// Bytes written but not yet in the key index.
    pub index_behind_bytes: u64,
    /// Bytes appended but not yet flushed.
    pub flush_behind_bytes: u64,
    /// Messages appended since the start.
    pub messages_appended: u64,
    /// Bytes appended since the start, blanks included.
    pub bytes_appended: u64,
    /// Write calls of groups since the start.
    pub groups_written: u64,
    /// The longest single group write since the start, microseconds.
    pub put_max_us: u64,
    /// Sum over all messages of what the write of their group took, microseconds.
    pub put_waited_us: u64,
    /// How many messages were in group writes that took so long: `≤0ms 0-10 10-50 50-100 100-200 200-500 500ms-1s 1-2s 2-3s 3-4s 4-5s 5-10s >10s`.
    pub put_distribution: [u64; 13],
    /// Used share of the partition of the commit log, the least full one when there are several; 0.0–1.0, −1 when unknown.
    pub commit_log_disk_ratio: f64,
    /// Used share of the partition of the consume queues.
    pub consume_queue_disk_ratio: f64,
    /// Used bytes of the root folder's partition; 0 when unknown.
    pub disk_used_bytes: u64,
    /// Start of the running process' store, milliseconds since 1970.
    pub start_timestamp: i64,
    /// Store time of the last flushed message, milliseconds since 1970.
    pub last_flushed_timestamp: i64,
    /// Store time of the oldest message, milliseconds since 1970; −1 when there is none.
    pub earliest_message_timestamp: i64,
    pub writable: bool,
    pub disk_full: bool,
}
