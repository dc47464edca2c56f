//! Sending.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use protocol::body::MessageQueue;
use protocol::headers::{SendMessageRequestV2, SendMessageResponse};
use protocol::record::{BatchItem, encode_batch_item};
use protocol::{Command, SerializeType, request_code, response_code};
use remoting::CallError;

use crate::clock::now_ms;
use crate::error::refused;
use crate::{ClientError, Cluster, Message, Queue, Route};

/// The topic whose queues stand in for a topic that is to be created by its first message.
const DEFAULT_TOPIC: &str = "TBW102";
const DEFAULT_TOPIC_QUEUES: i32 = 4;

/// How sure it is that a message survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendStatus {
    Ok,
    FlushDiskTimeout,
    FlushSlaveTimeout,
    SlaveNotAvailable,
}

/// Where a message went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendResult {
    pub status: SendStatus,
    /// The client-made id (`UNIQ_KEY`); of a batch, all of them joined by commas.
    pub message_id: String,
    /// The broker's id, made of its address and the place in its log.
    pub offset_id: String,
    pub queue: MessageQueue,
    pub queue_offset: i64,
}

/// Sends messages. Cheap to clone. All calls take `&self` and may be under way at the same time: many sends awaited
/// together share one connection per broker, and leave and are answered in groups.
#[derive(Debug, Clone)]
pub struct Producer {
    cluster: Cluster,
    group: Arc<str>,
    next: Arc<AtomicUsize>,
    /// For one attempt.
    pub timeout: Duration,
    /// How often a failed send is tried on another broker, or another queue when there is only one.
    pub retries: usize,
    pub serialize: SerializeType,
}

impl Producer {
    pub fn new(cluster: Cluster, group: &str) -> Self {
        Self {
            cluster,
            group: group.into(),
            next: Arc::new(AtomicUsize::new(fastrand::usize(..1024))),
            timeout: Duration::from_secs(3),
            retries: 2,
            serialize: SerializeType::Json,
        }
    }

    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Sends to the next queue, and to others when that fails.
    pub async fn send(&self, message: &Message) -> Result<SendResult, ClientError> {
        let (properties, id) = message.property_string();
        let outgoing = Outgoing { topic: &message.topic, body: &message.body, flag: message.flag, properties, id };
        self.send_somewhere(&outgoing, false).await
    }

    /// Sends to one queue, once.
    pub async fn send_to(&self, queue: &MessageQueue, message: &Message) -> Result<SendResult, ClientError> {
        let (properties, id) = message.property_string();
        let outgoing = Outgoing { topic: &message.topic, body: &message.body, flag: message.flag, properties, id };
        let addr = self.cluster.address_of(queue).await?;
        self.send_once(&Queue { queue: queue.clone(), addr }, &outgoing, false).await
    }

    /// Sends messages of one topic as one, to one queue; all are stored or none.
    pub async fn send_batch(&self, messages: &[Message]) -> Result<SendResult, ClientError> {
        let Some(first) = messages.first() else {
            return Err(ClientError::BadMessage("an empty batch".to_owned()));
        };
        let mut body = BytesMut::new();
        let mut ids = Vec::with_capacity(messages.len());
        for message in messages {
            if message.topic != first.topic {
                return Err(ClientError::BadMessage("a batch of several topics".to_owned()));
            }
            let (properties, id) = message.property_string();
            let item = BatchItem { flag: message.flag, body: &message.body, properties: properties.as_bytes() };
            encode_batch_item(&mut body, &item).map_err(|error| ClientError::BadMessage(error.to_string()))?;
            ids.push(id);
        }
        let body = body.freeze();
        let outgoing =
            Outgoing { topic: &first.topic, body: &body, flag: 0, properties: String::new(), id: ids.join(",") };
        self.send_somewhere(&outgoing, true).await
    }

    /// Sends to the next queue without waiting for an answer.
    pub async fn send_oneway(&self, message: &Message) -> Result<(), ClientError> {
        let (properties, id) = message.property_string();
        let outgoing = Outgoing { topic: &message.topic, body: &message.body, flag: message.flag, properties, id };
        let route = self.route(&message.topic).await?;
        let queue = self.pick(&route, &message.topic, None)?;
        let request = self.request(&queue, &outgoing, false);
        Ok(self.cluster.client().oneway(&queue.addr, request).await?)
    }

    async fn send_somewhere(&self, outgoing: &Outgoing<'_>, batch: bool) -> Result<SendResult, ClientError> {
        let mut failed_at: Option<Queue> = None;
        let mut attempt = 0;
        loop {
            let route = self.route(outgoing.topic).await?;
            let queue = self.pick(&route, outgoing.topic, failed_at.as_ref())?;
            let error = match self.send_once(&queue, outgoing, batch).await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            if attempt == self.retries || !worth_another_broker(&error) {
                return Err(error);
            }
            tracing::debug!(%error, addr = %queue.addr, "send failed, trying elsewhere");
            self.cluster.forget(outgoing.topic);
            failed_at = Some(queue);
            attempt += 1;
        }
    }

    /// The topic's own route, or the one it would be created by.
    async fn route(&self, topic: &str) -> Result<Arc<Route>, ClientError> {
        match self.cluster.route(topic).await {
            Err(ClientError::NoRoute(_)) => match self.cluster.fetch_route(DEFAULT_TOPIC).await {
                Ok(mut data) => {
                    for row in &mut data.queue_datas {
                        row.write_queue_nums = row.write_queue_nums.min(DEFAULT_TOPIC_QUEUES);
                    }
                    Ok(Arc::new(Route::new(topic, data)))
                }
                Err(_) => Err(ClientError::NoRoute(topic.to_owned())),
            },
            other => other,
        }
    }

    /// The next queue; after a failure one of another broker, if there is another.
    fn pick(&self, route: &Route, topic: &str, failed: Option<&Queue>) -> Result<Queue, ClientError> {
        let count = route.writable.len();
        if count == 0 {
            return Err(ClientError::NoQueue(topic.to_owned()));
        }
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        let candidates = (0..count).map(|step| &route.writable[start.wrapping_add(step) % count]);
        let elsewhere = candidates.clone().find(|queue| failed.is_none_or(|failed| failed.addr != queue.addr));
        let chosen = elsewhere.or_else(|| candidates.clone().next());
        chosen.cloned().ok_or_else(|| ClientError::NoQueue(topic.to_owned()))
    }

    async fn send_once(&self, queue: &Queue, outgoing: &Outgoing<'_>, batch: bool) -> Result<SendResult, ClientError> {
        let request = self.request(queue, outgoing, batch);
        let response = self.cluster.client().request(&queue.addr, request, self.timeout).await?;
        let status = match response.code {
            response_code::SUCCESS => SendStatus::Ok,
            response_code::FLUSH_DISK_TIMEOUT => SendStatus::FlushDiskTimeout,
            response_code::FLUSH_SLAVE_TIMEOUT => SendStatus::FlushSlaveTimeout,
            response_code::SLAVE_NOT_AVAILABLE => SendStatus::SlaveNotAvailable,
            _ => return Err(refused(&queue.addr, &response)),
        };
        let header: SendMessageResponse = response.header()?;
        Ok(SendResult {
            status,
            message_id: outgoing.id.clone(),
            offset_id: header.msg_id,
            queue: MessageQueue::new(outgoing.topic, &queue.queue.broker_name, header.queue_id),
            queue_offset: header.queue_offset,
        })
    }

    fn request(&self, queue: &Queue, outgoing: &Outgoing<'_>, batch: bool) -> Command {
        let header = SendMessageRequestV2 {
            producer_group: self.group.to_string(),
            topic: outgoing.topic.to_owned(),
            default_topic: DEFAULT_TOPIC.to_owned(),
            default_topic_queue_nums: DEFAULT_TOPIC_QUEUES,
            queue_id: queue.queue.queue_id,
            sys_flag: 0,
            born_timestamp: now_ms(),
            flag: outgoing.flag,
            properties: Some(outgoing.properties.clone()),
            reconsume_times: Some(0),
            unit_mode: false,
            max_reconsume_times: None,
            batch,
            broker_name: Some(queue.queue.broker_name.clone()),
        };
        let code = if batch { request_code::SEND_BATCH_MESSAGE } else { request_code::SEND_MESSAGE_V2 };
        let mut request = Command::request(code).with_header(&header).with_body(outgoing.body.clone());
        request.serialize = self.serialize;
        request
    }
}

/// A message ready to go.
struct Outgoing<'a> {
    topic: &'a str,
    body: &'a Bytes,
    flag: i32,
    properties: String,
    id: String,
}

/// Whether another broker may do better: it could not be reached, or answered one of the codes Java's client retries.
fn worth_another_broker(error: &ClientError) -> bool {
    match error {
        ClientError::Call(CallError::NoNameServer) => false,
        ClientError::Call(_) => true,
        ClientError::Refused { code, .. } => matches!(
            *code,
            response_code::SYSTEM_ERROR
                | response_code::SYSTEM_BUSY
                | response_code::SERVICE_NOT_AVAILABLE
                | response_code::NO_PERMISSION
                | response_code::TOPIC_NOT_EXIST
                | response_code::NO_BUYER_ID
                | response_code::NOT_IN_CURRENT_UNIT
        ),
        _ => false,
    }
}
