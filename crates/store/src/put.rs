//! Appending: from a message to bytes in the group with their offsets.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use protocol::record::{
    LONGEST_PROPERTIES, NewRecord, RecordError, encode_record, patch_property_crc, record_length, sys_flag,
};

use crate::batch_unit::BatchUnit;
use crate::clock::now_ms;
use crate::consume_queue::ConsumeQueue;
use crate::facts::Facts;
use crate::group::{Appender, Entry};
use crate::index::KeyEntry;
use crate::multi_dispatch;
use crate::{Append, AppendBatch, Appended, AppendedBatch, BatchItem, PutError, Store};

/// Room for properties and head that Java allows beside the body.
const RECORD_OVERHEAD: usize = 64 << 10;

impl Store {
    /// Encodes a message into the group buffer and gives it its offsets. It is neither readable nor safe before `write_out`.
    pub fn append(&self, message: &Append<'_>) -> Result<Appended, PutError> {
        self.gate.check()?;
        check_place(message.topic, message.queue_id)?;
        if message.sys_flag & sys_flag::INNER_BATCH != 0 {
            return Err(PutError::MessageIllegal("a message of its own is no inner batch"));
        }
        let mut record = new_record(message, self.config.append_prop_crc);
        let len = self.check_size(&record)?;
        let queue = self.queue_to_append(message.topic, message.queue_id)?;
        let facts = self.facts(&queue, message.sys_flag, message.properties, message.more_properties);
        if facts.multi_dispatch
            && multi_dispatch::allowed(&self.config, message.topic)
            && sys_flag::takes_queue_place(message.sys_flag)
        {
            return self.append_to_light(message, &queue, &facts);
        }

        let mut appender = self.appender.lock();
        self.check_open(&appender, &queue)?;
        self.append_record(&mut appender, &queue, &mut record, len, &facts, 1)
    }

    /// Under the put lock: a record on its own, of `count` messages.
    pub(crate) fn append_record(
        &self,
        appender: &mut Appender,
        queue: &Arc<ConsumeQueue>,
        record: &mut NewRecord<'_>,
        len: usize,
        facts: &Facts,
        count: i16,
    ) -> Result<Appended, PutError> {
        let (physical_offset, queue_offset, store_timestamp) =
            self.put_record(appender, queue, record, len, facts, count)?;
        let end = appender.ticket();
        self.gate.lawful(self.positions.set_appended(appender.position));
        Ok(Appended { physical_offset, len: len as u32, queue_offset, end, store_timestamp })
    }

    /// Like `append` for all items at once: neighbouring records, consecutive queue offsets, all or none.
    pub fn append_batch(&self, batch: &AppendBatch<'_>) -> Result<AppendedBatch, PutError> {
        self.gate.check()?;
        check_place(batch.topic, batch.queue_id)?;
        if batch.items.is_empty() {
            return Err(PutError::MessageIllegal("the batch is empty"));
        }
        if batch.sys_flag & sys_flag::INNER_BATCH != 0 {
            return Err(PutError::MessageIllegal("a batch of records is no inner batch"));
        }
        let queue = self.queue_to_append(batch.topic, batch.queue_id)?;
        let mut records = Vec::with_capacity(batch.items.len());
        let mut total = 0;
        for item in batch.items {
            let record = new_record(&item_message(batch, item), self.config.append_prop_crc);
            let len = self.check_size(&record)?;
            total += len;
            let facts = self.facts(&queue, batch.sys_flag, item.properties, &[]);
            self.refuse_light(batch.topic, &facts)?;
            records.push((record, len, facts));
        }
        if total > self.config.max_message_size + RECORD_OVERHEAD || total as u64 + 8 > self.log.file_size {
            return Err(PutError::MessageIllegal("the batch is longer than maxMessageSize"));
        }

        let mut appender = self.appender.lock();
        self.check_open(&appender, &queue)?;
        // The batch stays in one file, as Java keeps it.
        appender.place(total);
        let mut out = AppendedBatch {
            physical_offsets: Vec::with_capacity(records.len()),
            len: total as u32,
            queue_offset: 0,
            end: 0,
            store_timestamp: 0,
        };
        for (i, (record, len, facts)) in records.iter_mut().enumerate() {
            let (physical, queue_offset, time) = self.put_record(&mut appender, &queue, record, *len, facts, 1)?;
            if i == 0 {
                out.queue_offset = queue_offset;
                out.store_timestamp = time;
            }
            out.physical_offsets.push(physical);
        }
        out.end = appender.ticket();
        self.gate.lawful(self.positions.set_appended(appender.position));
        Ok(out)
    }

    /// Under the put lock: offsets, time, bytes. The record holds `count` messages.
    fn put_record(
        &self,
        appender: &mut Appender,
        queue: &Arc<ConsumeQueue>,
        record: &mut NewRecord<'_>,
        len: usize,
        facts: &Facts,
        count: i16,
    ) -> Result<(u64, i64, i64), PutError> {
        let physical = appender.place(len);
        let in_queue = sys_flag::takes_queue_place(record.sys_flag);
        record.physical_offset = physical as i64;
        record.store_timestamp = now_ms();
        record.queue_offset = if in_queue { queue.next.load(Ordering::Acquire) } else { 0 };
        let at = appender.group.bytes.len();
        // The lengths were checked before the lock.
        encode_record(&mut appender.group.bytes, record).map_err(put_error)?;
        if self.config.append_prop_crc {
            patch_property_crc(appender.group.bytes.get_mut(at..).unwrap_or_default());
        }
        let group = &mut appender.group;
        let store_time = record.store_timestamp;
        if in_queue {
            queue.next.store(record.queue_offset + i64::from(count), Ordering::Release);
            let unit = BatchUnit {
                physical_offset: physical,
                size: len as u32,
                tags_code: facts.code(&self.config, queue, store_time),
                store_time,
                base: record.queue_offset,
                count,
            };
            group.entries.push(Entry { queue: queue.clone(), unit });
        }
        group.keys.extend(facts.hashes.iter().map(|hash| KeyEntry { hash, physical, store_time }));
        appender.placed(len, store_time);
        Ok((physical, record.queue_offset, store_time))
    }

    pub(crate) fn facts(&self, queue: &ConsumeQueue, flags: i32, first: &[u8], second: &[u8]) -> Facts {
        Facts::find(queue, flags, first, second, self.index.enabled())
    }

    pub(crate) fn check_size(&self, record: &NewRecord<'_>) -> Result<usize, PutError> {
        if record.body.len() > self.config.max_message_size {
            return Err(PutError::MessageIllegal("the body is longer than maxMessageSize"));
        }
        let len = record_length(record).map_err(put_error)?;
        if len > self.config.max_message_size + RECORD_OVERHEAD || len as u64 + 8 > self.log.file_size {
            return Err(PutError::MessageIllegal("the message is longer than maxMessageSize"));
        }
        Ok(len)
    }

    /// What may have changed before the lock was taken.
    pub(crate) fn check_open(&self, appender: &Appender, queue: &ConsumeQueue) -> Result<(), PutError> {
        self.gate.check()?;
        if queue.is_dead() {
            return Err(PutError::TopicDeleted);
        }
        if appender.group.bytes.len() >= self.config.max_unwritten_bytes {
            return Err(PutError::Busy);
        }
        // Who does not wait for the flush would fill the memory while the disk hangs.
        if self.shows_flushed_only()
            && self.positions.written().saturating_sub(self.positions.flushed()) >= self.config.max_unflushed_bytes
        {
            return Err(PutError::Busy);
        }
        Ok(())
    }
}

/// A topic becomes a folder name. False for what would lead elsewhere.
pub(crate) fn is_folder_name(topic: &str) -> bool {
    !topic.is_empty() && topic.len() <= 255 && topic != "." && topic != ".." && !topic.contains(['/', '\0'])
}

pub(crate) fn check_place(topic: &str, queue: i32) -> Result<(), PutError> {
    if !is_folder_name(topic) {
        return Err(PutError::MessageIllegal("the topic's name cannot be stored"));
    }
    if topic.len() > 127 && !topic.starts_with("%RETRY%") {
        return Err(PutError::MessageIllegal("the topic's name is longer than 127 bytes"));
    }
    if queue < 0 {
        return Err(PutError::MessageIllegal("the queue id is negative"));
    }
    Ok(())
}

pub(crate) fn put_error(error: RecordError) -> PutError {
    match error {
        RecordError::PropertiesTooLong(len) => PutError::PropertiesSizeExceeded { len, limit: LONGEST_PROPERTIES },
        RecordError::TopicTooLong(_) => PutError::MessageIllegal("the topic's name is too long"),
        RecordError::TooLong(_) => PutError::MessageIllegal("the message is too long"),
    }
}

pub(crate) fn new_record<'a>(message: &Append<'a>, with_property_crc: bool) -> NewRecord<'a> {
    NewRecord {
        topic: message.topic,
        queue_id: message.queue_id,
        flag: message.flag,
        sys_flag: message.sys_flag,
        queue_offset: 0,
        physical_offset: 0,
        born_timestamp: message.born_timestamp,
        born_host: message.born_host,
        store_timestamp: 0,
        store_host: message.store_host,
        reconsume_times: message.reconsume_times,
        prepared_transaction_offset: message.prepared_transaction_offset,
        body: message.body,
        properties: message.properties,
        more_properties: message.more_properties,
        with_property_crc,
    }
}

fn item_message<'a>(batch: &AppendBatch<'a>, item: &BatchItem<'a>) -> Append<'a> {
    Append {
        topic: batch.topic,
        queue_id: batch.queue_id,
        flag: item.flag,
        sys_flag: batch.sys_flag,
        born_timestamp: batch.born_timestamp,
        born_host: batch.born_host,
        store_host: batch.store_host,
        reconsume_times: batch.reconsume_times,
        prepared_transaction_offset: 0,
        body: item.body,
        properties: item.properties,
        more_properties: &[],
    }
}
