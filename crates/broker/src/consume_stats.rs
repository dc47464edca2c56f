//! How far groups are behind, and who consumes what: 208, 300, 303, 315, 317, 321, 343, 345.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use protocol::body::{
    BrokerStatsData, BrokerStatsItem, ConsumeQueueData, ConsumeStats, ConsumeStatsList, GroupList, MessageQueue,
    OffsetWrapper, QueryConsumeQueueResponseBody, QueryConsumeTimeSpanBody, QuerySubscriptionResponseBody,
    QueueTimeSpan, TopicList,
};
use protocol::headers::{
    GetConsumeStatsInBroker, GetConsumeStatsRequest, QueryConsumeQueueRequest, QueryConsumeTimeSpanRequest,
    QuerySubscriptionByConsumerRequest, QueryTopicConsumeByWhoRequest, QueryTopicsByConsumerRequest,
    ViewBrokerStatsDataRequest,
};
use protocol::{Command, json, response_code};

use crate::broker::Broker;
use crate::context::{Answer, Context, Refusal, body};
use crate::stats::{Kind, Span};
use crate::topic_requests::no_topic;

/// Most queue entries one QUERY_CONSUME_QUEUE shows.
const QUEUE_ENTRIES_MAX: usize = 10_000;

/// GET_CONSUME_STATS: where the group and the queues stand, for one topic, a list, or all it ever committed.
pub fn consume_stats(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: GetConsumeStatsRequest = request.header()?;
    let group = &header.consumer_group;
    let mut stats = ConsumeStats::default();
    for topic in topics_to_show(broker, &header) {
        let Some(config) = broker.topics.get(&topic) else { continue };
        add_topic(broker, group, &topic, config.read_queue_nums, &mut stats);
    }
    body(json::to_legacy(&stats))
}

fn topics_to_show(broker: &Broker, header: &GetConsumeStatsRequest) -> BTreeSet<String> {
    let list = header.topic_list.as_deref().unwrap_or_default();
    let listed: BTreeSet<String> = list.split(';').filter(|topic| !topic.is_empty()).map(str::to_owned).collect();
    if !listed.is_empty() {
        return listed;
    }
    let group = &header.consumer_group;
    let mut topics = match header.topic.as_deref().filter(|topic| !topic.trim().is_empty()) {
        Some(topic) => BTreeSet::from([topic.to_owned()]),
        None => broker.offsets.topics_of(group),
    };
    topics.retain(|topic| subscribed_or_offline(broker, group, topic));
    topics
}

/// A topic an online group no longer subscribes to is not shown.
fn subscribed_or_offline(broker: &Broker, group: &str, topic: &str) -> bool {
    broker.clients.subscription_count(group) == 0 || broker.clients.subscription(group, topic).is_some()
}

fn add_topic(broker: &Broker, group: &str, topic: &str, queues: i32, stats: &mut ConsumeStats) {
    for queue_id in 0..queues {
        let consumer_offset = broker.offsets.query(group, topic, queue_id).unwrap_or(-1).max(0);
        let pull_offset = broker.offsets.query_pulled(group, topic, queue_id).unwrap_or(-1);
        let seen =
            if consumer_offset > 0 { broker.store.store_time_at(topic, queue_id, consumer_offset - 1) } else { 0 };
        let wrapper = OffsetWrapper {
            broker_offset: broker.store.max_offset(topic, queue_id).max(0),
            consumer_offset,
            pull_offset: pull_offset.max(consumer_offset),
            last_timestamp: seen.max(0),
        };
        let queue = MessageQueue { topic: topic.to_owned(), broker_name: broker.name(), queue_id };
        stats.offset_table.insert(queue, wrapper);
    }
    stats.consume_tps += broker.stats.group_get_tps(group, topic);
}

/// GET_BROKER_CONSUME_STATS: the same for every group of the broker.
pub fn all_consume_stats(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: GetConsumeStatsInBroker = request.header()?;
    let mut list = ConsumeStatsList { broker_addr: Some(broker.address()), ..Default::default() };
    for group in broker.groups.names() {
        let mut of_group = Vec::new();
        for topic in broker.offsets.topics_of(&group) {
            let Some(config) = broker.topics.get(&topic) else { continue };
            if (header.is_order && !config.order) || !subscribed_or_offline(broker, &group, &topic) {
                continue;
            }
            let mut stats = ConsumeStats::default();
            add_topic(broker, &group, &topic, config.write_queue_nums, &mut stats);
            for offsets in stats.offset_table.values() {
                list.total_diff += offsets.broker_offset - offsets.consumer_offset;
                list.total_inflight_diff += offsets.pull_offset - offsets.consumer_offset;
            }
            of_group.push(stats);
        }
        list.consume_stats_list.push(BTreeMap::from([(group, of_group)]));
    }
    body(json::to_legacy(&list))
}

/// QUERY_TOPIC_CONSUME_BY_WHO.
pub fn groups_of_topic(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: QueryTopicConsumeByWhoRequest = request.header()?;
    let mut groups = broker.offsets.groups_of(&header.topic);
    groups.extend(broker.clients.read(|tables| tables.groups_of_topic(&header.topic)));
    body(json::to_legacy(&GroupList { group_list: groups.into_iter().collect() }))
}

/// QUERY_TOPICS_BY_CONSUMER.
pub fn topics_of_group(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: QueryTopicsByConsumerRequest = request.header()?;
    let topic_list = broker.offsets.topics_of(&header.group).into_iter().collect();
    body(json::to_legacy(&TopicList { topic_list, broker_addr: Some(broker.address()) }))
}

/// QUERY_SUBSCRIPTION_BY_CONSUMER.
pub fn subscription_of_group(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: QuerySubscriptionByConsumerRequest = request.header()?;
    let topic = header.topic.unwrap_or_default();
    let subscription_data = broker.clients.subscription(&header.group, &topic).map(|found| (*found).clone());
    body(json::to_legacy(&QuerySubscriptionResponseBody { subscription_data, group: header.group, topic }))
}

/// QUERY_CONSUME_TIME_SPAN: store times at the ends of each queue and where the group stands.
pub fn consume_time_span(broker: &Arc<Broker>, context: &Context<'_>, request: &Command) -> Answer {
    let header: QueryConsumeTimeSpanRequest = request.header()?;
    let (topic, group) = (&header.topic, &header.group);
    let config = broker.topics.get(topic).ok_or_else(|| no_topic(topic))?;
    let span_of = |queue_id: i32| {
        let min_time_stamp = broker.store.earliest_time(topic, queue_id);
        let max = broker.store.max_offset(topic, queue_id);
        let consumed = broker.offsets.query(group, topic, queue_id).unwrap_or(-1);
        let consume_time_stamp =
            if consumed > 0 { broker.store.store_time_at(topic, queue_id, consumed - 1) } else { min_time_stamp };
        let delay_time =
            if consumed < max { context.now - broker.store.store_time_at(topic, queue_id, consumed) } else { 0 };
        QueueTimeSpan {
            message_queue: Some(MessageQueue { topic: topic.clone(), broker_name: broker.name(), queue_id }),
            min_time_stamp,
            max_time_stamp: broker.store.store_time_at(topic, queue_id, max - 1),
            consume_time_stamp,
            delay_time,
            ..Default::default()
        }
    };
    let consume_time_span_set = (0..config.write_queue_nums).map(span_of).collect();
    body(json::to_legacy(&QueryConsumeTimeSpanBody { consume_time_span_set }))
}

/// VIEW_BROKER_STATS_DATA.
pub fn stats_data(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: ViewBrokerStatsDataRequest = request.header()?;
    let (name, key) = (&header.stats_name, &header.stats_key);
    let spans = Kind::from_name(name).and_then(|kind| broker.stats.series(kind, key));
    let [minute, hour, day] = spans.ok_or_else(|| Refusal::system(format!("The stats <{name}> <{key}> not exist")))?;
    let item = |span: Span| BrokerStatsItem { sum: span.sum as i64, tps: span.tps, avgpt: span.average };
    let data =
        BrokerStatsData { stats_minute: Some(item(minute)), stats_hour: Some(item(hour)), stats_day: Some(item(day)) };
    body(json::to_legacy(&data))
}

/// QUERY_CONSUME_QUEUE: the entries of one queue.
pub fn consume_queue(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: QueryConsumeQueueRequest = request.header()?;
    let topic = header.topic.as_deref().unwrap_or_default();
    let queue = header.queue_id;
    if !broker.store.queue_ids(topic).contains(&queue) {
        return Err(Refusal::system(format!("{queue}@{topic} is not exist!")));
    }
    let mut found = QueryConsumeQueueResponseBody {
        max_queue_index: broker.store.max_offset(topic, queue),
        min_queue_index: broker.store.min_offset(topic, queue),
        ..Default::default()
    };
    if let Some(group) = &header.consumer_group {
        found.subscription_data = broker.clients.subscription(group, topic).map(|one| (*one).clone());
        found.filter_data = Some(match found.subscription_data {
            Some(_) => "null".to_owned(),
            None => format!("{group}@{topic} is not online!"),
        });
    }
    let count = usize::try_from(header.count).unwrap_or(0).min(QUEUE_ENTRIES_MAX);
    let units = broker.store.units(topic, queue, header.index, count);
    if units.is_empty() {
        let remark = format!("Index {} of {queue}@{topic} is not exist!", header.index);
        return Ok(Command::response(response_code::SUCCESS).with_remark(remark));
    }
    let entries = units
        .into_iter()
        .map(|unit| ConsumeQueueData {
            physic_offset: unit.physical_offset as i64,
            physic_size: unit.size as i32,
            tags_code: unit.tags_code,
            ..Default::default()
        })
        .collect();
    found.queue_data = Some(entries);
    body(json::to_legacy(&found))
}
