//! Offsets of consumers and of queues: 14, 15, 29, 30, 31, 32, 43, 222, 308, 314.

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol::body::{MessageQueue, QueryCorrectionOffsetBody, ResetOffsetBody};
use protocol::headers::{
    BoundaryType, CloneGroupOffsetRequest, GetEarliestMsgStoretimeRequest, GetEarliestMsgStoretimeResponse,
    GetMaxOffsetRequest, GetMaxOffsetResponse, GetMinOffsetRequest, GetMinOffsetResponse, QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse, QueryCorrectionOffset, ResetOffsetRequest, SearchOffsetRequest, SearchOffsetResponse,
    UpdateConsumerOffsetRequest,
};
use protocol::{Command, Header, json, response_code};
use store::Boundary;

use crate::broker::Broker;
use crate::context::{Answer, Context, Refusal, body, ok};

fn answer(header: &impl Header) -> Answer {
    Ok(Command::response(response_code::SUCCESS).with_header(header))
}

/// QUERY_CONSUMER_OFFSET. A group that never committed begins at 0 where all of the queue is still there and in memory. A
/// long queue is for the client to place itself in.
pub fn query_offset(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: QueryConsumerOffsetRequest = request.header()?;
    let (group, topic, queue) = (&header.consumer_group, &header.topic, header.queue_id);
    if let Some(offset) = broker.offsets.query(group, topic, queue) {
        return answer(&QueryConsumerOffsetResponse { offset });
    }
    if !header.set_zero_if_not_found {
        let remark = "Not found, do not set to zero, maybe this group boot first";
        return Err(Refusal::new(response_code::QUERY_NOT_FOUND, remark));
    }
    if broker.store.begins_in_memory(topic, queue) {
        return answer(&QueryConsumerOffsetResponse { offset: 0 });
    }
    let remark = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first";
    Err(Refusal::new(response_code::QUERY_NOT_FOUND, remark))
}

/// UPDATE_CONSUMER_OFFSET.
pub fn update_offset(broker: &Arc<Broker>, context: &Context<'_>, request: &Command) -> Answer {
    let header: UpdateConsumerOffsetRequest = request.header()?;
    let (group, topic, queue) = (&header.consumer_group, &header.topic, header.queue_id);
    if !broker.groups.contains(group) {
        return Err(Refusal::new(response_code::SUBSCRIPTION_GROUP_NOT_EXIST, format!("Group {group} not exist!")));
    }
    if !broker.topics.contains(topic) {
        return Err(Refusal::new(response_code::TOPIC_NOT_EXIST, format!("Topic {topic} not exist!")));
    }
    if broker.config().use_server_side_reset_offset && broker.offsets.has_reset(group, topic, queue) {
        // What the consumer commits now belongs to the time before the reset.
        return Ok(Command::response(response_code::SUCCESS).with_remark("Offset has been previously reset"));
    }
    broker.offsets.commit(group, topic, queue, header.commit_offset, context.now);
    ok()
}

/// SEARCH_OFFSET_BY_TIMESTAMP.
pub fn search_offset(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: SearchOffsetRequest = request.header()?;
    let boundary = match header.boundary_type {
        BoundaryType::Upper => Boundary::Upper,
        BoundaryType::Lower => Boundary::Lower,
    };
    let offset = broker.store.offset_by_time(&header.topic, header.queue_id, header.timestamp, boundary);
    answer(&SearchOffsetResponse { offset })
}

/// GET_MAX_OFFSET.
pub fn max_offset(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: GetMaxOffsetRequest = request.header()?;
    answer(&GetMaxOffsetResponse { offset: broker.store.max_offset(&header.topic, header.queue_id) })
}

/// GET_MIN_OFFSET.
pub fn min_offset(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: GetMinOffsetRequest = request.header()?;
    answer(&GetMinOffsetResponse { offset: broker.store.min_offset(&header.topic, header.queue_id) })
}

/// GET_EARLIEST_MSG_STORETIME.
pub fn earliest_time(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: GetEarliestMsgStoretimeRequest = request.header()?;
    let timestamp = broker.store.earliest_time(&header.topic, header.queue_id);
    answer(&GetEarliestMsgStoretimeResponse { timestamp })
}

/// GET_ALL_CONSUMER_OFFSET: what the file would hold.
pub fn all_offsets(broker: &Arc<Broker>, _: &Context<'_>, _: &Command) -> Answer {
    body(json::to_legacy(&broker.offsets.snapshot()))
}

/// GET_ALL_DELAY_OFFSET: what the file would hold.
pub fn all_delay_offsets(broker: &Arc<Broker>, _: &Context<'_>, _: &Command) -> Answer {
    body(json::to_legacy(&broker.delay.snapshot()))
}

/// CLONE_GROUP_OFFSET: `dest` goes on where `src` is, for one topic or all.
pub fn clone_offset(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: CloneGroupOffsetRequest = request.header()?;
    let topics: Vec<String> = match header.topic.filter(|topic| !topic.trim().is_empty()) {
        Some(topic) => vec![topic],
        None => broker.offsets.topics_of(&header.src_group).into_iter().collect(),
    };
    for topic in topics {
        if !broker.topics.contains(&topic) {
            continue;
        }
        let model = broker.clients.group_model(&header.src_group);
        let subscribed = broker.clients.subscription(&header.src_group, &topic).is_some();
        if model.is_some() && broker.clients.subscription_count(&header.src_group) > 0 && !subscribed && !header.offline
        {
            continue;
        }
        broker.offsets.copy(&header.src_group, &header.dest_group, &topic);
    }
    ok()
}

/// QUERY_CORRECTION_OFFSET: the smallest offset of all other groups, where the compared group is behind it.
pub fn correction_offset(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: QueryCorrectionOffset = request.header()?;
    let filtered: Vec<&str> = header.filter_groups.as_deref().unwrap_or_default().split(',').collect();
    let mut smallest: BTreeMap<i32, i64> = BTreeMap::new();
    for group in broker.offsets.groups_of(&header.topic) {
        if filtered.contains(&group.as_str()) {
            continue;
        }
        for (queue, offset) in broker.offsets.queues(&group, &header.topic).unwrap_or_default() {
            if offset >= broker.store.min_offset(&header.topic, queue) {
                smallest.entry(queue).and_modify(|known| *known = offset.min(*known)).or_insert(offset);
            }
        }
    }
    let compared = broker.offsets.queues(&header.compare_group, &header.topic).unwrap_or_default();
    for (queue, offset) in &mut smallest {
        // Java's sign for "the compared group has got further": the largest number there is.
        if compared.get(queue).is_some_and(|other| *other > *offset) {
            *offset = i64::MAX;
        }
    }
    body(json::to_legacy(&QueryCorrectionOffsetBody { correction_offsets: smallest }))
}

/// INVOKE_BROKER_TO_RESET_OFFSET: sets where a group goes on, by time or by offset, whether it is online or not.
pub fn reset_offset(broker: &Arc<Broker>, context: &Context<'_>, request: &Command) -> Answer {
    let header: ResetOffsetRequest = request.header()?;
    tracing::info!(
        topic = header.topic,
        group = header.group,
        timestamp = header.timestamp,
        by = %context.conn.remote_addr(),
        "reset offset"
    );
    if !broker.config().use_server_side_reset_offset {
        return crate::relay::reset_on_clients(broker, &header, request.language);
    }
    let (topic, group) = (&header.topic, &header.group);
    let config = broker
        .topics
        .get(topic)
        .ok_or_else(|| Refusal::new(response_code::TOPIC_NOT_EXIST, format!("Topic {topic} does not exist")))?;
    if !broker.groups.contains(group) {
        let remark = format!("Group {group} does not exist");
        return Err(Refusal::new(response_code::SUBSCRIPTION_GROUP_NOT_EXIST, remark));
    }
    let targets = targets(broker, &header, config.read_queue_nums)?;
    if targets.is_empty() {
        return Err(Refusal::system("No queues to reset."));
    }
    let mut result = ResetOffsetBody::default();
    for (queue_id, offset) in targets {
        broker.offsets.reset(group, topic, queue_id, offset, context.now);
        let queue = MessageQueue { topic: topic.clone(), broker_name: broker.name(), queue_id };
        result.offset_table.insert(queue, offset);
    }
    body(json::to_legacy(&result))
}

fn targets(broker: &Broker, header: &ResetOffsetRequest, read_queues: i32) -> Result<Vec<(i32, i64)>, Refusal> {
    let topic = &header.topic;
    if header.queue_id < 0 {
        return Ok((0..read_queues).map(|queue| (queue, offset_at(broker, topic, queue, header.timestamp))).collect());
    }
    let queue = header.queue_id;
    let Some(offset) = header.offset.filter(|offset| *offset != -1) else {
        return Ok(vec![(queue, offset_at(broker, topic, queue, header.timestamp))]);
    };
    let (min, max) = (broker.store.min_offset(topic, queue), broker.store.max_offset(topic, queue));
    if (min >= 0 && offset < min) || offset > max + 1 {
        return Err(Refusal::system(format!("Target offset {offset} not in consume queue range [{min}-{max}]")));
    }
    Ok(vec![(queue, offset)])
}

/// The offset at a time; a negative time means the end.
pub(crate) fn offset_at(broker: &Broker, topic: &str, queue: i32, timestamp: i64) -> i64 {
    if timestamp < 0 {
        broker.store.max_offset(topic, queue)
    } else {
        broker.store.offset_by_time(topic, queue, timestamp, Boundary::Lower)
    }
}
