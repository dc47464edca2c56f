//! What is asked of the store and what it answers.

use bytes::Bytes;

/// Decides which messages of a queue a reader gets.
pub trait RecordFilter: Send + Sync {
    /// Looks at the tag code of the queue's unit alone.
    fn tags_code_matches(&self, tags_code: i64) -> bool;
    /// Looks at the whole stored record; asked only when the tag code matched.
    fn record_matches(&self, record: &[u8]) -> bool {
        let _ = record;
        true
    }
}

/// Which messages of one queue to read.
#[derive(Clone, Copy)]
pub struct GetRequest<'a> {
    pub topic: &'a str,
    pub queue: i32,
    /// First queue offset wanted.
    pub offset: i64,
    pub max_messages: usize,
    /// Most bytes of all messages together; the first one is given whatever its size.
    pub max_bytes: usize,
    pub filter: Option<&'a dyn RecordFilter>,
    /// The caller may wait for the disk. When false and the data is not in memory, the result is empty with `cold` set.
    pub may_block: bool,
}

/// Java's `GetMessageStatus`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GetStatus {
    Found,
    NoMatchedMessage,
    MessageWasRemoving,
    OffsetFoundNull,
    OffsetOverflowBadly,
    OffsetOverflowOne,
    OffsetTooSmall,
    NoMatchedLogicQueue,
    NoMessageInQueue,
}

/// What `get` found.
#[derive(Debug, Clone)]
pub struct GetResult {
    pub status: GetStatus,
    /// Where the reader goes on.
    pub next_offset: i64,
    pub min_offset: i64,
    pub max_offset: i64,
    /// Whole stored records, in queue order.
    pub messages: Vec<Bytes>,
    /// Messages in all records: an inner batch is one record.
    pub count: usize,
    /// Bytes of all messages.
    pub bytes: usize,
    /// The data is not in memory and the caller may not block: ask again with `may_block`. Nothing else is meaningful then,
    /// except `min_offset` and `max_offset`.
    pub cold: bool,
    /// The reader is so far behind that the data is probably no longer in memory.
    pub suggest_slave: bool,
}

/// Which neighbour a search by time prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Boundary {
    /// The first message at or after the time.
    #[default]
    Lower,
    /// The last message at or before the time.
    Upper,
}

/// One entry of a consume queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    pub queue_offset: i64,
    pub physical_offset: u64,
    pub size: u32,
    /// Tag hash; the deliver time in milliseconds in SCHEDULE_TOPIC_XXXX.
    pub tags_code: i64,
    /// Messages in the record: more than one only in batch queues, where they have the queue offsets from `queue_offset` on.
    pub count: i16,
}

/// A message that has just become readable.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    pub topic: &'a str,
    pub queue: i32,
    /// The queue's maximum after this message.
    pub next_offset: i64,
    pub tags_code: i64,
    pub store_timestamp: i64,
    pub physical_offset: u64,
    pub size: u32,
}

/// Hears of every message that becomes readable, in queue order, on the thread that made it so: must be quick, must not
/// block, must not call `append`, `write_out` or `close`.
pub trait ArrivalListener: Send + Sync {
    fn arrived(&self, arrival: &Arrival<'_>);
    /// All arrivals of one group have been announced.
    fn group_done(&self) {}
}

impl ArrivalListener for () {
    fn arrived(&self, _: &Arrival<'_>) {}
}

/// How a topic's queues are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueType {
    #[default]
    Simple,
    /// `queue.type=BatchCQ`.
    Batch,
}

/// What the store must know of topics, answered by the topic table.
pub trait TopicKinds: Send + Sync {
    fn queue_type(&self, topic: &str) -> QueueType {
        let _ = topic;
        QueueType::Simple
    }
    /// Whether there is such a topic now. Queues of topics that are gone may be left from a deletion that a crash cut short.
    fn knows(&self, topic: &str) -> bool {
        let _ = topic;
        true
    }
    /// `cleanup.policy=COMPACTION`.
    fn is_compaction(&self, topic: &str) -> bool {
        let _ = topic;
        false
    }
}

impl TopicKinds for () {}
