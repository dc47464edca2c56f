//! Keys of the message store.

use crate::home;

crate::config_enum! {
    /// The part a broker plays in its group.
    pub enum BrokerRole {
        /// Answers a send without waiting for slaves.
        "ASYNC_MASTER" AsyncMaster,
        /// Answers a send when enough slaves have it.
        "SYNC_MASTER" SyncMaster,
        "SLAVE" Slave,
    }
}

crate::config_enum! {
    /// What a send waits for.
    pub enum FlushDiskType {
        /// The disk.
        "SYNC_FLUSH" SyncFlush,
        /// The kernel.
        "ASYNC_FLUSH" AsyncFlush,
    }
}

crate::config! {
    /// Keys of the message store.
    pub struct MessageStoreConfig {
        /// Folder of all files of the store.
        "storePathRootDir" store_path_root_dir: String = home::user_home("store") => "~/store", fixed, important;
        /// Folder of the commit log, or several joined by commas; `commitlog` below the root when unset.
        "storePathCommitLog" store_path_commit_log: Option<String> = None => "", fixed, important;
        /// Folders with commit log files that are read but no longer written, joined by commas.
        "readOnlyCommitLogStorePaths" read_only_commit_log_store_paths: Option<String> = None => "", fixed;
        /// Master, master that waits for its slaves, or slave.
        "brokerRole" broker_role: BrokerRole = BrokerRole::AsyncMaster => "ASYNC_MASTER", fixed, important;
        /// Answer a send when the kernel has it, or when the disk has it.
        "flushDiskType" flush_disk_type: FlushDiskType = FlushDiskType::AsyncFlush => "ASYNC_FLUSH", live, important;
        /// Milliseconds a send waits for the disk before it is answered FLUSH_DISK_TIMEOUT.
        "syncFlushTimeout" sync_flush_timeout: u32 = 5000, live;
        /// `default` keeps consume queues in files. No other type is built.
        "storeType" store_type: String = "default".into() => "default", fixed, important;
        /// Bytes of a commit log file.
        "mappedFileSizeCommitLog" mapped_file_size_commit_log: u64 = 1_073_741_824, fixed;
        /// Bytes of a consume queue file; rounded up to whole entries of 20 bytes.
        "mappedFileSizeConsumeQueue" mapped_file_size_consume_queue: u64 = 6_000_000, fixed;
        /// Write the extended consume queue.
        "enableConsumeQueueExt" enable_consume_queue_ext: bool = false, fixed;
        /// Bytes of a file of the extended consume queue.
        "mappedFileSizeConsumeQueueExt" mapped_file_size_consume_queue_ext: u64 = 50_331_648, fixed;
        /// Bytes of a file of a batch consume queue; rounded up to whole entries of 46 bytes.
        "mapperFileSizeBatchConsumeQueue" mapper_file_size_batch_consume_queue: u64 = 13_800_000, fixed;
        /// Bits of a filter bit map.
        "bitMapLengthConsumeQueueExt" bit_map_length_consume_queue_ext: u32 = 64, fixed;
        /// Light message queues: messages that name some in INNER_MULTI_DISPATCH get offsets there.
        "enableLmq" enable_lmq: bool = false, fixed;
        /// Such messages can be read from those queues.
        "enableMultiDispatch" enable_multi_dispatch: bool = false, fixed;
        /// Count what groups get of light message queues by the names of those, and not all under `%LMQ%`.
        "enableLmqStats" enable_lmq_stats: bool = false, fixed;
        /// Light message queues there may be; a message that needs one more is refused.
        "maxLmqConsumeQueueNum" max_lmq_consume_queue_num: u32 = 20000, fixed;
        /// Milliseconds between flushes of the commit log with ASYNC_FLUSH.
        "flushIntervalCommitLog" flush_interval_commit_log: u32 = 500, live, important;
        /// Sleep between flushes instead of waiting to be woken. The flusher here is timed.
        "flushCommitLogTimed" flush_commit_log_timed: bool = true, ignored;
        /// Pages of 4 KiB below which a flush is skipped.
        "flushCommitLogLeastPages" flush_commit_log_least_pages: u32 = 4, live;
        /// Milliseconds after which it is not skipped.
        "flushCommitLogThoroughInterval" flush_commit_log_thorough_interval: u32 = 10000, live;
        /// Milliseconds between flushes of the consume queues.
        "flushIntervalConsumeQueue" flush_interval_consume_queue: u32 = 1000, live;
        /// Pages of 4 KiB below which the flush of a queue is skipped.
        "flushConsumeQueueLeastPages" flush_consume_queue_least_pages: u32 = 2, live;
        /// Milliseconds after which it is not skipped.
        "flushConsumeQueueThoroughInterval" flush_consume_queue_thorough_interval: u32 = 60000, live;
        /// Milliseconds between commits of the transient store pool, which is not needed here.
        "commitIntervalCommitLog" commit_interval_commit_log: u32 = 200, ignored;
        /// Belongs to the transient store pool, which is not needed here.
        "commitCommitLogLeastPages" commit_commit_log_least_pages: u32 = 4, ignored;
        /// Belongs to the transient store pool, which is not needed here.
        "commitCommitLogThoroughInterval" commit_commit_log_thorough_interval: u32 = 200, ignored;
        /// Writes always gather in memory outside the page cache before one write call, which is what this asks for.
        "transientStorePoolEnable" transient_store_pool_enable: bool = false, ignored, important;
        /// Belongs to the transient store pool, which is not needed here.
        "transientStorePoolSize" transient_store_pool_size: u32 = 5, ignored;
        /// Belongs to the transient store pool, which is not needed here.
        "fastFailIfNoBufferInStorePool" fast_fail_if_no_buffer_in_store_pool: bool = false, ignored;
        /// Writes never go through a mapping here.
        "writeWithoutMmap" write_without_mmap: bool = false, ignored, important;
        /// Touch the pages of new files. Writes do not go through a mapping here.
        "warmMapedFileEnable" warm_maped_file_enable: bool = false, ignored;
        /// Belongs to `warmMapedFileEnable`.
        "flushLeastPagesWhenWarmMapedFile" flush_least_pages_when_warm_maped_file: u32 = 4096, ignored;
        /// The kind of the put lock.
        "useReentrantLockWhenPutMessage" use_reentrant_lock_when_put_message: bool = true, ignored;
        /// Number of put locks of queues.
        "topicQueueLockNum" topic_queue_lock_num: u32 = 32, ignored;
        /// Belongs to the transient store pool, which is not needed here.
        "wakeCommitWhenPutMessage" wake_commit_when_put_message: bool = true, ignored, important;
        /// Wake the flusher on each put.
        "wakeFlushWhenPutMessage" wake_flush_when_put_message: bool = false, ignored, important;
        /// Consume queues are never written through a mapping here.
        "putConsumeQueueDataByFileChannel" put_consume_queue_data_by_file_channel: bool = true, ignored;
        /// Consume queues are always written by the thread that wrote the message.
        "dispatchFromSenderThread" dispatch_from_sender_thread: bool = false, ignored, important;
        /// Nothing reads it in Java either.
        "putMsgIndexHightWater" put_msg_index_hight_water: u32 = 600000, ignored;
        /// Nothing reads it in Java either.
        "putMessageTimeout" put_message_timeout: u32 = 8000, ignored;
        /// Largest body of a message in bytes.
        "maxMessageSize" max_message_size: u32 = 4194304, live;
        /// Bytes of one read when messages are filtered.
        "maxFilterMessageSize" max_filter_message_size: u32 = 16000, live;
        /// Store topics longer than 127 bytes in the second message format.
        "autoMessageVersionOnTopicLen" auto_message_version_on_topic_len: bool = true, live;
        /// Milliseconds one write may take before sends are answered SYSTEM_BUSY.
        "osPageCacheBusyTimeOutMills" os_page_cache_busy_time_out_mills: u64 = 1000, live;
        /// Most messages of one key query.
        "maxMsgsNumBatch" max_msgs_num_batch: u32 = 64, live;
        /// Most messages of one query by an admin tool.
        "defaultQueryMaxNum" default_query_max_num: u32 = 32, live;
        /// Check the CRC of bodies during recovery.
        "checkCRCOnRecover" check_crc_on_recover: bool = true, fixed;
        /// End records with a CRC of everything.
        "enabledAppendPropCRC" enabled_append_prop_crc: bool = false, fixed;
        /// Compare it during recovery; a record without one counts by its body's CRC.
        "forceVerifyPropCRC" force_verify_prop_crc: bool = false, fixed;
        /// Commit log files looked at by a recovery after a crash.
        "commitLogRecoverMaxNum" commit_log_recover_max_num: u32 = 10, fixed;
        /// Nothing reads it in Java either.
        "maxRecoveryCommitlogFiles" max_recovery_commitlog_files: u32 = 30, ignored;
        /// A log line for each entry that recovery finds twice.
        "enableLogConsumeQueueRepeatedlyBuildWhenRecover" enable_log_consume_queue_repeatedly_build_when_recover: bool = false, ignored;
        /// Keep copies by other means than replication.
        "duplicationEnable" duplication_enable: bool = false, ignored;
        /// Most bytes of one pull from memory.
        "maxTransferBytesOnMessageInMemory" max_transfer_bytes_on_message_in_memory: u32 = 262144, live, important;
        /// Most messages of one pull from memory.
        "maxTransferCountOnMessageInMemory" max_transfer_count_on_message_in_memory: u32 = 32, live, important;
        /// Most bytes of one pull from the disk.
        "maxTransferBytesOnMessageInDisk" max_transfer_bytes_on_message_in_disk: u32 = 65536, live, important;
        /// Most messages of one pull from the disk.
        "maxTransferCountOnMessageInDisk" max_transfer_count_on_message_in_disk: u32 = 8, live, important;
        /// Percent of the memory of the machine that recent messages are taken to be in.
        "accessMessageInMemoryMaxRatio" access_message_in_memory_max_ratio: u32 = 40, live, important;
        /// The same for the finer rule of cold data control.
        "accessMessageInMemoryHotRatio" access_message_in_memory_hot_ratio: u32 = 26, live;
        /// Consume queue files one pull may step over.
        "travelCqFileNumWhenGetMessage" travel_cq_file_num_when_get_message: u32 = 1, live;
        /// Entries looked at when messages in a queue are estimated by filter.
        "maxConsumeQueueScan" max_consume_queue_scan: u32 = 20000, live;
        /// Messages from which on that estimate takes samples.
        "sampleCountThreshold" sample_count_threshold: u32 = 5000, live;
        /// Number of these samples.
        "sampleSteps" sample_steps: u32 = 32, live;
        /// Record how far each consumer group is behind on the disk.
        "diskFallRecorded" disk_fall_recorded: bool = true, live;
        /// A slave corrects offsets that are out of range.
        "offsetCheckInSlave" offset_check_in_slave: bool = false, live;
        /// Read-ahead is left to the kernel.
        "dataReadAheadEnable" data_read_ahead_enable: bool = true, ignored;
        /// Write the key index.
        "messageIndexEnable" message_index_enable: bool = true, fixed, important;
        /// Rebuild the index from its last flush instead of its last write after a crash.
        "messageIndexSafe" message_index_safe: bool = false, fixed, important;
        /// Hash slots of an index file.
        "maxHashSlotNum" max_hash_slot_num: u32 = 5000000, fixed;
        /// Entries of an index file.
        "maxIndexNum" max_index_num: u32 = 20000000, fixed;
        /// Hours of the day at which expired files are deleted, joined by semicolons.
        "deleteWhen" delete_when: String = "04".into() => "04", live, important;
        /// Hours after its last write at which a file expires.
        "fileReservedTime" file_reserved_time: u32 = 72, live, important;
        /// Most files deleted in one round.
        "deleteFileBatchMax" delete_file_batch_max: u32 = 10, live, important;
        /// Milliseconds between two deletions of commit log files.
        "deleteCommitLogFilesInterval" delete_commit_log_files_interval: u32 = 100, live;
        /// Milliseconds between two deletions of consume queue files.
        "deleteConsumeQueueFilesInterval" delete_consume_queue_files_interval: u32 = 100, live;
        /// Milliseconds between rounds of the retention.
        "cleanResourceInterval" clean_resource_interval: u32 = 10000, fixed;
        /// Milliseconds a deleted file may stay open. A reader keeps it alive here without blocking the deletion.
        "destroyMapedFileIntervalForcibly" destroy_maped_file_interval_forcibly: u32 = 120000, ignored;
        /// Milliseconds between attempts to delete files in use.
        "redeleteHangedFileInterval" redelete_hanged_file_interval: u32 = 120000, ignored;
        /// Percent of the disk above which expired files are deleted at any hour; at least 10, at most 95.
        "diskMaxUsedSpaceRatio" disk_max_used_space_ratio: u32 = 75, live;
        /// Percent of the disk above which files are deleted before they expire; at least 30, at most 85.
        "diskSpaceCleanForciblyRatio" disk_space_clean_forcibly_ratio: u32 = 85, live;
        /// Percent of the disk above which sends are refused; at least 35, at most 90.
        "diskSpaceWarningLevelRatio" disk_space_warning_level_ratio: u32 = 90, live;
        /// Delete files before they expire when the disk is full.
        "cleanFileForciblyEnable" clean_file_forcibly_enable: bool = true, live, important;
        /// Stores that share the partition.
        "replicasPerDiskPartition" replicas_per_disk_partition: u32 = 1, fixed;
        /// Share of this store's part of the partition above which files are deleted before they expire.
        "logicalDiskSpaceCleanForciblyThreshold" logical_disk_space_clean_forcibly_threshold: f64 = 0.8, live;
        /// Milliseconds between queues when smallest offsets are corrected.
        "correctLogicMinOffsetSleepInterval" correct_logic_min_offset_sleep_interval: u32 = 1, ignored;
        /// Milliseconds after which smallest offsets are corrected anyway.
        "correctLogicMinOffsetForceInterval" correct_logic_min_offset_force_interval: u32 = 300000, live;
        /// Nothing reads it in Java either.
        "enableCleanExpiredOffset" enable_clean_expired_offset: bool = false, ignored, important;
        /// Delays of the levels, from level 1.
        "messageDelayLevel" message_delay_level: String = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h".into() => "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h", fixed;
        /// Milliseconds between writes of delayOffset.json.
        "flushDelayOffsetInterval" flush_delay_offset_interval: u64 = 10000, fixed;
        /// Statistics of delayed messages.
        "enableScheduleMessageStats" enable_schedule_message_stats: bool = true, live;
        /// Deliver delayed messages without waiting for each. This server does not wait.
        "enableScheduleAsyncDeliver" enable_schedule_async_deliver: bool = false, ignored;
        /// Most seconds an exact delay may take; longer ones are refused.
        "timerMaxDelaySec" timer_max_delay_sec: u32 = 259200, live;
        /// Take messages with an exact delay.
        "timerWheelEnable" timer_wheel_enable: bool = true, fixed;
        /// Milliseconds of a slot of the timer wheel: 100, 200, 500 or 1000.
        "timerPrecisionMs" timer_precision_ms: u32 = 1000, fixed;
        /// Port for slaves; the port above `listenPort` when 0.
        "haListenPort" ha_listen_port: u16 = 0 => "listenPort + 1", fixed;
        /// Milliseconds without data after which a heartbeat goes to the slaves.
        "haSendHeartbeatInterval" ha_send_heartbeat_interval: u32 = 5000, fixed;
        /// Milliseconds without a byte after which a replication connection is closed.
        "haHousekeepingInterval" ha_housekeeping_interval: u32 = 20000, fixed;
        /// Most bytes sent to a slave at once.
        "haTransferBatchSize" ha_transfer_batch_size: u32 = 32768, fixed;
        /// Replication address of the master; normally learnt from the name server.
        "haMasterAddress" ha_master_address: Option<String> = None => "", fixed, important;
        /// Bytes a slave may be behind to count as in sync.
        "haMaxGapNotInSync" ha_max_gap_not_in_sync: u32 = 268435456, live;
        /// Milliseconds SYNC_MASTER waits for its slaves before it answers FLUSH_SLAVE_TIMEOUT.
        "slaveTimeout" slave_timeout: u32 = 3000, live;
        /// Replicas with the master.
        "totalReplicas" total_replicas: u32 = 1, fixed, important;
        /// Replicas that must have a message, the master counted, before SYNC_MASTER answers.
        "inSyncReplicas" in_sync_replicas: u32 = 1, live, important;
        /// Least number of them when `enableAutoInSyncReplicas` lowers it.
        "minInSyncReplicas" min_in_sync_replicas: u32 = 1, live, important;
        /// Lower `inSyncReplicas` to the replicas that are there.
        "enableAutoInSyncReplicas" enable_auto_in_sync_replicas: bool = false, live, important;
        /// Keep only the last message of each key in topics with cleanup.policy COMPACTION, and serve them from logs of their own.
        "enableCompaction" enable_compaction: bool = true, fixed;
        /// Bytes of a file of a compacted log; rounded to a multiple of its queue's files, of which it has five at least.
        "compactionMappedFileSize" compaction_mapped_file_size: u64 = 104_857_600, fixed;
        /// Bytes of a file of its queue; rounded down to whole entries of 46 bytes.
        "compactionCqMappedFileSize" compaction_cq_mapped_file_size: u64 = 10_485_760, fixed;
        /// Milliseconds between rounds of compaction.
        "compactionScheduleInternal" compaction_schedule_internal: u32 = 900000, fixed;
        /// Bytes of the tables of keys of all rounds that run at the same time. What does not fit is left to the next round.
        "maxOffsetMapSize" max_offset_map_size: u32 = 104857600, fixed;
        /// Queues that are compacted at the same time; no more than there are cores.
        "compactionThreadNum" compaction_thread_num: u32 = 6, fixed;
        /// Swap mappings of old files. Nothing reads it in Java either.
        "mappedFileSwapEnable" mapped_file_swap_enable: bool = true, ignored;
    }
}

impl MessageStoreConfig {
    /// Folders of the commit log, writable ones only; at least one.
    pub fn commit_log_paths(&self) -> Vec<String> {
        match &self.store_path_commit_log {
            Some(paths) => split(paths),
            None => vec![format!("{}/commitlog", self.store_path_root_dir)],
        }
    }

    /// Folders with commit log files that are only read.
    pub fn read_only_commit_log_paths(&self) -> Vec<String> {
        self.read_only_commit_log_store_paths.as_deref().map(split).unwrap_or_default()
    }

    /// Bytes of a consume queue file, whole entries.
    pub fn consume_queue_file_size(&self) -> u64 {
        self.mapped_file_size_consume_queue.next_multiple_of(20)
    }

    /// Percent of the disk above which expired files go at any hour, held within Java's bounds.
    pub fn disk_max_used_percent(&self) -> u32 {
        self.disk_max_used_space_ratio.clamp(10, 95)
    }

    /// Percent of the disk above which files go before they expire, held within Java's bounds.
    pub fn disk_clean_forcibly_percent(&self) -> u32 {
        self.disk_space_clean_forcibly_ratio.clamp(30, 85)
    }

    /// Percent of the disk above which sends are refused, held within Java's bounds.
    pub fn disk_warning_percent(&self) -> u32 {
        self.disk_space_warning_level_ratio.clamp(35, 90)
    }
}

fn split(paths: &str) -> Vec<String> {
    paths.split(',').map(str::trim).filter(|path| !path.is_empty()).map(str::to_string).collect()
}
