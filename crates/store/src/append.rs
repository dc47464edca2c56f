//! What goes into the store and what comes back.

use std::net::SocketAddr;

pub use protocol::record::BatchItem;

/// One message to append. Bytes are stored as given; bits 4 and 5 of `sys_flag` (address families) are set by the store.
#[derive(Debug, Clone, Copy)]
pub struct Append<'a> {
    pub topic: &'a str,
    pub queue_id: i32,
    /// The user's flag, untouched.
    pub flag: i32,
    /// Compression, transaction and inner-batch bits.
    pub sys_flag: i32,
    /// Milliseconds since 1970, as the producer sent it.
    pub born_timestamp: i64,
    pub born_host: SocketAddr,
    pub store_host: SocketAddr,
    pub reconsume_times: i32,
    /// Physical offset of the half message on commit and rollback, else 0.
    pub prepared_transaction_offset: i64,
    pub body: &'a [u8],
    /// The property string, `key 01 value 02 …`, exactly as it is to be stored.
    pub properties: &'a [u8],
    /// More pairs that follow `properties` on the disk (what the broker adds); a missing separator between the two is put in.
    pub more_properties: &'a [u8],
}

/// Several messages of one queue that become neighbouring records with consecutive queue offsets.
#[derive(Debug, Clone, Copy)]
pub struct AppendBatch<'a> {
    pub topic: &'a str,
    pub queue_id: i32,
    pub sys_flag: i32,
    pub born_timestamp: i64,
    pub born_host: SocketAddr,
    pub store_host: SocketAddr,
    pub reconsume_times: i32,
    /// In order; must not be empty.
    pub items: &'a [BatchItem<'a>],
}

/// Where an appended message lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Commit log offset of the record.
    pub physical_offset: u64,
    /// Bytes of the record.
    pub len: u32,
    /// Offset in the queue; 0 for prepared and rollback records, which are in no queue.
    pub queue_offset: i64,
    /// Ticket for [`crate::Store::write_out`] and [`crate::Store::when_flushed`]. Not a commit log offset.
    pub end: u64,
    /// Milliseconds since 1970, taken under the put lock.
    pub store_timestamp: i64,
}

/// Where the messages of a batch lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendedBatch {
    /// Commit log offset of each record, in the order of the items.
    pub physical_offsets: Vec<u64>,
    /// Bytes of all records.
    pub len: u32,
    /// Queue offset of the first message.
    pub queue_offset: i64,
    /// Ticket for [`crate::Store::write_out`] and [`crate::Store::when_flushed`].
    pub end: u64,
    pub store_timestamp: i64,
}

/// Java's put statuses, for the answer code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutStatus {
    MessageIllegal,
    PropertiesSizeExceeded,
    ServiceNotAvailable,
    OsPageCacheBusy,
    CreateMappedFileFailed,
    LmqConsumeQueueNumExceeded,
    UnknownError,
}

/// Why nothing was appended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    #[error("the store is shutting down")]
    ShuttingDown,
    #[error("the message is illegal: {0}")]
    MessageIllegal(&'static str),
    #[error("the properties are {len} bytes long, the limit is {limit}")]
    PropertiesSizeExceeded { len: usize, limit: usize },
    #[error("the store is a slave's")]
    Slave,
    #[error("the disk is full")]
    DiskFull,
    /// A write or a sync failed earlier; only a restart helps.
    #[error("the store takes no writes: {0}")]
    Stopped(String),
    /// Its queues are being removed.
    #[error("the topic is being deleted")]
    TopicDeleted,
    #[error("there are maxLmqConsumeQueueNum light message queues already")]
    TooManyLightQueues,
    #[error("too many bytes wait to be written or flushed")]
    Busy,
    #[error("cannot create the next commit log file: {0}")]
    CreateFile(String),
}

impl PutError {
    /// The put status Java reports for the same cause.
    pub fn put_status(&self) -> PutStatus {
        match self {
            PutError::ShuttingDown
            | PutError::Slave
            | PutError::DiskFull
            | PutError::Stopped(_)
            | PutError::TopicDeleted => PutStatus::ServiceNotAvailable,
            PutError::MessageIllegal(_) => PutStatus::MessageIllegal,
            PutError::PropertiesSizeExceeded { .. } => PutStatus::PropertiesSizeExceeded,
            PutError::TooManyLightQueues => PutStatus::LmqConsumeQueueNumExceeded,
            PutError::Busy => PutStatus::OsPageCacheBusy,
            PutError::CreateFile(_) => PutStatus::CreateMappedFileFailed,
        }
    }
}

/// Why appended messages did not reach the kernel. They are refused: their offsets will be given to others.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    #[error("the disk is full")]
    DiskFull,
    #[error("cannot create the next commit log file: {0}")]
    CreateFile(String),
    #[error("the store takes no writes: {0}")]
    Stopped(String),
}

impl WriteError {
    /// The put status Java reports for the same cause.
    pub fn put_status(&self) -> PutStatus {
        match self {
            WriteError::DiskFull | WriteError::Stopped(_) => PutStatus::ServiceNotAvailable,
            WriteError::CreateFile(_) => PutStatus::CreateMappedFileFailed,
        }
    }
}

/// Why a message is not known to be on the disk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlushError {
    /// The message was refused by the write before the sync.
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("flushing failed: {0}")]
    Failed(String),
    /// `syncFlushTimeout` is over. The message is stored; Java answers FLUSH_DISK_TIMEOUT.
    #[error("the flush takes longer than syncFlushTimeout")]
    Timeout,
    #[error("the store was closed before the flush")]
    Closed,
}
