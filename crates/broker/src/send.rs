//! Sends: SEND_MESSAGE (10), SEND_MESSAGE_V2 (310) and SEND_BATCH_MESSAGE (320).
//!
//! A message is checked, given the broker's properties, appended to the store's group buffer and left in the [`Batch`], which answers it
//! after the group's write.

use std::borrow::Cow;
use std::sync::Arc;

use protocol::body::TopicConfig;
use protocol::headers::hot::SendMessage;
use protocol::record::{batch_items, properties, property, sys_flag};
use protocol::{Command, response_code as code};
use remoting::{Connection, RateLimited, Reply};
use store::{Append, AppendBatch, BatchItem};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::batch::{Batch, StoredSend};
use crate::broker::Broker;
use crate::context::Refusal;
use crate::delay::queue_of_level;
use crate::names::{self, PERM_READ, PERM_WRITE, RETRY_PREFIX, SCHEDULE_TOPIC};
use crate::send_answer::{self, Places};
use crate::send_properties::{SendProperties, cleaned, wait_in_level};
use crate::topics::TopicError;

/// Where clients find help on what a remark says.
pub const FAQ: &str = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.";

const DEAD_LETTER_QUEUES: i32 = 1;

/// From this version on a client's own maximum of reconsumptions counts.
pub const VERSION_3_4_9: i32 = 121;

/// Serves all three codes; what is a batch, the header says.
pub fn send(broker: &Arc<Broker>, conn: &Connection, batch: &mut Batch, request: Command, reply: Reply) {
    let now = batch.now();
    let header = SendMessage::read(&request.fields);
    let outcome = match &header {
        Ok(send) => store(broker, conn, now, &request, send),
        Err(error) => Err(Refusal::from(error.clone())),
    };
    match outcome {
        Ok((stored, key)) => batch.push(stored, key.as_deref(), reply),
        Err(refusal) => {
            broker.stats.put_failed(1);
            send_answer::refuse(broker, reply, &refusal);
        }
    }
}

/// What was stored, and its unique key.
type Stored<'s> = (StoredSend, Option<Cow<'s, str>>);

fn store<'s>(
    broker: &Broker,
    conn: &Connection,
    now: i64,
    request: &Command,
    send: &'s SendMessage<'s>,
) -> Result<Stored<'s>, Refusal> {
    let topic = checked_topic(broker, conn, send, now)?;
    let queue_id = match send.queue_id {
        negative if negative < 0 => fastrand::i32(0..topic.write_queue_nums.max(1)),
        named => named,
    };
    let (body, version) = (&request.body[..], request.version);
    let job = Job { broker, conn, now, send, topic: &topic, queue_id, body, version };
    if send.batch { job.store_batch() } else { job.store_one() }
}

/// The checks that come before the message itself is looked at. Makes the topic if that is allowed.
fn checked_topic(
    broker: &Broker,
    conn: &Connection,
    send: &SendMessage<'_>,
    now: i64,
) -> Result<Arc<TopicConfig>, Refusal> {
    let name = send.topic.as_ref();
    let known = broker.topics.get(name);
    if broker.config().broker_permission as i32 & PERM_WRITE == 0 && known.as_ref().is_some_and(|topic| topic.order) {
        let remark = format!("the broker[{}] sending message is forbidden", broker.config().broker_ip1);
        return Err(Refusal::new(code::NO_PERMISSION, remark));
    }
    // Names in the table were checked when they came in.
    if known.is_none() {
        names::check_topic(name).map_err(|remark| Refusal::new(code::INVALID_PARAMETER, remark))?;
    }
    if !names::clients_may_send_to(name) {
        let remark = format!("Sending message to topic[{name}] is forbidden.");
        return Err(Refusal::new(code::NO_PERMISSION, remark));
    }
    let topic = match known {
        Some(topic) => topic,
        None => make_topic(broker, conn, send, now)?,
    };
    if send.queue_id >= topic.write_queue_nums.max(topic.read_queue_nums) {
        let remark = format!(
            "request queueId[{}] is illegal, {} Producer: {}",
            send.queue_id,
            describe(&topic),
            conn.remote_addr()
        );
        return Err(Refusal::new(code::INVALID_PARAMETER, remark));
    }
    Ok(topic)
}

fn make_topic(
    broker: &Broker,
    conn: &Connection,
    send: &SendMessage<'_>,
    now: i64,
) -> Result<Arc<TopicConfig>, Refusal> {
    let name = send.topic.as_ref();
    let retry = name.starts_with(RETRY_PREFIX);
    let flag = match (send.unit_mode, retry) {
        (false, _) => 0,
        (true, false) => TOPIC_FLAG_UNIT,
        (true, true) => TOPIC_FLAG_UNIT_SUB,
    };
    // The new topic is in its file before the message is: that waits for the disk, and connections of the same thread
    // must not.
    let made = aside(|| {
        let template = send.default_topic.as_ref();
        let made = broker.topics.create_for_send(name, template, send.default_topic_queue_nums, flag, now)?;
        if made.is_some() || !retry {
            return Ok(made);
        }
        broker.topics.create_for_send_back(name, 1, PERM_READ | PERM_WRITE, false, flag, now)
    });
    if let Some(topic) = made.map_err(topic_refusal)? {
        return Ok(topic);
    }
    static UNKNOWN: RateLimited = RateLimited::new();
    if let Some(skipped) = UNKNOWN.allow() {
        let producer = conn.remote_addr();
        tracing::warn!(topic = name, %producer, skipped, "a send names a topic that does not exist and is not made");
    }
    Err(Refusal::new(code::TOPIC_NOT_EXIST, format!("topic[{name}] not exist, apply first please!{FAQ}")))
}

/// Runs what waits for the disk without keeping the other connections of this thread from theirs.
fn aside<R>(work: impl FnOnce() -> R) -> R {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Topic flag of topics made by unit-mode producers.
const TOPIC_FLAG_UNIT: i32 = 1;
/// Topic flag of retry topics made by unit-mode consumers.
pub const TOPIC_FLAG_UNIT_SUB: i32 = 2;

pub fn topic_refusal(error: TopicError) -> Refusal {
    Refusal::system(error.to_string())
}

fn describe(topic: &TopicConfig) -> String {
    let perm = |bit, letter| if topic.perm & bit == 0 { '-' } else { letter };
    let attributes: Vec<String> = topic.attributes.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!(
        "TopicConfig [topicName={}, readQueueNums={}, writeQueueNums={}, perm={}{}{}, topicFilterType={}, topicSysFlag={}, order={}, attributes={{{}}}]",
        topic.topic_name,
        topic.read_queue_nums,
        topic.write_queue_nums,
        perm(PERM_READ, 'R'),
        perm(PERM_WRITE, 'W'),
        perm(names::PERM_INHERIT, 'X'),
        topic.topic_filter_type,
        topic.topic_sys_flag,
        topic.order,
        attributes.join(", ")
    )
}

fn no_key() -> Refusal {
    Refusal::new(code::MESSAGE_ILLEGAL, "Required message key is missing")
}

/// A property string that is copied only when it has to change.
struct Properties<'a> {
    text: Cow<'a, [u8]>,
}

impl Properties<'_> {
    fn edit(&mut self) -> &mut Vec<u8> {
        self.text.to_mut()
    }
}

/// One send on its way into the store.
struct Job<'s, 'a> {
    broker: &'a Broker,
    conn: &'a Connection,
    now: i64,
    send: &'s SendMessage<'s>,
    topic: &'a Arc<TopicConfig>,
    /// As the producer sees it.
    queue_id: i32,
    body: &'a [u8],
    version: i32,
}

impl<'s> Job<'s, '_> {
    fn store_one(&self) -> Result<Stored<'s>, Refusal> {
        let (broker, send) = (self.broker, self.send);
        let found = SendProperties::scan(self.text());
        let level = self.delay_level(&found)?;
        self.check(&found, level)?;
        if self.lacks_key(&found) {
            return Err(no_key());
        }

        let mut stored_text = self.stored_text(&found);
        let mut topic = send.topic.as_ref();
        let mut queue_id = self.queue_id;
        let mut level = level;
        let dead = self.dead_letter_topic()?;
        if let Some(dead) = &dead {
            (topic, queue_id, level) = (dead, 0, 0);
            properties::set(stored_text.edit(), property::DELAY, "-1");
        }
        let key = match found.uniq_key {
            Some(key) => Cow::Borrowed(key),
            None => {
                let key = broker.unique_keys.make(self.now);
                properties::append(stored_text.edit(), property::UNIQ_KEY, &key);
                Cow::Owned(key)
            }
        };
        if level > 0 {
            let level = broker.delay_levels().capped(level);
            wait_in_level(stored_text.edit(), level, topic, queue_id);
            (topic, queue_id) = (SCHEDULE_TOPIC, queue_of_level(level));
        }
        let appended = broker.store.append(&self.message(topic, queue_id, &stored_text.text));
        let appended = appended.map_err(|error| send_answer::put_refusal(broker, &error))?;
        let stored = StoredSend {
            places: Places::One(appended.physical_offset),
            queue_id: self.queue_id,
            queue_offset: appended.queue_offset,
            messages: 1,
            bytes: appended.len,
            ticket: appended.end,
            waits_for_flush: found.waits_for_store(),
            topic: Some(self.topic.clone()).filter(|_| level == 0),
        };
        Ok((stored, Some(key)))
    }

    fn store_batch(&self) -> Result<Stored<'s>, Refusal> {
        let (broker, send) = (self.broker, self.send);
        let topic = send.topic.as_ref();
        if topic.len() > i8::MAX as usize {
            let remark = format!("message topic length too long {}", topic.len());
            return Err(Refusal::new(code::MESSAGE_ILLEGAL, remark));
        }
        if topic.starts_with(RETRY_PREFIX) {
            let remark = format!("batch request does not support retry group {topic}");
            return Err(Refusal::new(code::MESSAGE_ILLEGAL, remark));
        }
        let found = SendProperties::scan(self.text());
        let level = self.delay_level(&found)?;
        self.check(&found, 0)?;
        if level > 0 {
            return Err(send_answer::illegal(broker));
        }
        if found.uniq_key.is_some() && self.topic.has_batch_queues() {
            return self.store_inner_batch(&found);
        }
        let limit = broker.store_config().max_message_size as usize;
        if self.body.len() > limit {
            let remark =
                format!("message body size exceeded, msg body size: {}, maxMessageSize: {limit}", self.body.len());
            return Err(Refusal::system(remark));
        }
        let items = self.items()?;
        if self.topic.is_compacted() && items.iter().any(|item| self.lacks_key(&SendProperties::scan(item.properties)))
        {
            return Err(no_key());
        }
        let appended = broker.store.append_batch(&AppendBatch {
            topic,
            queue_id: self.queue_id,
            sys_flag: self.sys_flag(),
            born_timestamp: send.born_timestamp,
            born_host: self.conn.remote_addr(),
            store_host: broker.store_host,
            reconsume_times: send.reconsume_times.unwrap_or(0),
            items: &items,
        });
        let appended = appended.map_err(|error| send_answer::put_refusal(broker, &error))?;
        let stored = StoredSend {
            messages: appended.physical_offsets.len() as u32,
            places: Places::Many(appended.physical_offsets),
            queue_id: self.queue_id,
            queue_offset: appended.queue_offset,
            bytes: appended.len,
            ticket: appended.end,
            waits_for_flush: found.waits_for_store(),
            topic: Some(self.topic.clone()),
        };
        Ok((stored, found.uniq_key.map(Cow::Borrowed)))
    }

    /// The whole batch as one record, which consumers take apart.
    fn store_inner_batch(&self, found: &SendProperties<'s>) -> Result<Stored<'s>, Refusal> {
        let broker = self.broker;
        if self.lacks_key(found) {
            return Err(no_key());
        }
        let count = i16::try_from(self.items()?.len()).map_err(|_| send_answer::illegal(broker))?;
        let stored_text = self.stored_text(found);
        let message = self.message(self.send.topic.as_ref(), self.queue_id, &stored_text.text);
        let appended = broker.store.append_inner_batch(&message, count);
        let appended = appended.map_err(|error| send_answer::put_refusal(broker, &error))?;
        let stored = StoredSend {
            places: Places::Inner(appended.physical_offset),
            queue_id: self.queue_id,
            queue_offset: appended.queue_offset,
            messages: count as u32,
            bytes: appended.len,
            ticket: appended.end,
            waits_for_flush: found.waits_for_store(),
            topic: Some(self.topic.clone()),
        };
        Ok((stored, found.uniq_key.map(Cow::Borrowed)))
    }

    /// The property string as it came.
    fn text(&self) -> &'s [u8] {
        self.send.properties.as_deref().unwrap_or_default().as_bytes()
    }

    /// The property string as it is stored.
    fn stored_text(&self, found: &SendProperties<'_>) -> Properties<'s> {
        let mut stored = Properties { text: Cow::Borrowed(self.text()) };
        if found.needs_cleaning {
            cleaned(stored.edit(), self.text());
        }
        stored
    }

    fn message<'m>(&'m self, topic: &'m str, queue_id: i32, properties: &'m [u8]) -> Append<'m> {
        let (broker, send) = (self.broker, self.send);
        Append {
            topic,
            queue_id,
            flag: send.flag,
            sys_flag: self.sys_flag(),
            born_timestamp: send.born_timestamp,
            born_host: self.conn.remote_addr(),
            store_host: broker.store_host,
            reconsume_times: send.reconsume_times.unwrap_or(0),
            prepared_transaction_offset: 0,
            body: self.body,
            properties,
            more_properties: broker.pairs.as_bytes(),
        }
    }

    fn items(&self) -> Result<Vec<BatchItem<'_>>, Refusal> {
        batch_items(self.body)
            .collect::<Result<_, _>>()
            .map_err(|error| Refusal::new(code::MESSAGE_ILLEGAL, error.to_string()))
    }

    fn delay_level(&self, found: &SendProperties<'_>) -> Result<i32, Refusal> {
        found.delay_level().map_err(|error| {
            Refusal::system(format!("DELAY: {:?} is no number: {error}", found.delay.unwrap_or_default()))
        })
    }

    /// What cannot be stored, whatever its topic.
    fn check(&self, found: &SendProperties<'_>, level: i32) -> Result<(), Refusal> {
        let broker = self.broker;
        let inner_batch = self.send.sys_flag & sys_flag::INNER_BATCH != 0;
        if self.body.is_empty() || found.inner_num || inner_batch {
            return Err(send_answer::illegal(broker));
        }
        // Old clients leave the transaction mark on messages they send back with a delay.
        let sent_back = self.send.reconsume_times.unwrap_or(0) > 0 && level > 0;
        let half = found.transaction && !sent_back;
        if half || !sys_flag::takes_queue_place(self.send.sys_flag) {
            let remark = format!("the broker[{}] sending transaction message is forbidden", broker.config().broker_ip1);
            return Err(Refusal::new(code::NO_PERMISSION, remark));
        }
        if found.timer && level <= 0 {
            return Err(Refusal::system("accurate timer message is not enabled, timerWheelEnable is false"));
        }
        Ok(())
    }

    /// Every record of a compacted topic needs a key.
    fn lacks_key(&self, properties: &SendProperties<'_>) -> bool {
        self.topic.is_compacted() && properties.keys.is_none_or(|keys| keys.trim().is_empty())
    }

    fn sys_flag(&self) -> i32 {
        let multi = if self.topic.topic_filter_type == "MULTI_TAG" { sys_flag::MULTI_TAGS } else { 0 };
        self.send.sys_flag | multi
    }

    /// The dead-letter topic, when this is a consumer's retry that has been tried often enough, or one of a group that consumes
    /// in order: it must not be overtaken.
    fn dead_letter_topic(&self) -> Result<Option<String>, Refusal> {
        let Some(group) = self.send.topic.strip_prefix(RETRY_PREFIX) else {
            return Ok(None);
        };
        let broker = self.broker;
        let Some(settings) = broker.find_group(group, self.now) else {
            let remark = format!("subscription group not exist, {group} {FAQ}");
            return Err(Refusal::new(code::SUBSCRIPTION_GROUP_NOT_EXIST, remark));
        };
        let asked = self.send.max_reconsume_times.filter(|_| self.version >= VERSION_3_4_9);
        let most = asked.unwrap_or(settings.retry_max_times);
        if self.send.reconsume_times.unwrap_or(0) <= most && broker.locks.all_expired(group, self.now) {
            return Ok(None);
        }
        dead_letter_topic(broker, group, self.now).map(Some)
    }
}

/// The name of a group's dead-letter topic, made if need be.
pub fn dead_letter_topic(broker: &Broker, group: &str, now: i64) -> Result<String, Refusal> {
    let name = names::dead_letter_topic(group);
    let made = broker.topics.create_for_send_back(&name, DEAD_LETTER_QUEUES, PERM_READ | PERM_WRITE, false, 0, now);
    match made.map_err(topic_refusal)? {
        Some(_) => Ok(name),
        None => Err(Refusal::system(format!("topic[{name}] not exist"))),
    }
}
