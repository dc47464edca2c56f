//! Lists of topics, and topics written or deleted one by one.

use protocol::headers::{DeleteTopicFromNamesrvRequest, GetTopicsByClusterRequest, RegisterTopicRequest};
use protocol::{Command, response_code};
use remoting::Connection;
use serde::Deserialize;

use super::Answer;
use super::json_in::from_slice;
use crate::route_table::{TopicEntry, UnitFilter};
use crate::shared::Shared;

fn disabled() -> Answer {
    Answer::refuse(response_code::SYSTEM_ERROR, "disable")
}

/// GET_ALL_TOPIC_LIST_FROM_NAMESERVER.
pub(super) fn all(shared: &Shared, connection: &Connection, _: &Command) -> Result<Answer, Answer> {
    let enabled = shared.settings.load().namesrv.enable_all_topic_list;
    tracing::debug!(peer = %connection.remote_addr(), enabled, "all topics asked for");
    if enabled { Ok(Answer::body(shared.all_topics())) } else { Err(disabled()) }
}

/// GET_TOPICS_BY_CLUSTER. An unknown cluster has no topics.
pub(super) fn of_cluster(shared: &Shared, _: &Connection, request: &Command) -> Result<Answer, Answer> {
    if !shared.settings.load().namesrv.enable_topic_list {
        return Err(disabled());
    }
    let header: GetTopicsByClusterRequest = request.header()?;
    Ok(Answer::body(shared.table.topics_of_cluster(&header.cluster)))
}

/// GET_SYSTEM_TOPIC_LIST_FROM_NS.
pub(super) fn system(shared: &Shared, _: &Connection, _: &Command) -> Result<Answer, Answer> {
    Ok(Answer::body(shared.table.system_topics()))
}

/// GET_UNIT_TOPIC_LIST.
pub(super) fn unit(shared: &Shared, _: &Connection, _: &Command) -> Result<Answer, Answer> {
    unit_list(shared, UnitFilter::Unit)
}

/// GET_HAS_UNIT_SUB_TOPIC_LIST.
pub(super) fn unit_sub(shared: &Shared, _: &Connection, _: &Command) -> Result<Answer, Answer> {
    unit_list(shared, UnitFilter::UnitSub)
}

/// GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST.
pub(super) fn unit_sub_only(shared: &Shared, _: &Connection, _: &Command) -> Result<Answer, Answer> {
    unit_list(shared, UnitFilter::UnitSubButNotUnit)
}

fn unit_list(shared: &Shared, filter: UnitFilter) -> Result<Answer, Answer> {
    if !shared.settings.load().namesrv.enable_topic_list {
        return Err(disabled());
    }
    Ok(Answer::body(shared.table.unit_topics(filter)))
}

/// DELETE_TOPIC_IN_NAMESRV.
pub(super) fn delete(shared: &Shared, connection: &Connection, request: &Command) -> Result<Answer, Answer> {
    let header: DeleteTopicFromNamesrvRequest = request.header()?;
    let cluster = header.cluster_name.as_deref().filter(|cluster| !cluster.is_empty());
    shared.table.delete_topic(&header.topic, cluster);
    tracing::info!(peer = %connection.remote_addr(), topic = header.topic, cluster, "topic deleted");
    Ok(Answer::success())
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RouteBody {
    queue_datas: Option<Vec<QueueData>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct QueueData {
    broker_name: String,
    read_queue_nums: i32,
    write_queue_nums: i32,
    perm: i32,
    topic_sys_flag: i32,
}

/// REGISTER_TOPIC_IN_NAMESRV: success whether it was taken or not.
pub(super) fn register(shared: &Shared, connection: &Connection, request: &Command) -> Result<Answer, Answer> {
    let header: RegisterTopicRequest = request.header()?;
    let rows = if request.body.is_empty() {
        Vec::new()
    } else {
        let body: RouteBody = from_slice(&request.body)
            .map_err(|error| Answer::refuse(response_code::SYSTEM_ERROR, format!("TopicRouteData: {error}")))?;
        body.queue_datas.unwrap_or_default()
    };
    let rows: Vec<(String, TopicEntry)> = rows.into_iter().map(|row| row.entry(&header.topic)).collect();
    if !rows.is_empty() && !shared.table.register_topic(&header.topic, &rows) {
        tracing::warn!(peer = %connection.remote_addr(), topic = header.topic, "topic refused: unknown broker");
    }
    Ok(Answer::success())
}

impl QueueData {
    fn entry(self, topic: &str) -> (String, TopicEntry) {
        let entry = TopicEntry {
            topic: topic.to_owned(),
            read_queues: self.read_queue_nums,
            write_queues: self.write_queue_nums,
            perm: self.perm,
            sys_flag: self.topic_sys_flag,
        };
        (self.broker_name, entry)
    }
}
