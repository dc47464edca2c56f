//! What an operator can set. The broker fills this from Java's `MessageStoreConfig` keys; the names here are those keys in
//! snake case with the unit at the end where the key hides it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::file::Faults;
use crate::progress::Screen;
use crate::read::QueueType;
use crate::walk::Checksums;

/// The least an extension file must hold: some units and the mark of its end.
const LEAST_EXT_FILE: u64 = 1000;

/// When a send is answered relative to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlushDiskType {
    /// The answer goes out when the bytes are in the page cache: they survive the process, not the machine.
    #[default]
    Async,
    /// The answer goes out after a shared `fdatasync`; readers see only flushed messages.
    Sync,
}

/// Settings of one store. `StoreConfig::new(root)` gives Java's defaults.
#[derive(Clone)]
pub struct StoreConfig {
    /// `storePathRootDir`.
    pub root: PathBuf,
    /// `storePathCommitLog`: writable folders; empty means `<root>/commitlog`.
    pub commit_log_paths: Vec<PathBuf>,
    /// `readOnlyCommitLogStorePaths`: folders that are read and cleaned but get no new file.
    pub read_only_commit_log_paths: Vec<PathBuf>,
    /// `mappedFileSizeCommitLog`, bytes.
    pub commit_log_file_size: u64,
    /// `mappedFileSizeConsumeQueue`, bytes; rounded up to whole units.
    pub consume_queue_file_size: u64,
    /// `mapperFileSizeBatchConsumeQueue`, bytes; rounded up to whole units.
    pub batch_consume_queue_file_size: u64,
    /// `enableConsumeQueueExt`.
    pub enable_consume_queue_ext: bool,
    /// `mappedFileSizeConsumeQueueExt`, bytes.
    pub consume_queue_ext_file_size: u64,
    /// `enableLmq`: messages that name light queues get offsets there.
    pub enable_lmq: bool,
    /// `enableMultiDispatch`: and places there.
    pub enable_multi_dispatch: bool,
    /// `maxLmqConsumeQueueNum`: a message that needs one more light queue is refused.
    pub max_lmq_consume_queue_num: usize,

    pub flush_disk_type: FlushDiskType,
    /// `flushIntervalCommitLog`.
    pub flush_interval_commit_log: Duration,
    /// `flushCommitLogLeastPages` of 4096 bytes.
    pub flush_commit_log_least_pages: u64,
    /// `flushCommitLogThoroughInterval`.
    pub flush_commit_log_thorough_interval: Duration,
    /// `flushIntervalConsumeQueue`.
    pub flush_interval_consume_queue: Duration,
    /// `flushConsumeQueueLeastPages` of 4096 bytes.
    pub flush_consume_queue_least_pages: u64,
    /// `flushConsumeQueueThoroughInterval`.
    pub flush_consume_queue_thorough_interval: Duration,
    /// `syncFlushTimeout`: after it `when_flushed` reports [`crate::FlushError::Timeout`]; the message is stored nevertheless.
    pub sync_flush_timeout: Duration,

    /// `maxMessageSize`, bytes of body.
    pub max_message_size: usize,
    /// `checkCRCOnRecover`.
    pub check_crc_on_recover: bool,
    /// `enabledAppendPropCRC`.
    pub append_prop_crc: bool,
    /// `forceVerifyPropCRC`: recovery compares the checksum over the whole record where a record has one.
    pub force_verify_prop_crc: bool,
    /// `autoMessageVersionOnTopicLen`.
    pub auto_message_version_on_topic_len: bool,
    /// `duplicationEnable`: store timestamps given by the caller are kept.
    pub duplication_enable: bool,
    /// `readUnCommitted`: readers see written, not yet confirmed messages.
    pub read_uncommitted: bool,

    /// `messageIndexEnable`.
    pub message_index_enable: bool,
    /// `maxHashSlotNum`.
    pub max_hash_slot_num: u32,
    /// `maxIndexNum`.
    pub max_index_num: u32,
    /// `maxMsgsNumBatch`: most messages of one key query.
    pub max_msgs_num_batch: usize,

    /// `maxFilterMessageSize`, bytes of queue units looked at by one `get`.
    pub max_filter_message_size: usize,
    /// `maxTransferBytesOnMessageInMemory`.
    pub max_transfer_bytes_in_memory: usize,
    /// `maxTransferCountOnMessageInMemory`.
    pub max_transfer_count_in_memory: usize,
    /// `maxTransferBytesOnMessageInDisk`.
    pub max_transfer_bytes_on_disk: usize,
    /// `maxTransferCountOnMessageInDisk`.
    pub max_transfer_count_on_disk: usize,
    /// `accessMessageInMemoryMaxRatio`, percent of the machine's memory.
    pub access_in_memory_max_ratio: u64,
    /// `brokerRole` is SLAVE: appends are refused unless `duplication_enable`, and `get` leaves wrong offsets as they are unless `offset_check_in_slave`.
    pub slave: bool,
    /// `offsetCheckInSlave`.
    pub offset_check_in_slave: bool,

    /// `fileReservedTime` as a duration.
    pub file_reserved_time: Duration,
    /// `deleteWhen`: hours of the local day.
    pub delete_when: Vec<u8>,
    /// `cleanResourceInterval`.
    pub clean_resource_interval: Duration,
    /// `deleteCommitLogFilesInterval`.
    pub delete_commit_log_files_interval: Duration,
    /// `deleteFileBatchMax`.
    pub delete_file_batch_max: usize,
    /// `cleanFileForciblyEnable`.
    pub clean_file_forcibly: bool,
    /// `diskMaxUsedSpaceRatio`, percent.
    pub disk_max_used_space_ratio: u32,
    /// `diskSpaceCleanForciblyRatio`, percent.
    pub disk_space_clean_forcibly_ratio: u32,
    /// `diskSpaceWarningLevelRatio`, percent.
    pub disk_space_warning_level_ratio: u32,

    /// `messageDelayLevel`: milliseconds of level 1, 2, …
    pub delay_levels_ms: Vec<i64>,

    /// `enableCompaction`.
    pub enable_compaction: bool,
    /// `compactionMappedFileSize`, bytes; rounded as Java does.
    pub compaction_file_size: u64,
    /// `compactionCqMappedFileSize`, bytes; rounded down to whole units.
    pub compaction_queue_file_size: u64,
    /// `compactionScheduleInternal`.
    pub compaction_interval: Duration,
    /// `compactionThreadNum`: rounds at the same time; no more than there are cores.
    pub compaction_threads: usize,
    /// `maxOffsetMapSize`: bytes of the tables of keys of all rounds at the same time.
    pub max_offset_map_size: usize,

    /// Appended bytes that may wait for `write_out` before appends are refused as busy.
    pub max_unwritten_bytes: usize,
    /// Under SYNC_FLUSH: written bytes that may wait for the disk, not readable yet, before appends are refused as busy.
    pub max_unflushed_bytes: u64,
    /// Queue files kept open at once.
    pub max_open_queue_files: usize,
    /// Told how far opening has got when it takes longer than two seconds; the log has the same lines.
    pub screen: Option<Screen>,
    /// Test hook under every write and sync; `None` in production.
    pub faults: Option<Arc<dyn Faults>>,
}

impl StoreConfig {
    /// Java's defaults for a store in `root`.
    pub fn new(root: impl AsRef<Path>) -> Self {
        const MINUTE: i64 = 60_000;
        StoreConfig {
            root: root.as_ref().to_path_buf(),
            commit_log_paths: Vec::new(),
            read_only_commit_log_paths: Vec::new(),
            commit_log_file_size: 1 << 30,
            consume_queue_file_size: 6_000_000,
            batch_consume_queue_file_size: 13_800_000,
            enable_consume_queue_ext: false,
            consume_queue_ext_file_size: 48 << 20,
            enable_lmq: false,
            enable_multi_dispatch: false,
            max_lmq_consume_queue_num: 20_000,
            flush_disk_type: FlushDiskType::Async,
            flush_interval_commit_log: Duration::from_millis(500),
            flush_commit_log_least_pages: 4,
            flush_commit_log_thorough_interval: Duration::from_secs(10),
            flush_interval_consume_queue: Duration::from_secs(1),
            flush_consume_queue_least_pages: 2,
            flush_consume_queue_thorough_interval: Duration::from_secs(60),
            sync_flush_timeout: Duration::from_secs(5),
            max_message_size: 4 << 20,
            check_crc_on_recover: true,
            append_prop_crc: false,
            force_verify_prop_crc: false,
            auto_message_version_on_topic_len: true,
            duplication_enable: false,
            read_uncommitted: false,
            message_index_enable: true,
            max_hash_slot_num: 5_000_000,
            max_index_num: 20_000_000,
            max_msgs_num_batch: 64,
            max_filter_message_size: 16_000,
            max_transfer_bytes_in_memory: 256 << 10,
            max_transfer_count_in_memory: 32,
            max_transfer_bytes_on_disk: 64 << 10,
            max_transfer_count_on_disk: 8,
            access_in_memory_max_ratio: 40,
            slave: false,
            offset_check_in_slave: false,
            file_reserved_time: Duration::from_secs(72 * 3600),
            delete_when: vec![4],
            clean_resource_interval: Duration::from_secs(10),
            delete_commit_log_files_interval: Duration::from_millis(100),
            delete_file_batch_max: 10,
            clean_file_forcibly: true,
            disk_max_used_space_ratio: 75,
            disk_space_clean_forcibly_ratio: 85,
            disk_space_warning_level_ratio: 90,
            delay_levels_ms: vec![
                1000,
                5000,
                10_000,
                30_000,
                MINUTE,
                2 * MINUTE,
                3 * MINUTE,
                4 * MINUTE,
                5 * MINUTE,
                6 * MINUTE,
                7 * MINUTE,
                8 * MINUTE,
                9 * MINUTE,
                10 * MINUTE,
                20 * MINUTE,
                30 * MINUTE,
                60 * MINUTE,
                120 * MINUTE,
            ],
            enable_compaction: true,
            compaction_file_size: 104_857_600,
            compaction_queue_file_size: 10_485_760,
            compaction_interval: Duration::from_secs(15 * 60),
            compaction_threads: 6,
            max_offset_map_size: 104_857_600,
            max_unwritten_bytes: 64 << 20,
            max_unflushed_bytes: 1 << 30,
            max_open_queue_files: 1024,
            screen: None,
            faults: None,
        }
    }

    /// What recovery compares.
    pub(crate) fn checksums(&self) -> Checksums {
        match (self.check_crc_on_recover, self.force_verify_prop_crc) {
            (false, _) => Checksums::None,
            (true, false) => Checksums::Body,
            (true, true) => Checksums::Record,
        }
    }

    /// Folder of the queues of one kind, and the bytes of their files: whole units.
    pub(crate) fn queue_folder(&self, kind: QueueType) -> (PathBuf, u64) {
        let (name, size) = match kind {
            QueueType::Simple => ("consumequeue", self.consume_queue_file_size),
            QueueType::Batch => ("batchconsumequeue", self.batch_consume_queue_file_size),
        };
        (self.root.join(name), size.max(1).next_multiple_of(kind.unit_len() as u64))
    }

    /// Bytes of a file of a plain queue's extension, and its folder.
    pub(crate) fn ext_folder(&self) -> (PathBuf, u64) {
        (self.root.join("consumequeue_ext"), self.consume_queue_ext_file_size.max(LEAST_EXT_FILE))
    }

    pub(crate) fn commit_log_dirs(&self) -> Vec<PathBuf> {
        if self.commit_log_paths.is_empty() { vec![self.root.join("commitlog")] } else { self.commit_log_paths.clone() }
    }
}
