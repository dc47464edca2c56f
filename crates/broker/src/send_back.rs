//! CONSUMER_SEND_MSG_BACK (36): a message could not be consumed and comes again later, or ends in the dead-letter topic.

use std::sync::Arc;

use protocol::headers::ConsumerSendMsgBackRequest;
use protocol::record::{MessageId, RecordView, properties, property};
use protocol::{Command, response_code as code};
use store::Append;

use crate::broker::Broker;
use crate::context::{Answer, Context, Refusal, ok};
use crate::delay::queue_of_level;
use crate::names::{self, PERM_READ, PERM_WRITE, SCHEDULE_TOPIC};
use crate::send::{FAQ, TOPIC_FLAG_UNIT_SUB, VERSION_3_4_9, dead_letter_topic, topic_refusal};
use crate::send_answer::put_status_name;
use crate::send_properties::wait_in_level;

/// The level of the first retry when the consumer leaves it to the broker: 10 s with the usual table.
const FIRST_LEVEL: i32 = 3;

/// Stores the message again. May read old data: runs on a thread that may wait.
pub fn send_back(broker: &Arc<Broker>, context: &Context<'_>, request: &Command) -> Answer {
    let header: ConsumerSendMsgBackRequest = request.header()?;
    let group = header.group.as_str();
    let Some(settings) = broker.find_group(group, context.now) else {
        let remark = format!("subscription group not exist, {group} {FAQ}");
        return Err(Refusal::new(code::SUBSCRIPTION_GROUP_NOT_EXIST, remark));
    };
    if broker.config().broker_permission as i32 & PERM_WRITE == 0 {
        let remark = format!("the broker[{}] sending message is forbidden", broker.config().broker_ip1);
        return Err(Refusal::new(code::NO_PERMISSION, remark));
    }
    if settings.retry_queue_nums <= 0 {
        return ok();
    }
    let retry = retry_topic(broker, &header, settings.retry_queue_nums, context.now)?;
    let Some(bytes) = u64::try_from(header.offset).ok().and_then(|offset| broker.store.record_at(offset)) else {
        return Err(Refusal::system(format!("look message by offset failed, {}", header.offset)));
    };
    let record = RecordView::parse(&bytes)
        .map_err(|_| Refusal::system(format!("look message by offset failed, {}", header.offset)))?;

    let asked = header.max_reconsume_times.filter(|_| request.version >= VERSION_3_4_9);
    let most = asked.unwrap_or(settings.retry_max_times);
    let dead = record.reconsume_times >= most || header.delay_level < 0;
    let destination = if dead {
        tracing::info!(group, topic = record.topic, offset = header.offset, "message goes to the dead-letter topic");
        Destination { topic: dead_letter_topic(broker, group, context.now)?, queue_id: 0, level: 0 }
    } else {
        let level = match header.delay_level {
            0 => FIRST_LEVEL + record.reconsume_times,
            named => named,
        };
        Destination { topic: retry, queue_id: fastrand::i32(0..settings.retry_queue_nums), level }
    };
    store_again(broker, &record, &header, destination)
}

struct Destination {
    topic: String,
    queue_id: i32,
    /// 0: without delay.
    level: i32,
}

fn retry_topic(broker: &Broker, header: &ConsumerSendMsgBackRequest, queues: i32, now: i64) -> Result<String, Refusal> {
    let name = names::retry_topic(&header.group);
    let flag = if header.unit_mode { TOPIC_FLAG_UNIT_SUB } else { 0 };
    let made = broker.topics.create_for_send_back(&name, queues, PERM_READ | PERM_WRITE, false, flag, now);
    match made.map_err(topic_refusal)? {
        None => Err(Refusal::system(format!("topic[{name}] not exist"))),
        Some(topic) if topic.perm & PERM_WRITE == 0 => {
            Err(Refusal::new(code::NO_PERMISSION, format!("the topic[{name}] sending message is forbidden")))
        }
        Some(_) => Ok(name),
    }
}

fn store_again(
    broker: &Broker,
    record: &RecordView<'_>,
    header: &ConsumerSendMsgBackRequest,
    destination: Destination,
) -> Answer {
    let mut text = record.properties.to_vec();
    if !properties::contains(&text, property::RETRY_TOPIC) {
        properties::append(&mut text, property::RETRY_TOPIC, record.topic);
    }
    properties::set(&mut text, property::WAIT, "false");
    if !properties::contains(&text, property::ORIGIN_MESSAGE_ID) {
        let id = MessageId::new(record.store_host, header.offset);
        properties::append(&mut text, property::ORIGIN_MESSAGE_ID, id.as_str());
    }
    let Destination { topic, queue_id, level } = destination;
    let level = broker.delay_levels().capped(level);
    let (topic, queue_id) = if level > 0 {
        wait_in_level(&mut text, level, &topic, queue_id);
        (SCHEDULE_TOPIC, queue_of_level(level))
    } else {
        // Left at its old level it would wait there instead.
        properties::set(&mut text, property::DELAY, "0");
        (topic.as_str(), queue_id)
    };
    let appended = broker.store.append(&Append {
        topic,
        queue_id,
        flag: record.flag,
        sys_flag: record.sys_flag,
        born_timestamp: record.born_timestamp,
        born_host: record.born_host,
        store_host: broker.store_host,
        reconsume_times: record.reconsume_times.saturating_add(1),
        prepared_transaction_offset: 0,
        body: record.body,
        properties: &text,
        more_properties: b"",
    });
    let appended = appended.map_err(|error| Refusal::system(put_status_name(error.put_status())))?;
    broker.store.write_out(appended.end).map_err(|error| Refusal::system(error.to_string()))?;
    broker.stats.put(1, appended.len.into());
    broker.stats.topic_put(topic, 1, appended.len.into());
    broker.stats.sent_back(&header.group, record.property(property::RETRY_TOPIC).unwrap_or(record.topic));
    ok()
}
