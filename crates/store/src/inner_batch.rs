//! Inner batches: several messages as one record, for topics with batch consume queues.

use std::sync::atomic::Ordering;

use protocol::record::{properties, property, sys_flag};

use crate::put::{check_place, new_record};
use crate::{Append, Appended, PutError, QueueType, Store};

impl Store {
    /// Like [`Store::append`] for a body of `count` messages that stay together: one record, which takes `count` offsets of its
    /// queue. The topic must have batch consume queues. The store adds the flags and the properties INNER_NUM and INNER_BASE.
    pub fn append_inner_batch(&self, message: &Append<'_>, count: i16) -> Result<Appended, PutError> {
        self.gate.check()?;
        check_place(message.topic, message.queue_id)?;
        if count <= 0 || !sys_flag::takes_queue_place(message.sys_flag) {
            return Err(PutError::MessageIllegal("an inner batch holds messages and is no part of a transaction"));
        }
        let queue = self.queue_to_append(message.topic, message.queue_id)?;
        if queue.kind != QueueType::Batch {
            return Err(PutError::MessageIllegal("an inner batch needs a topic with queue.type=BatchCQ"));
        }
        let sys_flag = message.sys_flag | sys_flag::NEED_UNWRAP | sys_flag::INNER_BATCH;
        let message = Append { sys_flag, ..*message };
        // The offset and so the length are known only under the lock; checked is the longest.
        let longest = with_range(message.more_properties, count, i64::MAX);
        self.check_size(&new_record(&Append { more_properties: &longest, ..message }, self.config.append_prop_crc))?;
        let facts = self.facts(&queue, message.sys_flag, message.properties, message.more_properties);
        self.refuse_light(message.topic, &facts)?;

        let mut appender = self.appender.lock();
        self.check_open(&appender, &queue)?;
        let base = queue.next.load(Ordering::Acquire);
        let more_properties = with_range(message.more_properties, count, base);
        let message = Append { more_properties: &more_properties, ..message };
        let mut record = new_record(&message, self.config.append_prop_crc);
        let len = self.check_size(&record)?;
        self.append_record(&mut appender, &queue, &mut record, len, &facts, count)
    }
}

/// Which messages an inner batch holds, behind other properties.
fn with_range(before: &[u8], count: i16, base: i64) -> Vec<u8> {
    let mut all = before.to_vec();
    properties::append(&mut all, property::INNER_NUM, &count.to_string());
    properties::append(&mut all, property::INNER_BASE, &base.to_string());
    all
}
