//! Appending: from a message to bytes in the group with their offsets.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use protocol::record::{
    LONGEST_PROPERTIES, NewRecord, RecordError, encode_record, java_hash, patch_property_crc, properties, property,
    record_length, sys_flag,
};

use crate::consume_queue::ConsumeQueue;
use crate::group::{Appender, Entry};
use crate::index::{KeyEntry, key_hashes};
use crate::store::now_ms;
use crate::{Append, AppendBatch, Appended, AppendedBatch, BatchItem, PutError, QueueType, Store, StoreConfig};

/// Room for properties and head that Java allows beside the body.
const RECORD_OVERHEAD: usize = 64 << 10;

/// What queues and index need of the properties.
#[derive(Default)]
struct Facts {
    tags_code: i64,
    delay_level: i64,
    hashes: Hashes,
}

/// Key hashes; nearly always few.
#[derive(Default)]
struct Hashes {
    few: [i32; 4],
    count: usize,
    more: Vec<i32>,
}

impl Hashes {
    fn push(&mut self, hash: i32) {
        match self.few.get_mut(self.count) {
            Some(place) => *place = hash,
            None => self.more.push(hash),
        }
        self.count += 1;
    }

    fn iter(&self) -> impl Iterator<Item = i32> {
        self.few.iter().take(self.count).chain(&self.more).copied()
    }
}

impl Store {
    /// Encodes a message into the group buffer and gives it its offsets. It is neither readable nor safe before `write_out`.
    pub fn append(&self, message: &Append<'_>) -> Result<Appended, PutError> {
        self.gate.check()?;
        check_place(message.topic, message.queue_id)?;
        let mut record = new_record(message, self.config.append_prop_crc);
        let len = self.check_size(&record)?;
        let queue = self.queue_for(message.topic, message.queue_id, message.sys_flag)?;
        let facts = self.facts(&queue, message.sys_flag, message.properties, message.more_properties);

        let mut appender = self.appender.lock();
        self.check_open(&appender)?;
        let (physical, queue_offset, store_timestamp) =
            self.put_record(&mut appender, &queue, &mut record, len, &facts)?;
        let end = appender.ticket();
        self.positions.set_appended(appender.position);
        Ok(Appended { physical_offset: physical, len: len as u32, queue_offset, end, store_timestamp })
    }

    /// Like `append` for all items at once: neighbouring records, consecutive queue offsets, all or none.
    pub fn append_batch(&self, batch: &AppendBatch<'_>) -> Result<AppendedBatch, PutError> {
        self.gate.check()?;
        check_place(batch.topic, batch.queue_id)?;
        if batch.items.is_empty() {
            return Err(PutError::MessageIllegal("the batch is empty"));
        }
        let queue = self.queue_for(batch.topic, batch.queue_id, batch.sys_flag)?;
        let mut records = Vec::with_capacity(batch.items.len());
        let mut total = 0;
        for item in batch.items {
            let record = new_record(&item_message(batch, item), self.config.append_prop_crc);
            let len = self.check_size(&record)?;
            total += len;
            records.push((record, len, self.facts(&queue, batch.sys_flag, item.properties, &[])));
        }
        if total > self.config.max_message_size + RECORD_OVERHEAD || total as u64 + 8 > self.log.file_size {
            return Err(PutError::MessageIllegal("the batch is longer than maxMessageSize"));
        }

        let mut appender = self.appender.lock();
        self.check_open(&appender)?;
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
            let (physical, queue_offset, time) = self.put_record(&mut appender, &queue, record, *len, facts)?;
            if i == 0 {
                out.queue_offset = queue_offset;
                out.store_timestamp = time;
            }
            out.physical_offsets.push(physical);
        }
        out.end = appender.ticket();
        self.positions.set_appended(appender.position);
        Ok(out)
    }

    /// Under the put lock: offsets, time, bytes.
    fn put_record(
        &self,
        appender: &mut Appender,
        queue: &Arc<ConsumeQueue>,
        record: &mut NewRecord<'_>,
        len: usize,
        facts: &Facts,
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
            queue.next.store(record.queue_offset + 1, Ordering::Release);
            let tags_code = unit_code(&self.config, queue, facts.tags_code, facts.delay_level, store_time);
            group.entries.push(Entry {
                queue: queue.clone(),
                queue_offset: record.queue_offset,
                physical,
                size: len as u32,
                tags_code,
                store_time,
            });
        }
        group.keys.extend(facts.hashes.iter().map(|hash| KeyEntry { hash, physical, store_time }));
        appender.placed(len, store_time);
        Ok((physical, record.queue_offset, store_time))
    }

    fn facts(&self, queue: &ConsumeQueue, flags: i32, first: &[u8], second: &[u8]) -> Facts {
        let (mut tags, mut unique, mut keys) = (None, None, None);
        let mut facts = Facts::default();
        for (key, value) in properties::iter(first).chain(properties::iter(second)) {
            match key {
                b"TAGS" => tags = Some(value),
                b"KEYS" => keys = Some(value),
                b"UNIQ_KEY" => unique = Some(value),
                b"DELAY" if queue.is_schedule => facts.delay_level = parse_level(value),
                _ => {}
            }
        }
        facts.tags_code = tags_hash(tags);
        if self.index.enabled() {
            key_hashes(queue.key_prefix, flags, unique, keys, &mut |hash| facts.hashes.push(hash));
        }
        facts
    }

    /// The queue of a message. Batch queues (46-byte units) are not built: their topics and inner batches are refused rather than
    /// stored in files of the wrong kind.
    fn queue_for(&self, topic: &str, queue: i32, flags: i32) -> Result<Arc<ConsumeQueue>, PutError> {
        if flags & sys_flag::INNER_BATCH != 0 {
            return Err(PutError::MessageIllegal("inner batches are not supported"));
        }
        if let Some(found) = self.queues.get(topic, queue) {
            return Ok(found);
        }
        if self.topics.queue_type(topic) == QueueType::Batch {
            return Err(PutError::MessageIllegal("topics with batch consume queues are not supported"));
        }
        Ok(self.queues.get_or_make(topic, queue))
    }

    fn check_size(&self, record: &NewRecord<'_>) -> Result<usize, PutError> {
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
    fn check_open(&self, appender: &Appender) -> Result<(), PutError> {
        self.gate.check()?;
        if appender.group.bytes.len() >= self.config.max_unwritten_bytes {
            return Err(PutError::Busy);
        }
        Ok(())
    }
}

/// The unit's tags code: the tag hash, or the deliver time in the delay queue.
pub(crate) fn unit_code(
    config: &StoreConfig,
    queue: &ConsumeQueue,
    hash: i64,
    delay_level: i64,
    store_time: i64,
) -> i64 {
    if !queue.is_schedule || delay_level <= 0 {
        return hash;
    }
    let levels = &config.delay_levels_ms;
    let level = delay_level.min(levels.len() as i64);
    let delay = usize::try_from(level - 1).ok().and_then(|i| levels.get(i)).copied().unwrap_or(1000);
    store_time + delay
}

/// The tag hash of the stored TAGS property.
pub(crate) fn tags_hash(tags: Option<&[u8]>) -> i64 {
    tags.map_or(0, |tags| i64::from(java_hash(&String::from_utf8_lossy(tags))))
}

/// The delay level of the stored DELAY property; 0 when it is no number.
pub(crate) fn parse_level(value: &[u8]) -> i64 {
    std::str::from_utf8(value).ok().and_then(|v| v.parse::<i32>().ok()).map_or(0, i64::from)
}

/// Tags hash and delay level of a record that is read again.
pub(crate) fn tags_and_level(record_properties: &[u8]) -> (i64, i64) {
    let (mut tags, mut level) = (None, 0);
    for (key, value) in properties::iter(record_properties) {
        if key == property::TAGS.as_bytes() {
            tags = Some(value);
        } else if key == property::DELAY.as_bytes() {
            level = parse_level(value);
        }
    }
    (tags_hash(tags), level)
}

/// The topic becomes a folder name, so what would lead elsewhere is refused here too.
fn check_place(topic: &str, queue: i32) -> Result<(), PutError> {
    if topic.is_empty() || topic.len() > 255 || topic == "." || topic == ".." || topic.contains(['/', '\0']) {
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

fn put_error(error: RecordError) -> PutError {
    match error {
        RecordError::PropertiesTooLong(len) => PutError::PropertiesSizeExceeded { len, limit: LONGEST_PROPERTIES },
        RecordError::TopicTooLong(_) => PutError::MessageIllegal("the topic's name is too long"),
        RecordError::TooLong(_) => PutError::MessageIllegal("the message is too long"),
    }
}

fn new_record<'a>(message: &Append<'a>, with_property_crc: bool) -> NewRecord<'a> {
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
