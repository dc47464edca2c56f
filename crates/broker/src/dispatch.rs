//! Every request code the broker serves: which lane it waits in and who answers it. Anything else is answered 3.

use std::sync::Arc;

use protocol::{Command, request_code as code};
use remoting::{CloseReason, Connection, Lane, LanePermit, Reply, Service};
use service::clock::now_ms;

use crate::batch::Batch;
use crate::broker::Broker;
use crate::context::{Answer, Context, into_command};
use crate::{
    client_requests, config_requests, consume_stats, group_requests, lock_requests, offset_requests, pull, query,
    relay, runtime_info, send, send_back, topic_requests,
};

/// Requests of one lane share a limit of how many may be under way; the others do not suffer when it is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneId {
    Send,
    Pull,
    Query,
    Client,
    Heartbeat,
    Consumer,
    Admin,
}

const LANE_COUNT: usize = 7;

/// Who answers.
#[derive(Clone, Copy)]
pub enum Handler {
    /// Answers at once and never waits for a disk, a lock held long or another server.
    Inline(fn(&Arc<Broker>, &Context<'_>, &Command) -> Answer),
    /// May wait: runs on a thread of its own.
    Blocking(fn(&Arc<Broker>, &Context<'_>, &Command) -> Answer),
    /// Answers through the reply, now, at the end of the batch, or much later.
    Deferred(fn(&Arc<Broker>, &Connection, &mut Batch, Command, Reply)),
}

/// One served request code.
pub struct Row {
    pub code: i32,
    pub lane: LaneId,
    pub handler: Handler,
}

const fn row(code: i32, lane: LaneId, handler: Handler) -> Row {
    Row { code, lane, handler }
}

use Handler::{Blocking, Deferred, Inline};
use LaneId::{Admin, Client, Consumer, Heartbeat, Pull, Query, Send as SendLane};

/// Sorted by code: it is searched by halves.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    row(code::SEND_MESSAGE, SendLane, Deferred(send::send)),
    row(code::PULL_MESSAGE, Pull, Deferred(pull::pull)),
    row(code::QUERY_MESSAGE, Query, Blocking(query::query_message)),
    row(code::QUERY_CONSUMER_OFFSET, Consumer, Inline(offset_requests::query_offset)),
    row(code::UPDATE_CONSUMER_OFFSET, Consumer, Inline(offset_requests::update_offset)),
    row(code::UPDATE_AND_CREATE_TOPIC, Admin, Blocking(topic_requests::update_topic)),
    row(code::UPDATE_AND_CREATE_TOPIC_LIST, Admin, Blocking(topic_requests::update_topic_list)),
    row(code::GET_ALL_TOPIC_CONFIG, Admin, Blocking(topic_requests::all_topics)),
    row(code::UPDATE_BROKER_CONFIG, Admin, Blocking(config_requests::update_config)),
    row(code::GET_BROKER_CONFIG, Admin, Inline(config_requests::get_config)),
    row(code::GET_BROKER_RUNTIME_INFO, Admin, Blocking(runtime_info::runtime_info)),
    row(code::SEARCH_OFFSET_BY_TIMESTAMP, Admin, Blocking(offset_requests::search_offset)),
    row(code::GET_MAX_OFFSET, Admin, Inline(offset_requests::max_offset)),
    row(code::GET_MIN_OFFSET, Admin, Inline(offset_requests::min_offset)),
    row(code::GET_EARLIEST_MSG_STORETIME, Admin, Blocking(offset_requests::earliest_time)),
    row(code::VIEW_MESSAGE_BY_ID, Query, Blocking(query::view_message)),
    row(code::HEART_BEAT, Heartbeat, Deferred(client_requests::heart_beat)),
    row(code::UNREGISTER_CLIENT, Client, Inline(client_requests::unregister_client)),
    row(code::CONSUMER_SEND_MSG_BACK, SendLane, Blocking(send_back::send_back)),
    row(code::GET_CONSUMER_LIST_BY_GROUP, Consumer, Inline(client_requests::consumer_list)),
    row(code::LOCK_BATCH_MQ, Admin, Inline(lock_requests::lock)),
    row(code::UNLOCK_BATCH_MQ, Admin, Inline(lock_requests::unlock)),
    row(code::GET_ALL_CONSUMER_OFFSET, Admin, Blocking(offset_requests::all_offsets)),
    row(code::GET_ALL_DELAY_OFFSET, Admin, Blocking(offset_requests::all_delay_offsets)),
    row(code::CHECK_CLIENT_CONFIG, Client, Inline(client_requests::check_client_config)),
    row(code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, Admin, Blocking(group_requests::update_group)),
    row(code::GET_ALL_SUBSCRIPTIONGROUP_CONFIG, Admin, Blocking(group_requests::all_groups)),
    row(code::GET_TOPIC_STATS_INFO, Admin, Blocking(topic_requests::topic_stats)),
    row(code::GET_CONSUMER_CONNECTION_LIST, Admin, Inline(client_requests::consumer_connections)),
    row(code::GET_PRODUCER_CONNECTION_LIST, Admin, Inline(client_requests::producer_connections)),
    row(code::DELETE_SUBSCRIPTIONGROUP, Admin, Blocking(group_requests::delete_group)),
    row(code::GET_CONSUME_STATS, Admin, Blocking(consume_stats::consume_stats)),
    row(code::DELETE_TOPIC_IN_BROKER, Admin, Blocking(topic_requests::delete_topic)),
    row(code::INVOKE_BROKER_TO_RESET_OFFSET, Admin, Blocking(offset_requests::reset_offset)),
    row(code::INVOKE_BROKER_TO_GET_CONSUMER_STATUS, Admin, Deferred(relay::consumer_status)),
    row(code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, Admin, Blocking(group_requests::update_group_list)),
    row(code::QUERY_TOPIC_CONSUME_BY_WHO, Admin, Inline(consume_stats::groups_of_topic)),
    row(code::QUERY_CONSUME_TIME_SPAN, Admin, Blocking(consume_stats::consume_time_span)),
    row(code::GET_SYSTEM_TOPIC_LIST_FROM_BROKER, Admin, Inline(topic_requests::system_topics)),
    row(code::CLEAN_EXPIRED_CONSUMEQUEUE, Admin, Blocking(topic_requests::clean_expired_queues)),
    row(code::GET_CONSUMER_RUNNING_INFO, Admin, Deferred(relay::running_info)),
    row(code::QUERY_CORRECTION_OFFSET, Admin, Blocking(offset_requests::correction_offset)),
    row(code::CONSUME_MESSAGE_DIRECTLY, Admin, Deferred(relay::consume_directly)),
    row(code::SEND_MESSAGE_V2, SendLane, Deferred(send::send)),
    row(code::CLONE_GROUP_OFFSET, Admin, Blocking(offset_requests::clone_offset)),
    row(code::VIEW_BROKER_STATS_DATA, Admin, Inline(consume_stats::stats_data)),
    row(code::CLEAN_UNUSED_TOPIC, Admin, Blocking(topic_requests::clean_unused_topics)),
    row(code::GET_BROKER_CONSUME_STATS, Admin, Blocking(consume_stats::all_consume_stats)),
    row(code::SEND_BATCH_MESSAGE, SendLane, Deferred(send::send)),
    row(code::QUERY_CONSUME_QUEUE, Admin, Blocking(consume_stats::consume_queue)),
    row(code::GET_ALL_PRODUCER_INFO, Admin, Inline(client_requests::all_producers)),
    row(code::DELETE_EXPIRED_COMMITLOG, Admin, Blocking(topic_requests::delete_expired)),
    row(code::QUERY_TOPICS_BY_CONSUMER, Admin, Inline(consume_stats::topics_of_group)),
    row(code::QUERY_SUBSCRIPTION_BY_CONSUMER, Admin, Inline(consume_stats::subscription_of_group)),
    row(code::GET_TOPIC_CONFIG, Admin, Inline(topic_requests::topic_config)),
    row(code::GET_SUBSCRIPTIONGROUP_CONFIG, Admin, Blocking(group_requests::group_config)),
    row(code::UPDATE_AND_GET_GROUP_FORBIDDEN, Admin, Blocking(group_requests::group_forbidden)),
    row(code::LITE_PULL_MESSAGE, Pull, Deferred(pull::pull)),
    row(code::GET_BROKER_HA_STATUS, Admin, Inline(runtime_info::ha_status)),
];

fn find(code: i32) -> Option<&'static Row> {
    TABLE.binary_search_by_key(&code, |row| row.code).ok().and_then(|at| TABLE.get(at))
}

/// How many requests of each lane may be under way. Java's queue capacities.
#[derive(Debug, Clone, Copy)]
pub struct LaneLimits {
    pub send: usize,
    pub pull: usize,
    pub query: usize,
    pub client: usize,
    pub heartbeat: usize,
    pub consumer: usize,
    pub admin: usize,
}

/// The lanes of one broker.
pub struct Lanes([Lane; LANE_COUNT]);

impl Lanes {
    pub fn new(limits: LaneLimits) -> Self {
        Self([
            Lane::new("send", limits.send),
            Lane::new("pull", limits.pull),
            Lane::new("query", limits.query),
            Lane::new("client", limits.client),
            Lane::new("heartbeat", limits.heartbeat),
            Lane::new("consumer", limits.consumer),
            Lane::new("admin", limits.admin),
        ])
    }

    pub fn lane(&self, id: LaneId) -> &Lane {
        &self.0[id as usize]
    }

    pub fn all(&self) -> &[Lane] {
        &self.0
    }

    pub fn try_enter(&self, id: LaneId) -> Option<LanePermit> {
        self.lane(id).try_enter()
    }
}

/// The broker as the remoting server sees it.
pub struct BrokerService(pub Arc<Broker>);

impl Service for BrokerService {
    type Batch = Batch;

    fn call(&self, conn: &Connection, batch: &mut Batch, request: Command, mut reply: Reply) {
        let broker = &self.0;
        let Some(row) = find(request.code) else {
            return reply.not_supported();
        };
        let Some(permit) = broker.lanes.try_enter(row.lane) else {
            return reply.overloaded();
        };
        reply.hold(permit);
        match row.handler {
            Inline(handler) => {
                let answer = handler(broker, &Context { conn, now: now_ms() }, &request);
                reply.send(into_command(answer));
            }
            Blocking(handler) => {
                let (broker, conn) = (broker.clone(), conn.clone());
                // Work for somebody who has gone is not begun: a crowd could leave minutes of it behind.
                let may_be_dropped = matches!(row.lane, Query | Admin) && !request.is_oneway();
                tokio::task::spawn_blocking(move || {
                    if may_be_dropped && !conn.is_open() {
                        return;
                    }
                    let answer = handler(&broker, &Context { conn: &conn, now: now_ms() }, &request);
                    reply.send(into_command(answer));
                });
            }
            Deferred(handler) => handler(broker, conn, batch, request, reply),
        }
    }

    fn end_batch(&self, conn: &Connection, batch: &mut Batch) {
        batch.end(&self.0, conn);
    }

    fn disconnected(&self, conn: &Connection, why: CloseReason) {
        let _ = why;
        self.0.connection_closed(conn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_has_no_code_twice() {
        assert!(TABLE.windows(2).all(|pair| pair[0].code < pair[1].code));
    }
}
