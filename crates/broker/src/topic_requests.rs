//! Topics as operators see them: 17, 18, 21, 202, 215, 305, 351.

use std::sync::Arc;
use std::time::Duration;

use protocol::body::{
    CreateTopicListRequestBody, DataVersion, MessageQueue, TopicConfig, TopicConfigAndMappingSerializeWrapper,
    TopicList, TopicOffset, TopicStatsTable,
};
use protocol::headers::{
    CreateTopicRequest, DeleteTopicRequest, GetAllTopicConfigResponse, GetTopicConfigRequest, GetTopicStatsInfoRequest,
};
use protocol::{Command, json, response_code};

use crate::attributes;
use crate::broker::Broker;
use crate::context::{Answer, Context, Refusal, body, ok};
use crate::names;
use crate::topics::TopicError;

/// Most queues of a topic. Java has no limit and runs out of memory when it is asked for the state of each.
const MOST_QUEUES: i32 = 65_536;

/// How long an operator's change waits for the name servers to know it, so that whoever was answered finds the route.
const REGISTER_WAIT: Duration = Duration::from_secs(3);

impl From<TopicError> for Refusal {
    fn from(error: TopicError) -> Self {
        Self::system(error.to_string())
    }
}

/// UPDATE_AND_CREATE_TOPIC.
pub fn update_topic(broker: &Arc<Broker>, context: &Context<'_>, request: &Command) -> Answer {
    let header: CreateTopicRequest = request.header()?;
    let wanted = TopicConfig {
        topic_name: header.topic,
        read_queue_nums: header.read_queue_nums,
        write_queue_nums: header.write_queue_nums,
        perm: header.perm,
        topic_filter_type: header.topic_filter_type,
        topic_sys_flag: header.topic_sys_flag,
        order: header.order,
        attributes: attributes::parse(header.attributes.as_deref().unwrap_or_default()).map_err(Refusal::system)?,
    };
    tracing::info!(topic = wanted.topic_name, by = %context.conn.remote_addr(), "update or create topic");
    check(broker, &wanted)?;
    set(broker, vec![wanted], context.now)?;
    broker.registration.wait(REGISTER_WAIT);
    ok()
}

/// UPDATE_AND_CREATE_TOPIC_LIST: all names are checked before the first topic is touched.
pub fn update_topic_list(broker: &Arc<Broker>, context: &Context<'_>, request: &Command) -> Answer {
    let list: CreateTopicListRequestBody =
        json::from_slice(&request.body).map_err(|e| Refusal::system(e.to_string()))?;
    for wanted in &list.topic_config_list {
        check(broker, wanted)?;
    }
    set(broker, list.topic_config_list, context.now)?;
    broker.registration.wait(REGISTER_WAIT);
    ok()
}

fn check(broker: &Broker, wanted: &TopicConfig) -> Result<(), Refusal> {
    let invalid = |remark: String| Refusal::new(response_code::INVALID_PARAMETER, remark);
    names::check_topic(&wanted.topic_name).map_err(invalid)?;
    refuse_system_topic(broker, &wanted.topic_name)?;
    for (what, queues) in [("readQueueNums", wanted.read_queue_nums), ("writeQueueNums", wanted.write_queue_nums)] {
        if !(0..=MOST_QUEUES).contains(&queues) {
            return Err(invalid(format!("{what} is {queues}, it must be between 0 and {MOST_QUEUES}.")));
        }
    }
    let mixed = wanted.attributes.get("+message.type").is_some_and(|kind| kind == "MIXED");
    if mixed && !broker.config().enable_mixed_message_type {
        return Err(invalid("MIXED message type is not supported.".to_owned()));
    }
    Ok(())
}

fn refuse_system_topic(broker: &Broker, topic: &str) -> Result<(), Refusal> {
    if broker.config().validate_system_topic_when_update_topic && broker.topics.is_system(topic) {
        let remark = format!("The topic[{topic}] is conflict with system topic.");
        return Err(Refusal::new(response_code::INVALID_PARAMETER, remark));
    }
    Ok(())
}

fn set(broker: &Broker, mut wanted: Vec<TopicConfig>, now: i64) -> Result<(), Refusal> {
    // Asking for what is there already changes nothing, not even the version.
    wanted.retain(|topic| broker.topics.get(&topic.topic_name).is_none_or(|known| *known != *topic));
    Ok(broker.topics.update_all(wanted, now)?)
}

/// DELETE_TOPIC_IN_BROKER: the topic, its queues, its offsets and its pop retry topics.
pub fn delete_topic(broker: &Arc<Broker>, context: &Context<'_>, request: &Command) -> Answer {
    let header: DeleteTopicRequest = request.header()?;
    let topic = header.topic;
    if topic.trim().is_empty() {
        return Err(Refusal::new(response_code::INVALID_PARAMETER, "The specified topic is blank."));
    }
    refuse_system_topic(broker, &topic)?;
    let mut victims = vec![topic.clone()];
    if broker.config().clear_retry_topic_when_delete_topic {
        for group in broker.offsets.groups_of(&topic) {
            for retry in
                [format!("{}{group}+{topic}", names::RETRY_PREFIX), format!("{}{group}_{topic}", names::RETRY_PREFIX)]
            {
                if broker.topics.contains(&retry) {
                    victims.push(retry);
                }
            }
        }
    }
    for victim in victims {
        broker.topics.delete(&victim, context.now)?;
        broker.offsets.forget_topic(&victim);
        broker.store.delete_topic(&victim).map_err(|error| Refusal::system(error.to_string()))?;
        broker.stats.forget_topic(&victim);
    }
    ok()
}

/// GET_ALL_TOPIC_CONFIG. Askers that ask for a slice take the whole as well.
pub fn all_topics(broker: &Arc<Broker>, _: &Context<'_>, _: &Command) -> Answer {
    let (body, count) = broker.topics.encoded(|data_version, topics| {
        json::to_legacy(&TopicConfigAndMappingSerializeWrapper {
            data_version,
            mapping_data_version: DataVersion { timestamp: broker.started_at, ..Default::default() },
            topic_config_table: topics.into_iter().map(|(name, topic)| (name, (*topic).clone())).collect(),
            ..Default::default()
        })
    });
    let header = GetAllTopicConfigResponse { total_topic_num: i32::try_from(count).unwrap_or(i32::MAX) };
    Ok(Command::response(response_code::SUCCESS).with_header(&header).with_body(body))
}

/// GET_TOPIC_CONFIG.
pub fn topic_config(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: GetTopicConfigRequest = request.header()?;
    match broker.topics.get(&header.topic) {
        Some(topic) => body(json::to_legacy(&*topic)),
        None => Err(Refusal::new(
            response_code::TOPIC_NOT_EXIST,
            format!("No topic in this broker. topic: {}", header.topic),
        )),
    }
}

/// GET_TOPIC_STATS_INFO: the ends of every queue.
pub fn topic_stats(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: GetTopicStatsInfoRequest = request.header()?;
    let topic = broker.topics.get(&header.topic).ok_or_else(|| no_topic(&header.topic))?;
    let queues = topic.write_queue_nums.max(topic.read_queue_nums);
    let mut table = TopicStatsTable { topic_put_tps: broker.stats.topic_put_tps(&header.topic), ..Default::default() };
    for queue_id in 0..queues {
        let max_offset = broker.store.max_offset(&header.topic, queue_id).max(0);
        let last_update_timestamp =
            if max_offset > 0 { broker.store.store_time_at(&header.topic, queue_id, max_offset - 1) } else { 0 };
        let min_offset = broker.store.min_offset(&header.topic, queue_id).max(0);
        let queue = MessageQueue { topic: header.topic.clone(), broker_name: broker.name(), queue_id };
        table.offset_table.insert(queue, TopicOffset { min_offset, max_offset, last_update_timestamp });
    }
    body(json::to_legacy(&table))
}

pub(crate) fn no_topic(topic: &str) -> Refusal {
    Refusal::new(response_code::TOPIC_NOT_EXIST, format!("topic[{topic}] not exist"))
}

/// GET_SYSTEM_TOPIC_LIST_FROM_BROKER.
pub fn system_topics(broker: &Arc<Broker>, _: &Context<'_>, _: &Command) -> Answer {
    let topic_list = broker.topics.system_topics().to_vec();
    body(json::to_legacy(&TopicList { topic_list, ..Default::default() }))
}

/// CLEAN_UNUSED_TOPIC: queues in the store without a topic.
pub fn clean_unused_topics(broker: &Arc<Broker>, _: &Context<'_>, _: &Command) -> Answer {
    let removed = broker.store.clean_unused_topics(&|topic| broker.topics.contains(topic));
    tracing::warn!(?removed, "unused topics cleaned");
    ok()
}

/// CLEAN_EXPIRED_CONSUMEQUEUE.
pub fn clean_expired_queues(broker: &Arc<Broker>, _: &Context<'_>, _: &Command) -> Answer {
    let removed = broker.store.clean_expired_queues(&|topic| topic == names::SCHEDULE_TOPIC);
    tracing::warn!(removed, "expired queues cleaned");
    ok()
}

/// DELETE_EXPIRED_COMMITLOG.
pub fn delete_expired(broker: &Arc<Broker>, _: &Context<'_>, _: &Command) -> Answer {
    let removed = broker.store.delete_expired_now();
    tracing::warn!(removed, "expired commit log files deleted");
    ok()
}
