//! Messages to send and messages received.

use bytes::Bytes;
use protocol::body::MessageQueue;
use protocol::record::{RecordView, properties, property};

/// A message to be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    pub topic: String,
    pub body: Bytes,
    /// The application's own number.
    pub flag: i32,
    properties: Vec<(String, String)>,
}

impl Message {
    pub fn new(topic: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self { topic: topic.into(), body: body.into(), flag: 0, properties: Vec::new() }
    }

    pub fn with_tag(self, tag: &str) -> Self {
        self.with_property(property::TAGS, tag)
    }

    /// Keys to find the message by, separated by blanks.
    pub fn with_keys(self, keys: &str) -> Self {
        self.with_property(property::KEYS, keys)
    }

    /// 1 and above; see the broker's `messageDelayLevel`.
    pub fn with_delay_level(self, level: u32) -> Self {
        self.with_property(property::DELAY, &level.to_string())
    }

    pub fn with_property(mut self, key: &str, value: &str) -> Self {
        match self.properties.iter_mut().find(|(known, _)| known == key) {
            Some(slot) => value.clone_into(&mut slot.1),
            None => self.properties.push((key.to_owned(), value.to_owned())),
        }
        self
    }

    pub fn property(&self, key: &str) -> Option<&str> {
        self.properties.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// The property string, with a client-made id; returns both.
    pub(crate) fn property_string(&self) -> (String, String) {
        let key = self.property(property::UNIQ_KEY).map_or_else(crate::unique_key, str::to_owned);
        let own = [(property::UNIQ_KEY, key.as_str()), (property::WAIT, "true")];
        let given = self.properties.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let rest = own.into_iter().filter(|(key, _)| self.property(key).is_none());
        let bytes = properties::from_pairs(given.chain(rest));
        (String::from_utf8_lossy(&bytes).into_owned(), key)
    }
}

/// A message as a consumer gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedMessage {
    pub queue: MessageQueue,
    pub queue_offset: i64,
    pub physical_offset: i64,
    pub body: Bytes,
    pub flag: i32,
    pub sys_flag: i32,
    /// Milliseconds since the epoch.
    pub born_timestamp: i64,
    /// Milliseconds since the epoch.
    pub store_timestamp: i64,
    pub store_host: std::net::SocketAddr,
    pub reconsume_times: i32,
    properties: Bytes,
}

impl ReceivedMessage {
    /// Reads one record; `whole` holds the memory that `record` points into.
    pub(crate) fn new(whole: &Bytes, record: &RecordView<'_>, broker_name: &str) -> Self {
        Self {
            queue: MessageQueue::new(record.topic, broker_name, record.queue_id),
            queue_offset: record.queue_offset,
            physical_offset: record.physical_offset,
            body: whole.slice_ref(record.body),
            flag: record.flag,
            sys_flag: record.sys_flag,
            born_timestamp: record.born_timestamp,
            store_timestamp: record.store_timestamp,
            store_host: record.store_host,
            reconsume_times: record.reconsume_times,
            properties: whole.slice_ref(record.properties),
        }
    }

    pub fn property(&self, key: &str) -> Option<&str> {
        properties::get(&self.properties, key)
    }

    pub fn tag(&self) -> Option<&str> {
        self.property(property::TAGS)
    }

    /// The id the producer gave.
    pub fn unique_key(&self) -> Option<&str> {
        self.property(property::UNIQ_KEY)
    }

    /// The id made of the broker's address and the place in its log.
    pub fn offset_id(&self) -> String {
        protocol::record::MessageId::new(self.store_host, self.physical_offset).as_str().to_owned()
    }
}
