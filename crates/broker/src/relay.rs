//! What operators ask of a consumer through the broker: 220 and 221 to clients, 223, 307, 309.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use protocol::body::{GetConsumerStatusBody, MessageQueue, MessageQueueForC, ResetOffsetBody, ResetOffsetBodyForC};
use protocol::headers::{
    ConsumeMessageDirectlyResultRequest, GetConsumerRunningInfoRequest, GetConsumerStatusRequest, ResetOffsetRequest,
};
use protocol::record::decode_message_id;
use protocol::{Command, Language, json, request_code, response_code};
use remoting::{CallError, Connection, Reply};

use crate::batch::Batch;
use crate::broker::Broker;
use crate::clients::ClientChannel;
use crate::context::{Answer, Refusal, body};
use crate::offset_requests::offset_at;
use crate::topic_requests::no_topic;

/// How long a consumer may take to answer, as in Java.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
/// The first versions that understand what is relayed.
const VERSION_3_1_8: i32 = 52;
const VERSION_3_0_7: i32 = 28;

const LANGUAGE_CPP: Language = Language(1);

/// GET_CONSUMER_RUNNING_INFO.
pub fn running_info(broker: &Arc<Broker>, _: &Connection, _: &mut Batch, request: Command, reply: Reply) {
    match request.header::<GetConsumerRunningInfoRequest>() {
        Ok(header) => call_consumer(broker, &header.consumer_group, &header.client_id, request, reply),
        Err(error) => reply.refuse(response_code::SYSTEM_ERROR, &error.to_string()),
    }
}

/// CONSUME_MESSAGE_DIRECTLY: the stored record goes to the client, which consumes it at once and tells how it went.
pub fn consume_directly(broker: &Arc<Broker>, _: &Connection, _: &mut Batch, mut request: Command, reply: Reply) {
    let header: ConsumeMessageDirectlyResultRequest = match request.header() {
        Ok(header) => header,
        Err(error) => return reply.refuse(response_code::SYSTEM_ERROR, &error.to_string()),
    };
    request.fields.set("brokerName", broker.name());
    if let Some(topic) = header.topic.as_deref().and_then(|topic| broker.topics.get(topic)) {
        request.fields.set("topicSysFlag", topic.topic_sys_flag.to_string());
    }
    if let Some(group) = broker.groups.get(&header.consumer_group) {
        request.fields.set("groupSysFlag", group.group_sys_flag.to_string());
    }
    let id = header.msg_id.unwrap_or_default();
    let offset = decode_message_id(&id).and_then(|(_, offset)| u64::try_from(offset).ok());
    match offset.and_then(|offset| broker.store.record_at(offset)) {
        Some(record) => request.body = record,
        None => return reply.refuse(response_code::SYSTEM_ERROR, &format!("no message with the id {id}")),
    }
    let client_id = header.client_id.unwrap_or_default();
    call_consumer(broker, &header.consumer_group, &client_id, request, reply);
}

fn call_consumer(broker: &Arc<Broker>, group: &str, client_id: &str, request: Command, reply: Reply) {
    let Some(client) = broker.clients.find_client(group, client_id) else {
        let remark = format!("The Consumer <{group}> <{client_id}> not online");
        return reply.refuse(response_code::SYSTEM_ERROR, &remark);
    };
    if client.version < VERSION_3_1_8 {
        let remark = format!(
            "The Consumer <{client_id}> Version <{}> too low to finish, please upgrade it to V3_1_8_SNAPSHOT",
            client.version
        );
        return reply.refuse(response_code::SYSTEM_ERROR, &remark);
    }
    let mut relayed = Command::request(request.code).with_body(request.body);
    relayed.fields = request.fields;
    let (group, client_id) = (group.to_owned(), client_id.to_owned());
    tokio::spawn(async move {
        match client.peer.request(relayed, CALL_TIMEOUT).await {
            Ok(response) => reply.send(response),
            Err(error @ CallError::Timeout { .. }) => {
                let remark = format!("consumer <{group}> <{client_id}> Timeout: {error}");
                reply.refuse(response_code::CONSUME_MSG_TIMEOUT, &remark);
            }
            Err(error) => {
                let remark = format!("invoke consumer <{group}> <{client_id}> Exception: {error}");
                reply.refuse(response_code::SYSTEM_ERROR, &remark);
            }
        }
    });
}

/// INVOKE_BROKER_TO_GET_CONSUMER_STATUS: asks each client of a group, or one, how far it has got.
pub fn consumer_status(broker: &Arc<Broker>, _: &Connection, _: &mut Batch, request: Command, reply: Reply) {
    let header: GetConsumerStatusRequest = match request.header() {
        Ok(header) => header,
        Err(error) => return reply.refuse(response_code::SYSTEM_ERROR, &error.to_string()),
    };
    let mut channels = channels_of(broker, &header.group);
    if channels.is_empty() {
        let remark = format!("No Any Consumer online in the consumer group: [{}]", header.group);
        return reply.refuse(response_code::SYSTEM_ERROR, &remark);
    }
    if let Some(only) = header.client_addr.as_deref().filter(|only| !only.trim().is_empty()) {
        channels.retain(|channel| channel.client_id == only);
    }
    let ask = GetConsumerStatusRequest { client_addr: None, ..header };
    tokio::spawn(async move {
        let mut consumer_table = BTreeMap::new();
        for channel in channels {
            let ask = Command::request(request_code::GET_CONSUMER_STATUS_FROM_CLIENT).with_header(&ask);
            match channel.peer.request(ask, STATUS_TIMEOUT).await {
                Ok(response) if response.code == response_code::SUCCESS && !response.body.is_empty() => {
                    match json::from_slice::<GetConsumerStatusBody>(&response.body) {
                        Ok(status) => {
                            consumer_table.insert(channel.client_id, status.message_queue_table);
                        }
                        Err(error) => tracing::warn!(client = channel.client_id, %error, "unreadable consumer status"),
                    }
                }
                Ok(response) => tracing::warn!(client = channel.client_id, code = response.code, "no consumer status"),
                Err(error) => tracing::warn!(client = channel.client_id, %error, "no consumer status"),
            }
        }
        let status = GetConsumerStatusBody { consumer_table, ..Default::default() };
        reply.send(Command::response(response_code::SUCCESS).with_body(json::to_legacy(&status)));
    });
}

fn channels_of(broker: &Broker, group: &str) -> Vec<ClientChannel<Connection>> {
    broker.clients.read(|tables| {
        tables.consumer_group(group).map(|group| group.channels.values().cloned().collect()).unwrap_or_default()
    })
}

/// The old way to reset offsets: the online clients are told, and commit what they were told.
pub(crate) fn reset_on_clients(broker: &Arc<Broker>, header: &ResetOffsetRequest, asker: Language) -> Answer {
    let topic = broker.topics.get(&header.topic).ok_or_else(|| no_topic(&header.topic))?;
    let mut offset_table = BTreeMap::new();
    for queue_id in 0..topic.write_queue_nums {
        let Some(current) = broker.offsets.query(&header.group, &header.topic, queue_id) else {
            return Err(Refusal::system(format!("THe consumer group <{}> not exist", header.group)));
        };
        let wanted = offset_at(broker, &header.topic, queue_id, header.timestamp).max(0);
        let offset = if header.is_force || wanted < current { wanted } else { current };
        let queue = MessageQueue { topic: header.topic.clone(), broker_name: broker.name(), queue_id };
        offset_table.insert(queue, offset);
    }
    let channels = channels_of(broker, &header.group);
    if channels.is_empty() {
        let remark = format!(
            "Consumer not online, so can not reset offset, Group: {} Topic: {} Timestamp: {}",
            header.group, header.topic, header.timestamp
        );
        return Err(Refusal::new(response_code::CONSUMER_NOT_ONLINE, remark));
    }
    if let Some(old) = channels.iter().find(|channel| channel.version < VERSION_3_0_7) {
        return Err(Refusal::system(format!("the client does not support this feature. version={}", old.version)));
    }
    let result = ResetOffsetBody { offset_table };
    let text = if asker == LANGUAGE_CPP { for_cpp(&result) } else { json::to_legacy(&result) };
    let tell = ResetOffsetRequest { queue_id: -1, offset: None, is_force: false, ..header.clone() };
    for channel in channels {
        let request = Command::request(request_code::RESET_CONSUMER_CLIENT_OFFSET).with_header(&tell);
        channel.peer.send_oneway(request.with_body(text.clone()));
    }
    body(json::to_legacy(&result))
}

fn for_cpp(result: &ResetOffsetBody) -> Vec<u8> {
    let offset_table = result
        .offset_table
        .iter()
        .map(|(queue, offset)| MessageQueueForC {
            topic: queue.topic.clone(),
            broker_name: queue.broker_name.clone(),
            queue_id: queue.queue_id,
            offset: *offset,
        })
        .collect();
    json::to_legacy(&ResetOffsetBodyForC { offset_table })
}
