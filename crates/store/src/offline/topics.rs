//! The topics of a stopped store, from `config/topics.json` or its `.bak`.

use std::collections::BTreeMap;
use std::path::Path;

use protocol::body::{TopicConfig, TopicConfigSerializeWrapper};

use crate::{QueueType, TopicKinds};

/// What the store must know of topics, as the file says.
#[derive(Debug, Clone, Default)]
pub struct KnownTopics {
    /// `None` when there is no readable file: then any topic may exist.
    topics: Option<BTreeMap<String, TopicConfig>>,
}

impl KnownTopics {
    /// Reads the file under a store's root.
    pub fn read(root: &Path) -> Self {
        let read = |name: &str| {
            let text = std::fs::read(root.join("config").join(name)).ok()?;
            protocol::json::from_slice::<TopicConfigSerializeWrapper>(&text).ok()
        };
        let file = read("topics.json").or_else(|| read("topics.json.bak"));
        KnownTopics { topics: file.map(|file| file.topic_config_table) }
    }

    /// Whether the topic may have queues.
    pub(super) fn may_exist(&self, topic: &str) -> bool {
        self.topics.as_ref().is_none_or(|topics| topics.contains_key(topic))
    }

    fn get(&self, topic: &str) -> Option<&TopicConfig> {
        self.topics.as_ref()?.get(topic)
    }
}

impl TopicKinds for KnownTopics {
    fn knows(&self, topic: &str) -> bool {
        self.may_exist(topic)
    }

    fn queue_type(&self, topic: &str) -> QueueType {
        match self.get(topic) {
            Some(topic) if topic.has_batch_queues() => QueueType::Batch,
            _ => QueueType::Simple,
        }
    }

    fn is_compaction(&self, topic: &str) -> bool {
        self.get(topic).is_some_and(TopicConfig::is_compacted)
    }
}
