//! Heartbeats, good-byes, and who is connected: 34, 35, 38, 46, 203, 204, 328.

use std::sync::Arc;

use protocol::body::{
    CheckClientRequestBody, ClientConnection, ConsumerConnection, ConsumerData, GetConsumerListByGroupResponseBody,
    HeartbeatData, ProducerConnection, ProducerInfo, ProducerTableInfo,
};
use protocol::headers::{
    GetConsumerConnectionListRequest, GetConsumerListByGroupRequest, GetProducerConnectionListRequest,
    NotifyConsumerIdsChangedRequest, UnregisterClientRequest,
};
use protocol::{Command, json, request_code, response_code};
use remoting::{Connection, Reply};
use service::clock::now_ms;

use crate::batch::Batch;
use crate::broker::Broker;
use crate::clients::{Changes, ClientChannel, GroupModel};
use crate::context::{Answer, Context, Refusal, body, ok};
use crate::names::{self, PERM_READ, PERM_WRITE};

const TOPIC_SYS_FLAG_UNIT_SUB: i32 = 2;

/// HEART_BEAT. What is known already is renewed at once; new groups and their retry topics reach the disk first, on
/// another thread.
pub fn heart_beat(broker: &Arc<Broker>, conn: &Connection, _: &mut Batch, request: Command, reply: Reply) {
    let data: HeartbeatData = match json::from_slice(&request.body) {
        Ok(data) => data,
        Err(error) => return reply.refuse(response_code::SYSTEM_ERROR, &format!("heartbeat is not readable: {error}")),
    };
    let client = ClientChannel {
        peer: conn.clone(),
        client_id: data.client_id.clone(),
        language: request.language,
        version: request.version,
        heard: now_ms(),
    };
    let all_known = data.consumer_data_set.iter().all(|consumer| {
        broker.groups.contains(&consumer.group_name)
            && broker.topics.contains(&names::retry_topic(&consumer.group_name))
    });
    if all_known {
        return reply.send(take_heartbeat(broker, &client, &data));
    }
    let broker = broker.clone();
    tokio::task::spawn_blocking(move || {
        let answer = take_heartbeat(&broker, &client, &data);
        if !client.peer.is_open() {
            // It left while its groups were being made; nobody else would take it out again.
            broker.connection_closed(&client.peer);
        }
        reply.send(answer);
    });
}

fn take_heartbeat(broker: &Arc<Broker>, client: &ClientChannel<Connection>, data: &HeartbeatData) -> Command {
    let mut subscriptions_changed = false;
    for consumer in &data.consumer_data_set {
        subscriptions_changed |= take_consumer(broker, client, data, consumer);
    }
    if !data.producer_data_set.is_empty() {
        broker.clients.change(|tables| {
            for producer in &data.producer_data_set {
                tables.register_producer(&producer.group_name, client);
            }
        });
    }
    // A client that sends fingerprints may leave its subscriptions out while this says nothing changed.
    let changed = data.heartbeat_fingerprint == 0 || subscriptions_changed;
    Command::response(response_code::SUCCESS)
        .with_field("IS_SUPPORT_HEART_BEAT_V2", "true")
        .with_field("IS_SUB_CHANGE", if changed { "true" } else { "false" })
}

/// Registers one consumer group of a heartbeat; true when the group's fingerprint is not the one known so far.
fn take_consumer(
    broker: &Arc<Broker>,
    client: &ClientChannel<Connection>,
    data: &HeartbeatData,
    consumer: &ConsumerData,
) -> bool {
    let now = client.heard;
    let Some(settings) = broker.groups.find(&consumer.group_name, broker.config().auto_create_subscription_group, now)
    else {
        return false;
    };
    let ordered = consumer.subscription_data_set.iter().any(|one| broker.topics.is_ordered(&one.topic));
    let sys_flag = if consumer.unit_mode { TOPIC_SYS_FLAG_UNIT_SUB } else { 0 };
    let retry = names::retry_topic(&consumer.group_name);
    let queues = settings.retry_queue_nums;
    if let Err(error) =
        broker.topics.create_for_send_back(&retry, queues, PERM_READ | PERM_WRITE, ordered, sys_flag, now)
    {
        tracing::error!(topic = retry, %error, "retry topic not made");
    }
    let subscribe = data.heartbeat_fingerprint == 0 || !data.is_without_sub;
    let notify = settings.notify_consumer_ids_changed_enable;
    let changes = broker.clients.change(|tables| tables.register_consumer(client, consumer, subscribe, notify));
    if changes.changed {
        tracing::info!(
            group = consumer.group_name,
            client = client.client_id,
            addr = %client.peer.remote_addr(),
            "consumer registered or its subscriptions changed"
        );
    }
    broker.apply(changes);
    broker.clients.fingerprint_changed(&consumer.group_name, data.heartbeat_fingerprint)
}

/// UNREGISTER_CLIENT.
pub fn unregister_client(broker: &Arc<Broker>, context: &Context<'_>, request: &Command) -> Answer {
    let header: UnregisterClientRequest = request.header()?;
    let peer = context.conn.id();
    if let Some(group) = header.producer_group {
        broker.clients.change(|tables| tables.unregister_producer(&group, peer));
    }
    if let Some(group) = header.consumer_group {
        let notify = broker.groups.get(&group).is_none_or(|settings| settings.notify_consumer_ids_changed_enable);
        let changes = broker.clients.change(|tables| tables.unregister_consumer(&group, peer, notify));
        tracing::info!(group, client = header.client_id, "consumer unregistered");
        broker.apply(changes);
    }
    ok()
}

/// CHECK_CLIENT_CONFIG: may the broker filter by this expression?
pub fn check_client_config(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    if request.body.is_empty() {
        return ok();
    }
    let asked: CheckClientRequestBody = json::from_slice(&request.body).map_err(|e| Refusal::system(e.to_string()))?;
    let Some(subscription) = asked.subscription_data else { return ok() };
    let kind = subscription.expression_type.as_str();
    if kind.is_empty() || kind == "TAG" {
        return ok();
    }
    if !broker.config().enable_property_filter {
        return Err(Refusal::system(format!("The broker does not support consumer to filter message by {kind}")));
    }
    Err(Refusal::new(response_code::SUBSCRIPTION_PARSE_FAILED, format!("expressions of type {kind} are not supported")))
}

/// GET_CONSUMER_LIST_BY_GROUP.
pub fn consumer_list(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: GetConsumerListByGroupRequest = request.header()?;
    let consumer_id_list: Vec<String> = broker.clients.read(|tables| {
        let group = tables.consumer_group(&header.consumer_group);
        group
            .map(|group| group.channels.values().map(|channel| channel.client_id.clone()).collect())
            .unwrap_or_default()
    });
    if consumer_id_list.is_empty() {
        return Err(Refusal::system(format!("no consumer for this group, {}", header.consumer_group)));
    }
    body(json::to_legacy(&GetConsumerListByGroupResponseBody { consumer_id_list }))
}

fn connection_of(channel: &ClientChannel<Connection>) -> ClientConnection {
    ClientConnection {
        client_id: channel.client_id.clone(),
        client_addr: channel.peer.remote_addr().to_string(),
        language: channel.language.name().to_owned(),
        version: channel.version,
    }
}

/// GET_CONSUMER_CONNECTION_LIST.
pub fn consumer_connections(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: GetConsumerConnectionListRequest = request.header()?;
    let found = broker.clients.read(|tables| {
        tables.consumer_group(&header.consumer_group).map(|group| ConsumerConnection {
            connection_set: group.channels.values().map(connection_of).collect(),
            subscription_table: group
                .subscriptions
                .iter()
                .map(|(topic, subscription)| (topic.clone(), (**subscription).clone()))
                .collect(),
            consume_type: group.consume_type,
            message_model: group.message_model,
            consume_from_where: group.consume_from_where,
        })
    });
    match found {
        Some(found) => body(json::to_legacy(&found)),
        None => Err(Refusal::new(
            response_code::CONSUMER_NOT_ONLINE,
            format!("the consumer group[{}] not online", header.consumer_group),
        )),
    }
}

/// GET_PRODUCER_CONNECTION_LIST.
pub fn producer_connections(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let header: GetProducerConnectionListRequest = request.header()?;
    let found = broker.clients.read(|tables| {
        let group = tables.producer_group(&header.producer_group);
        group.map(|group| ProducerConnection { connection_set: group.values().map(connection_of).collect() })
    });
    match found {
        Some(found) => body(json::to_legacy(&found)),
        None => Err(Refusal::system(format!("the producer group[{}] not exist", header.producer_group))),
    }
}

/// GET_ALL_PRODUCER_INFO.
pub fn all_producers(broker: &Arc<Broker>, _: &Context<'_>, _: &Command) -> Answer {
    let info = |channel: &ClientChannel<Connection>| ProducerInfo {
        client_id: channel.client_id.clone(),
        remote_ip: format!("/{}", channel.peer.remote_addr()),
        language: channel.language.name().to_owned(),
        version: channel.version,
        last_update_timestamp: channel.heard,
    };
    let data = broker.clients.read(|tables| {
        tables.producers().map(|(group, channels)| (group.clone(), channels.values().map(info).collect())).collect()
    });
    body(json::to_legacy(&ProducerTableInfo { data }))
}

impl Broker {
    /// Does what a change of membership asks for.
    pub(crate) fn apply(self: &Arc<Self>, changes: Changes<Connection>) {
        if self.config().notify_consumer_ids_changed_enable {
            for (peer, consumer_group) in changes.notify {
                let header = NotifyConsumerIdsChangedRequest { consumer_group };
                peer.send_oneway(Command::request(request_code::NOTIFY_CONSUMER_IDS_CHANGED).with_header(&header));
            }
        }
        for group in &changes.emptied {
            tracing::info!(group, "the group has no consumer left");
            self.clients.forget_fingerprint(group);
        }
        for peer in changes.close {
            tracing::warn!(addr = %peer.remote_addr(), "a client without heartbeats is disconnected");
            peer.close(remoting::CloseReason::Idle);
        }
    }

    /// A client went away, with or without a word.
    pub fn connection_closed(self: &Arc<Self>, conn: &Connection) {
        let changes = self.clients.change(|tables| tables.disconnected(conn.id()));
        self.apply(changes);
    }

    pub fn group_model(&self, group: &str) -> Option<GroupModel> {
        self.clients.group_model(group)
    }
}
