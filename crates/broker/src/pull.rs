//! PULL_MESSAGE (11) and LITE_PULL_MESSAGE (361): reading a queue, and waiting for it when it has nothing new.

use std::sync::Arc;
use std::time::Instant;

use filter::{ExpressionType, TagExpression};
use protocol::body::{MessageModel, SubscriptionGroupConfig, TopicConfig};
use protocol::headers::hot::PullMessage;
use protocol::{Command, request_code, response_code as code};
use remoting::{Connection, Reply};
use service::clock::now_ms;
use store::{GetRequest, GetResult, GetStatus, RecordFilter};

use crate::batch::Batch;
use crate::broker::Broker;
use crate::context::Refusal;
use crate::long_poll::Wait;
use crate::names::PERM_READ;
use crate::pull_answer::{
    Forbidden, ForbiddenField, OFFSET_RESET, PullFields, Refused, forbidden, refused, response_code, status_name,
};
use crate::send::FAQ;

const FLAG_COMMIT_OFFSET: i32 = 1;
const FLAG_SUSPEND: i32 = 1 << 1;
const FLAG_SUBSCRIPTION: i32 = 1 << 2;

/// A pull that waits in the long polls.
pub struct ParkedPull {
    pull: OwnedPull,
    filter: TagExpression,
    reply: Reply,
}

impl ParkedPull {
    /// Whether a new message with this tag code may concern it.
    pub fn wants(&self, tags_code: i64) -> bool {
        self.filter.matches_code(tags_code)
    }

    pub fn is_alive(&self) -> bool {
        self.reply.connection().is_open()
    }
}

/// The parts of a pull that outlive its request.
struct OwnedPull {
    group: Box<str>,
    topic: Box<str>,
    subscription: Option<Box<str>>,
    expression_type: Option<Box<str>>,
    header: PullNumbers,
}

/// The parts of a pull that are copied.
#[derive(Debug, Clone, Copy)]
struct PullNumbers {
    code: i32,
    queue_id: i32,
    offset: i64,
    max_messages: i32,
    max_bytes: Option<i32>,
    sys_flag: i32,
    commit_offset: i64,
    suspend_ms: i64,
    sub_version: i64,
}

/// A pull under way.
#[derive(Clone, Copy)]
struct Pull<'a> {
    group: &'a str,
    topic: &'a str,
    subscription: Option<&'a str>,
    expression_type: Option<&'a str>,
    header: PullNumbers,
}

impl<'a> Pull<'a> {
    fn of(request_code: i32, header: &'a PullMessage<'a>) -> Self {
        Self {
            group: &header.consumer_group,
            topic: &header.topic,
            subscription: header.subscription.as_deref(),
            expression_type: header.expression_type.as_deref(),
            header: PullNumbers {
                code: request_code,
                queue_id: header.queue_id,
                offset: header.queue_offset,
                max_messages: header.max_msg_nums,
                max_bytes: header.max_msg_bytes,
                sys_flag: header.sys_flag,
                commit_offset: header.commit_offset,
                suspend_ms: header.suspend_timeout_millis,
                sub_version: header.sub_version,
            },
        }
    }

    fn to_owned(self) -> OwnedPull {
        OwnedPull {
            group: self.group.into(),
            topic: self.topic.into(),
            subscription: self.subscription.map(Into::into),
            expression_type: self.expression_type.map(Into::into),
            header: self.header,
        }
    }

    fn has(&self, flag: i32) -> bool {
        self.header.sys_flag & flag != 0
    }
}

impl OwnedPull {
    fn borrow(&self) -> Pull<'_> {
        Pull {
            group: &self.group,
            topic: &self.topic,
            subscription: self.subscription.as_deref(),
            expression_type: self.expression_type.as_deref(),
            header: self.header,
        }
    }
}

/// What the checks found that the rest of the way needs.
struct Admitted {
    group: Arc<SubscriptionGroupConfig>,
    topic: Arc<TopicConfig>,
    filter: TagExpression,
}

/// Serves both codes.
pub fn pull(broker: &Arc<Broker>, conn: &Connection, batch: &mut Batch, request: Command, reply: Reply) {
    let now = batch.now();
    match PullMessage::read(&request.fields) {
        Ok(header) => start(broker, conn, now, Pull::of(request.code, &header), reply),
        Err(error) => refuse(broker, reply, Refusal::from(error).into()),
    }
}

/// A parked pull goes on: a message came, or its time is up. It does not wait a second time.
pub fn resume(broker: &Arc<Broker>, parked: ParkedPull) {
    let ParkedPull { pull, reply, .. } = parked;
    let conn = reply.connection().clone();
    match admit(broker, &conn, now_ms(), &pull.borrow()) {
        Ok(admitted) => read(broker, admitted, pull.borrow(), reply),
        Err(refused) => refuse(broker, reply, refused),
    }
}

fn start(broker: &Arc<Broker>, conn: &Connection, now: i64, pull: Pull<'_>, reply: Reply) {
    let admitted = match admit(broker, conn, now, &pull) {
        Ok(admitted) => admitted,
        Err(refused) => return refuse(broker, reply, refused),
    };
    if pull.has(FLAG_COMMIT_OFFSET) {
        let PullNumbers { queue_id, commit_offset, .. } = pull.header;
        broker.offsets.commit(pull.group, pull.topic, queue_id, commit_offset, now);
    }
    if let Some(reset) = reset_offset(broker, &pull) {
        return answer(broker, &admitted, &pull, OFFSET_RESET, reset, reply);
    }
    let result = broker.store.get(&get_request(&pull, &Tags(&admitted.filter), false));
    if result.cold {
        return read_cold(broker, admitted, pull.to_owned(), reply);
    }
    if may_wait(&pull, &result) && !broker.is_stopping() {
        return park(broker, now, admitted, pull, reply);
    }
    answer(broker, &admitted, &pull, status_name(result.status), result, reply);
}

/// Reads and answers, whatever there is.
fn read(broker: &Arc<Broker>, admitted: Admitted, pull: Pull<'_>, reply: Reply) {
    let result = broker.store.get(&get_request(&pull, &Tags(&admitted.filter), false));
    if result.cold {
        return read_cold(broker, admitted, pull.to_owned(), reply);
    }
    answer(broker, &admitted, &pull, status_name(result.status), result, reply);
}

/// Old data comes from the disk: the wait must not be on a thread that serves connections.
fn read_cold(broker: &Arc<Broker>, admitted: Admitted, pull: OwnedPull, reply: Reply) {
    let broker = broker.clone();
    tokio::task::spawn_blocking(move || {
        let pull = pull.borrow();
        let start = Instant::now();
        let result = broker.store.get(&get_request(&pull, &Tags(&admitted.filter), true));
        broker.stats.read_took(start.elapsed().as_micros() as u64);
        answer(&broker, &admitted, &pull, status_name(result.status), result, reply);
    });
}

fn get_request<'a>(pull: &Pull<'a>, filter: &'a Tags<'a>, may_block: bool) -> GetRequest<'a> {
    let wanted = filter.0 != &TagExpression::All;
    GetRequest {
        topic: pull.topic,
        queue: pull.header.queue_id,
        offset: pull.header.offset,
        max_messages: pull.header.max_messages.max(1) as usize,
        max_bytes: pull.header.max_bytes.filter(|most| *most > 0).map_or(usize::MAX, |most| most as usize),
        filter: if wanted { Some(filter) } else { None },
        may_block,
    }
}

/// The tag expression as the store asks it.
struct Tags<'a>(&'a TagExpression);

impl RecordFilter for Tags<'_> {
    fn tags_code_matches(&self, tags_code: i64) -> bool {
        self.0.matches_code(tags_code)
    }
}

fn admit(broker: &Broker, conn: &Connection, now: i64, pull: &Pull<'_>) -> Result<Admitted, Refused> {
    let config = broker.config();
    let ip = &config.broker_ip1;
    if config.broker_permission as i32 & PERM_READ == 0 {
        return Err(forbidden(Forbidden::Broker, format!("the broker[{ip}] pulling message is forbidden")));
    }
    if pull.header.code == request_code::LITE_PULL_MESSAGE && !config.lite_pull_message_enable {
        let remark = format!("the broker[{ip}] for lite pull consumer is forbidden");
        return Err(forbidden(Forbidden::Broker, remark));
    }
    let Some(group) = broker.find_group(pull.group, now) else {
        let remark = format!("subscription group [{}] does not exist, {FAQ}", pull.group);
        return Err(refused(code::SUBSCRIPTION_GROUP_NOT_EXIST, remark));
    };
    if !group.consume_enable {
        return Err(forbidden(Forbidden::Group, format!("subscription group no permission, {}", pull.group)));
    }
    let Some(topic) = broker.topics.get(pull.topic) else {
        let remark = format!("topic[{}] not exist, apply first please! {FAQ}", pull.topic);
        return Err(refused(code::TOPIC_NOT_EXIST, remark));
    };
    if topic.perm & PERM_READ == 0 {
        let remark = format!("the topic[{}] pulling message is forbidden", pull.topic);
        return Err(forbidden(Forbidden::Topic, remark));
    }
    if pull.header.queue_id < 0 || pull.header.queue_id >= topic.read_queue_nums {
        let remark = format!(
            "queueId[{}] is illegal, topic:[{}] topicConfig.readQueueNums:[{}] consumer:[/{}]",
            pull.header.queue_id,
            pull.topic,
            topic.read_queue_nums,
            conn.remote_addr()
        );
        return Err(refused(code::INVALID_PARAMETER, remark));
    }
    let filter = if pull.has(FLAG_SUBSCRIPTION) {
        expression(pull.expression_type, pull.subscription.unwrap_or_default())?
    } else {
        group_subscription(broker, &group, pull)?
    };
    Ok(Admitted { group, topic, filter })
}

/// The subscription that comes with the request. Codes a client computed itself are not trusted.
fn expression(kind: Option<&str>, text: &str) -> Result<TagExpression, Refused> {
    match ExpressionType::from_name(kind) {
        Some(ExpressionType::Tag) => TagExpression::parse(text)
            .map_err(|_| refused(code::SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed")),
        _ if text.is_empty() => {
            Err(refused(code::SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed"))
        }
        _ => {
            let remark =
                format!("The broker does not support consumer to filter message by {}", kind.unwrap_or_default());
            Err(Refusal::system(remark).into())
        }
    }
}

/// The subscription that the group's heartbeats left here.
fn group_subscription(
    broker: &Broker,
    group: &SubscriptionGroupConfig,
    pull: &Pull<'_>,
) -> Result<TagExpression, Refused> {
    let Some(model) = broker.clients.group_model(pull.group) else {
        let remark = format!("the consumer's group info not exist{FAQ}");
        return Err(refused(code::SUBSCRIPTION_NOT_EXIST, remark));
    };
    if !group.consume_broadcast_enable && model.message_model == MessageModel::Broadcasting {
        let remark = format!("the consumer group[{}] can not consume by broadcast way", pull.group);
        return Err(forbidden(Forbidden::Broadcasting, remark));
    }
    if broker.groups.is_forbidden(pull.group, pull.topic, READ_BIT) {
        let remark = format!("the consumer group[{}] is forbidden for topic[{}]", pull.group, pull.topic);
        return Err(forbidden(Forbidden::Subscription, remark));
    }
    let Some(subscription) = broker.clients.subscription(pull.group, pull.topic) else {
        let remark = format!("the consumer's subscription not exist{FAQ}");
        return Err(refused(code::SUBSCRIPTION_NOT_EXIST, remark));
    };
    if subscription.sub_version < pull.header.sub_version {
        return Err(refused(code::SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest"));
    }
    if subscription.class_filter_mode {
        // Such consumers filter with code of their own.
        return Ok(TagExpression::All);
    }
    expression(Some(&subscription.expression_type), &subscription.sub_string)
}

/// The bit of a group's forbidden topics that stands for reading.
const READ_BIT: u32 = 2;

/// An operator has moved the group: the client must go there first.
fn reset_offset(broker: &Broker, pull: &Pull<'_>) -> Option<GetResult> {
    if !broker.config().use_server_side_reset_offset {
        return None;
    }
    let offset = broker.offsets.take_reset(pull.group, pull.topic, pull.header.queue_id)?;
    tracing::info!(group = pull.group, topic = pull.topic, queue = pull.header.queue_id, offset, "offset reset");
    Some(GetResult {
        // Its code is that of a reset too.
        status: GetStatus::OffsetOverflowBadly,
        next_offset: offset,
        min_offset: broker.store.min_offset(pull.topic, pull.header.queue_id),
        max_offset: broker.store.max_offset(pull.topic, pull.header.queue_id),
        messages: Vec::new(),
        count: 0,
        bytes: 0,
        cold: false,
        suggest_slave: false,
    })
}

fn may_wait(pull: &Pull<'_>, result: &GetResult) -> bool {
    pull.has(FLAG_SUSPEND) && response_code(result.status, pull.header.offset) == code::PULL_NOT_FOUND
}

fn park(broker: &Arc<Broker>, now: i64, admitted: Admitted, pull: Pull<'_>, reply: Reply) {
    let suspend_ms = if broker.config().long_polling_enable {
        pull.header.suspend_ms.max(0)
    } else {
        broker.config().short_polling_time_mills as i64
    };
    let wait = Wait {
        offset: pull.header.offset,
        deadline: now.saturating_add(suspend_ms),
        connection: reply.connection().id(),
    };
    let parked = ParkedPull { pull: pull.to_owned(), filter: admitted.filter, reply };
    let (topic, queue) = (pull.topic, pull.header.queue_id);
    match broker.long_polls.park(topic, queue, wait, parked) {
        Ok(ticket) => {
            // A message may have come between the read and the parking; then nobody else wakes this pull.
            if broker.store.max_offset(topic, queue) > wait.offset
                && let Some(parked) = broker.long_polls.take(topic, queue, ticket)
            {
                resume(broker, parked);
            }
        }
        // No room to wait in: answered at once, the client asks again.
        Err(parked) => resume(broker, parked),
    }
}

/// `status` goes into the remark.
fn answer(
    broker: &Broker,
    admitted: &Admitted,
    pull: &Pull<'_>,
    status: &'static str,
    result: GetResult,
    reply: Reply,
) {
    let response_code = response_code(result.status, pull.header.offset);
    let slave_may_serve = broker.config().slave_read_enable;
    let fields = PullFields {
        suggest_broker: match (slave_may_serve, result.suggest_slave) {
            (true, true) => admitted.group.which_broker_when_consume_slowly,
            (true, false) => admitted.group.broker_id,
            (false, _) => 0,
        },
        next_offset: result.next_offset,
        min_offset: result.min_offset,
        max_offset: result.max_offset,
        topic_sys_flag: admitted.topic.topic_sys_flag,
        group_sys_flag: admitted.group.group_sys_flag,
    };
    if response_code == code::SUCCESS {
        let (messages, bytes) = (result.count as u64, result.bytes as u64);
        broker.stats.got(messages, bytes);
        broker.stats.group_got(pull.group, pull.topic, messages, bytes);
    } else {
        broker.stats.missed();
    }
    if response_code == code::PULL_OFFSET_MOVED {
        tracing::warn!(
            group = pull.group,
            topic = pull.topic,
            queue = pull.header.queue_id,
            asked = pull.header.offset,
            next = result.next_offset,
            status,
            "a pull asked for an offset that is not there"
        );
    }
    broker.offsets.pulled(pull.group, pull.topic, pull.header.queue_id, result.next_offset);
    reply.send_parts(response_code, Some(status), &fields, result.messages);
}

fn refuse(broker: &Broker, reply: Reply, refused: Refused) {
    broker.stats.missed();
    let Refusal { code, remark } = refused.refusal;
    reply.send_parts(code, Some(&remark), &ForbiddenField(refused.forbidden), ());
}
