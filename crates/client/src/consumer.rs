//! Pulling.

use std::sync::Arc;
use std::time::Duration;

use protocol::body::MessageQueue;
use protocol::headers::{BoundaryType, ConsumerSendMsgBackRequest};
use protocol::headers::{
    GetMaxOffsetRequest, GetMaxOffsetResponse, GetMinOffsetRequest, GetMinOffsetResponse, PullMessageRequest,
    PullMessageResponse, QueryConsumerOffsetRequest, QueryConsumerOffsetResponse, SearchOffsetRequest,
    SearchOffsetResponse, UpdateConsumerOffsetRequest, pull_sys_flag,
};
use protocol::record::{Scan, scan};
use protocol::{Command, Header, request_code, response_code};

use crate::error::refused;
use crate::{ClientError, Cluster, ReceivedMessage};

/// What a pull asks for.
#[derive(Debug, Clone)]
pub struct PullOptions {
    pub max_messages: i32,
    /// How long the broker may hold the request when there is nothing; zero to be answered at once.
    pub suspend: Duration,
    /// A tag expression: `*` or `A || B`. The broker compares hashes only, so the consumer compares again.
    pub subscription: String,
}

impl Default for PullOptions {
    fn default() -> Self {
        Self { max_messages: 32, suspend: Duration::ZERO, subscription: "*".to_owned() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullStatus {
    Found,
    /// Nothing new, or not within the time the broker held the request.
    NotFound,
    /// There were messages, but none that matched; go on at the next offset.
    NoMatch,
    /// The offset is outside of the queue; the next offset is inside.
    OffsetMoved,
}

/// What a pull brought.
#[derive(Debug, Clone)]
pub struct Pulled {
    pub status: PullStatus,
    pub messages: Vec<ReceivedMessage>,
    pub next_offset: i64,
    pub min_offset: i64,
    pub max_offset: i64,
}

/// Reads queues at offsets that the caller keeps. Cheap to clone; all calls may be under way at the same time.
#[derive(Debug, Clone)]
pub struct PullConsumer {
    cluster: Cluster,
    group: Arc<str>,
    /// For one call; pulls that wait get their waiting time on top.
    pub timeout: Duration,
}

impl PullConsumer {
    pub fn new(cluster: Cluster, group: &str) -> Self {
        Self { cluster, group: group.into(), timeout: Duration::from_secs(10) }
    }

    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub fn group(&self) -> &str {
        &self.group
    }

    /// All readable queues of a topic.
    pub async fn queues(&self, topic: &str) -> Result<Vec<MessageQueue>, ClientError> {
        let route = self.cluster.route(topic).await?;
        Ok(route.readable.iter().map(|queue| queue.queue.clone()).collect())
    }

    pub async fn pull(&self, queue: &MessageQueue, offset: i64, options: &PullOptions) -> Result<Pulled, ClientError> {
        let suspend = if options.suspend.is_zero() { 0 } else { pull_sys_flag::SUSPEND };
        let header = PullMessageRequest {
            consumer_group: self.group.to_string(),
            topic: queue.topic.clone(),
            queue_id: queue.queue_id,
            queue_offset: offset,
            max_msg_nums: options.max_messages,
            sys_flag: pull_sys_flag::SUBSCRIPTION | suspend,
            commit_offset: 0,
            suspend_timeout_millis: options.suspend.as_millis() as i64,
            subscription: Some(options.subscription.clone()),
            sub_version: 0,
            expression_type: Some("TAG".to_owned()),
            max_msg_bytes: None,
            request_source: None,
            proxy_forward_client_id: None,
        };
        let request = Command::request(request_code::PULL_MESSAGE).with_header(&header);
        let addr = self.cluster.address_of(queue).await?;
        let response = self.cluster.client().request(&addr, request, self.timeout + options.suspend).await?;
        let status = match response.code {
            response_code::SUCCESS => PullStatus::Found,
            response_code::PULL_NOT_FOUND => PullStatus::NotFound,
            response_code::PULL_RETRY_IMMEDIATELY => PullStatus::NoMatch,
            response_code::PULL_OFFSET_MOVED => PullStatus::OffsetMoved,
            _ => return Err(refused(&addr, &response)),
        };
        let header: PullMessageResponse = response.header()?;
        Ok(Pulled {
            status,
            messages: messages(&response, &queue.broker_name)?,
            next_offset: header.next_begin_offset,
            min_offset: header.min_offset,
            max_offset: header.max_offset,
        })
    }

    /// The offset the next message will get.
    pub async fn max_offset(&self, queue: &MessageQueue) -> Result<i64, ClientError> {
        let header = GetMaxOffsetRequest { topic: queue.topic.clone(), queue_id: queue.queue_id, committed: true };
        let response = self.ask(queue, request_code::GET_MAX_OFFSET, &header).await?;
        Ok(response.header::<GetMaxOffsetResponse>()?.offset)
    }

    /// The offset of the oldest message still there.
    pub async fn min_offset(&self, queue: &MessageQueue) -> Result<i64, ClientError> {
        let header = GetMinOffsetRequest { topic: queue.topic.clone(), queue_id: queue.queue_id };
        let response = self.ask(queue, request_code::GET_MIN_OFFSET, &header).await?;
        Ok(response.header::<GetMinOffsetResponse>()?.offset)
    }

    /// The offset of the first message stored at or after `timestamp`, in milliseconds since the epoch.
    pub async fn search_offset(&self, queue: &MessageQueue, timestamp: i64) -> Result<i64, ClientError> {
        let header = SearchOffsetRequest {
            topic: queue.topic.clone(),
            queue_id: queue.queue_id,
            timestamp,
            boundary_type: BoundaryType::Lower,
        };
        let response = self.ask(queue, request_code::SEARCH_OFFSET_BY_TIMESTAMP, &header).await?;
        Ok(response.header::<SearchOffsetResponse>()?.offset)
    }

    /// The group's committed offset; `None` when it has none.
    pub async fn committed(&self, queue: &MessageQueue) -> Result<Option<i64>, ClientError> {
        let header = QueryConsumerOffsetRequest {
            consumer_group: self.group.to_string(),
            topic: queue.topic.clone(),
            queue_id: queue.queue_id,
            set_zero_if_not_found: false,
        };
        match self.ask(queue, request_code::QUERY_CONSUMER_OFFSET, &header).await {
            Ok(response) => Ok(Some(response.header::<QueryConsumerOffsetResponse>()?.offset)),
            Err(error) if error.code() == Some(response_code::QUERY_NOT_FOUND) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub async fn commit(&self, queue: &MessageQueue, offset: i64) -> Result<(), ClientError> {
        let header = UpdateConsumerOffsetRequest {
            consumer_group: self.group.to_string(),
            topic: queue.topic.clone(),
            queue_id: queue.queue_id,
            commit_offset: offset,
        };
        self.ask(queue, request_code::UPDATE_CONSUMER_OFFSET, &header).await.map(drop)
    }

    /// Gives a message back to be consumed later; `delay_level` 0 leaves the delay to the broker.
    pub async fn send_back(&self, message: &ReceivedMessage, delay_level: i32) -> Result<(), ClientError> {
        let header = ConsumerSendMsgBackRequest {
            offset: message.physical_offset,
            group: self.group.to_string(),
            delay_level,
            origin_msg_id: message.unique_key().map(str::to_owned),
            origin_topic: Some(message.queue.topic.clone()),
            unit_mode: false,
            max_reconsume_times: None,
        };
        self.ask(&message.queue, request_code::CONSUMER_SEND_MSG_BACK, &header).await.map(drop)
    }

    async fn ask(&self, queue: &MessageQueue, code: i32, header: &impl Header) -> Result<Command, ClientError> {
        let addr = self.cluster.address_of(queue).await?;
        self.cluster.ask(&addr, Command::request(code).with_header(header), self.timeout).await
    }
}

/// Takes the records of an answer apart, checking each body's sum.
pub(crate) fn messages(response: &Command, broker_name: &str) -> Result<Vec<ReceivedMessage>, ClientError> {
    let mut list = Vec::new();
    let mut rest = &response.body[..];
    while !rest.is_empty() {
        match scan(rest, true) {
            Scan::Record(record) => {
                list.push(ReceivedMessage::new(&response.body, &record, broker_name));
                rest = rest.get(record.size()..).unwrap_or_default();
            }
            Scan::Blank(_) => return Err(ClientError::BadAnswer("a blank record".to_owned())),
            Scan::Bad(bad) => return Err(ClientError::BadAnswer(bad.to_string())),
        }
    }
    Ok(list)
}
