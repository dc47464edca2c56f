//! Light message queues (`enableLmq`): a message also gets a place in each queue that its property INNER_MULTI_DISPATCH
//! names. INNER_MULTI_QUEUE_OFFSET, added when it is stored, says which places.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use protocol::record::{RecordView, properties, property, record_length};

use crate::batch_unit::BatchUnit;
use crate::consume_queue::ConsumeQueue;
use crate::facts::Facts;
use crate::group::Entry;
use crate::put::{check_place, new_record, put_error};
use crate::{Append, Appended, PutError, QueueType, SCHEDULE_TOPIC, Store, StoreConfig};

/// What the names of light queues begin with.
pub(crate) const LIGHT_PREFIX: &str = "%LMQ%";
/// Every light queue has this id.
const LIGHT_QUEUE: i32 = 0;
const SEPARATOR: char = ',';

/// Whether messages of a topic may also go into light queues.
pub(crate) fn allowed(config: &StoreConfig, topic: &str) -> bool {
    config.enable_lmq && !topic.starts_with("%RETRY%") && !topic.starts_with("rmq_sys_") && topic != SCHEDULE_TOPIC
}

/// The light queues a stored record is in, with its offsets there.
pub(crate) fn places<'a>(record: &RecordView<'a>) -> impl Iterator<Item = (&'a str, i64)> {
    let names = properties::get(record.properties, property::INNER_MULTI_DISPATCH).unwrap_or_default();
    let offsets = properties::get(record.properties, property::INNER_MULTI_QUEUE_OFFSET).unwrap_or_default();
    let pairs = names.split(SEPARATOR).zip(offsets.split(SEPARATOR));
    let places = pairs.filter_map(|(name, offset)| is_light(name).then_some((name, offset.parse().ok()?)));
    places.filter(|(_, offset)| *offset >= 0)
}

fn is_light(name: &str) -> bool {
    name.starts_with(LIGHT_PREFIX) && check_place(name, LIGHT_QUEUE).is_ok()
}

impl Store {
    /// `append` for a message that names light queues.
    pub(crate) fn append_to_light(
        &self,
        message: &Append<'_>,
        queue: &Arc<ConsumeQueue>,
        facts: &Facts,
    ) -> Result<Appended, PutError> {
        let name = property::INNER_MULTI_DISPATCH;
        let names = properties::get(message.more_properties, name).or(properties::get(message.properties, name));
        let names: Vec<&str> = names.unwrap_or_default().split(SEPARATOR).collect();
        let light: Vec<Arc<ConsumeQueue>> =
            names.iter().map(|name| self.light_queue(name)).collect::<Result<_, _>>()?;
        let mut appender = self.appender.lock();
        light.iter().chain([queue]).try_for_each(|queue| self.check_open(&appender, queue))?;
        let offsets: Vec<String> = light.iter().map(|queue| queue.next.load(Ordering::Acquire).to_string()).collect();
        let mut more_properties = message.more_properties.to_vec();
        properties::append(&mut more_properties, property::INNER_MULTI_QUEUE_OFFSET, &offsets.join(","));
        let message = Append { more_properties: &more_properties, ..*message };
        let mut record = new_record(&message, self.config.append_prop_crc);
        let len = record_length(&record).map_err(put_error)?;
        if len > self.config.max_message_size {
            return Err(PutError::MessageIllegal("a message with light queues is longer than maxMessageSize"));
        }
        let len = self.check_size(&record)?;
        let appended = self.append_record(&mut appender, queue, &mut record, len, facts, 1)?;
        // Once each; one that is sent to directly and names itself has the message already.
        let mut seen = HashSet::from([queue.uid]);
        for queue in light.into_iter().filter(|queue| seen.insert(queue.uid)) {
            let base = queue.next.fetch_add(1, Ordering::AcqRel);
            if !self.config.enable_multi_dispatch {
                continue;
            }
            let unit = BatchUnit {
                physical_offset: appended.physical_offset,
                size: appended.len,
                tags_code: facts.code(&self.config, &queue, appended.store_timestamp),
                store_time: appended.store_timestamp,
                base,
                count: 1,
            };
            appender.group.entries.push(Entry { queue, unit });
        }
        Ok(appended)
    }

    /// The queue a message is put into. Light ones are counted, whichever way they come into being.
    pub(crate) fn queue_to_append(&self, topic: &str, id: i32) -> Result<Arc<ConsumeQueue>, PutError> {
        match self.queues.get(topic, id) {
            Some(queue) => Ok(queue),
            None if self.config.enable_lmq && topic.starts_with(LIGHT_PREFIX) && id == LIGHT_QUEUE => {
                self.light_queue(topic)
            }
            None => Ok(self.queues.get_or_make(topic, id)),
        }
    }

    /// A batch has no room for the places of its messages in light queues; Java leaves them out silently.
    pub(crate) fn refuse_light(&self, topic: &str, facts: &Facts) -> Result<(), PutError> {
        match facts.multi_dispatch && allowed(&self.config, topic) {
            true => Err(PutError::MessageIllegal("messages of a batch cannot go into light queues")),
            false => Ok(()),
        }
    }

    fn light_queue(&self, name: &str) -> Result<Arc<ConsumeQueue>, PutError> {
        // Java stores such a message, and its dispatch then fails at it for ever.
        if !is_light(name) {
            return Err(PutError::MessageIllegal("INNER_MULTI_DISPATCH names a queue that does not begin with %LMQ%"));
        }
        let queue = match self.queues.get(name, LIGHT_QUEUE) {
            Some(queue) => queue,
            None if self.queues.has_topics(LIGHT_PREFIX, self.config.max_lmq_consume_queue_num) => {
                return Err(PutError::TooManyLightQueues);
            }
            None => self.queues.get_or_make(name, LIGHT_QUEUE),
        };
        match queue.kind {
            QueueType::Simple => Ok(queue),
            QueueType::Batch => Err(PutError::MessageIllegal("a light queue cannot be a batch queue")),
        }
    }
}
