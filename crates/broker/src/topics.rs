//! The topics of this broker and their file `config/topics.json`.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use protocol::body::{DataVersion, TopicConfig, TopicConfigSerializeWrapper};

use crate::attributes;
use crate::built_in_topics::{TopicRules, light_topic, system_topics};
use crate::config_file::{ConfigFile, ConfigFileError};
use crate::names::{self, PERM_INHERIT};

struct State {
    topics: HashMap<String, Arc<TopicConfig>>,
    version: DataVersion,
    /// Counts every change, for the file.
    generation: u64,
}

/// Why a topic was not made or changed.
#[derive(Debug, thiserror::Error)]
pub enum TopicError {
    /// The words for the asker.
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    File(#[from] ConfigFileError),
    #[error("the queues of an earlier topic of this name cannot be removed: {0}")]
    Queues(#[from] io::Error),
}

/// Called after every change, with no lock held and the names of the topics that were made or changed: the store and the name
/// servers must hear of it. An error is the store's.
pub type OnChange = Box<dyn Fn(&[&str]) -> io::Result<()> + Send + Sync>;

/// The topics of this broker.
pub struct TopicTable {
    state: RwLock<State>,
    file: ConfigFile,
    system: Vec<String>,
    light: bool,
    on_change: std::sync::OnceLock<OnChange>,
    encoded: Mutex<Option<EncodedList>>,
}

struct EncodedList {
    generation: u64,
    body: Bytes,
    topics: usize,
}

impl TopicTable {
    /// Reads `topics.json` in `config_dir` over the topics every broker has.
    pub fn load(config_dir: &Path, rules: &TopicRules, now: i64) -> Result<Self, ConfigFileError> {
        let file = ConfigFile::new(config_dir.join("topics.json"));
        let built_in = system_topics(rules);
        let mut system: Vec<String> = built_in.iter().map(|topic| topic.topic_name.clone()).collect();
        system.extend(names::well_known_system_topics().map(str::to_owned));
        system.sort();
        system.dedup();
        let mut topics: HashMap<String, Arc<TopicConfig>> =
            built_in.into_iter().map(|topic| (topic.topic_name.clone(), Arc::new(topic))).collect();
        let mut version = DataVersion { timestamp: now, ..Default::default() };
        if let Some(kept) = file.load::<TopicConfigSerializeWrapper>()? {
            version = kept.data_version;
            topics.extend(kept.topic_config_table.into_iter().map(|(name, topic)| (name, Arc::new(topic))));
        }
        let state = RwLock::new(State { topics, version, generation: 0 });
        Ok(Self {
            state,
            file,
            system,
            light: rules.light,
            on_change: std::sync::OnceLock::new(),
            encoded: Mutex::default(),
        })
    }

    /// Sets whom to call after a change; the first one set stays.
    pub fn on_change(&self, call: OnChange) {
        let _ = self.on_change.set(call);
    }

    pub fn get(&self, topic: &str) -> Option<Arc<TopicConfig>> {
        let known = self.state.read().topics.get(topic).cloned();
        known.or_else(|| self.is_light(topic).then(|| Arc::new(light_topic(topic))))
    }

    fn is_light(&self, topic: &str) -> bool {
        self.light && topic.starts_with(names::LIGHT_PREFIX)
    }

    pub fn contains(&self, topic: &str) -> bool {
        self.state.read().topics.contains_key(topic) || self.is_light(topic)
    }

    pub fn len(&self) -> usize {
        self.state.read().topics.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn version(&self) -> DataVersion {
        self.state.read().version
    }

    /// Everything, with the version it belongs to.
    pub fn snapshot(&self) -> (DataVersion, BTreeMap<String, Arc<TopicConfig>>) {
        let state = self.state.read();
        (state.version, state.topics.iter().map(|(name, topic)| (name.clone(), topic.clone())).collect())
    }

    /// The list of all topics as `encode` writes it, encoded once per change: long lists asked for by many take the
    /// memory of one. With the number of topics.
    pub fn encoded(
        &self,
        encode: impl FnOnce(DataVersion, BTreeMap<String, Arc<TopicConfig>>) -> Vec<u8>,
    ) -> (Bytes, usize) {
        let mut encoded = self.encoded.lock();
        let generation = self.state.read().generation;
        if let Some(list) = encoded.as_ref().filter(|list| list.generation == generation) {
            return (list.body.clone(), list.topics);
        }
        let (version, topics) = self.snapshot();
        let count = topics.len();
        let body = Bytes::from(encode(version, topics));
        // A change in between makes this list newer than its number says: it is encoded once more than needed.
        *encoded = Some(EncodedList { generation, body: body.clone(), topics: count });
        (body, count)
    }

    /// Topics the broker made for itself and those every RocketMQ knows.
    pub fn is_system(&self, topic: &str) -> bool {
        names::is_well_known_system_topic(topic) || self.system.iter().any(|system| system == topic)
    }

    pub fn system_topics(&self) -> &[String] {
        &self.system
    }

    pub fn is_ordered(&self, topic: &str) -> bool {
        self.get(topic).is_some_and(|topic| topic.order)
    }

    /// Makes the topic of a send from the template the producer names, usually TBW102. `None` when the template does
    /// not exist or may not be inherited from.
    pub fn create_for_send(
        &self,
        topic: &str,
        template: &str,
        requested_queues: i32,
        sys_flag: i32,
        now: i64,
    ) -> Result<Option<Arc<TopicConfig>>, TopicError> {
        self.create_absent(topic, now, |topics| {
            let template_topic = topics.get(template)?;
            if template_topic.perm & PERM_INHERIT == 0 {
                return None;
            }
            let queues = requested_queues.min(template_topic.write_queue_nums).max(0);
            Some(TopicConfig {
                topic_name: topic.to_owned(),
                read_queue_nums: queues,
                write_queue_nums: queues,
                perm: template_topic.perm & !PERM_INHERIT,
                topic_filter_type: template_topic.topic_filter_type.clone(),
                topic_sys_flag: sys_flag,
                ..Default::default()
            })
        })
    }

    /// Makes a retry or dead-letter topic. An existing one only follows `order`.
    pub fn create_for_send_back(
        &self,
        topic: &str,
        queues: i32,
        perm: i32,
        order: bool,
        sys_flag: i32,
        now: i64,
    ) -> Result<Option<Arc<TopicConfig>>, TopicError> {
        if let Some(known) = self.get(topic) {
            if known.order == order {
                return Ok(Some(known));
            }
            let changed = TopicConfig { order, ..(*known).clone() };
            return self.replace(changed, now).map(Some);
        }
        self.create_absent(topic, now, |_| {
            Some(TopicConfig {
                topic_name: topic.to_owned(),
                read_queue_nums: queues,
                write_queue_nums: queues,
                perm,
                topic_sys_flag: sys_flag,
                order,
                ..Default::default()
            })
        })
    }

    /// Creates or changes a topic as an operator asks: `wanted.attributes` holds signed changes.
    pub fn update(&self, wanted: TopicConfig, now: i64) -> Result<(), TopicError> {
        self.update_all(vec![wanted], now)
    }

    /// The same for several topics with one write of the file. The first one that is refused ends it; those before it
    /// stay.
    pub fn update_all(&self, list: Vec<TopicConfig>, now: i64) -> Result<(), TopicError> {
        let alone = list.len() == 1;
        let mut changed = Vec::with_capacity(list.len());
        let mut generation = None;
        let mut refused = None;
        for wanted in list {
            match self.altered(wanted) {
                Ok(topic) => {
                    if alone {
                        tracing::info!(topic = topic.topic_name, config = ?topic, "topic set");
                    }
                    changed.push(topic.topic_name.clone());
                    generation = Some(self.set(Arc::new(topic), now));
                }
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        if let Some(generation) = generation {
            if !alone {
                tracing::info!(count = changed.len(), "topics set");
            }
            self.changed(generation, &changed.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
        refused.map_or(Ok(()), Err)
    }

    /// `wanted` with its changes of attributes applied to those there are.
    fn altered(&self, mut wanted: TopicConfig) -> Result<TopicConfig, TopicError> {
        let current = self.get(&wanted.topic_name);
        if wanted.attributes.contains_key("+reserve.time") {
            return Err(TopicError::Refused("Update topic reserveTime not supported".to_owned()));
        }
        let before = current.as_ref().map(|topic| topic.attributes.clone()).unwrap_or_default();
        wanted.attributes = attributes::alter(current.is_none(), attributes::TOPIC, &before, &wanted.attributes)
            .map_err(TopicError::Refused)?;
        Ok(wanted)
    }

    /// Forgets a topic; false when there was none.
    pub fn delete(&self, topic: &str, now: i64) -> Result<bool, TopicError> {
        let generation = {
            let mut state = self.state.write();
            if state.topics.remove(topic).is_none() {
                return Ok(false);
            }
            state.touch(now)
        };
        tracing::info!(topic, "topic deleted");
        self.changed(generation, &[])?;
        Ok(true)
    }

    /// The name servers' order configuration names these topics.
    pub fn mark_ordered<'a>(&self, topics: impl Iterator<Item = &'a str>, now: i64) -> Result<(), TopicError> {
        let generation = {
            let mut state = self.state.write();
            let mut any = false;
            for name in topics {
                if let Some(topic) = state.topics.get_mut(name)
                    && !topic.order
                {
                    Arc::make_mut(topic).order = true;
                    any = true;
                }
            }
            if !any {
                return Ok(());
            }
            state.touch(now)
        };
        Ok(self.write(generation)?)
    }

    /// Moves the version without a change of content: the broker's own permission changed, which is part of what is
    /// registered.
    pub fn touch(&self, now: i64) -> Result<(), TopicError> {
        let generation = self.state.write().touch(now);
        self.changed(generation, &[])
    }

    fn create_absent(
        &self,
        topic: &str,
        now: i64,
        make: impl FnOnce(&HashMap<String, Arc<TopicConfig>>) -> Option<TopicConfig>,
    ) -> Result<Option<Arc<TopicConfig>>, TopicError> {
        let (made, generation) = {
            let mut state = self.state.write();
            if let Some(known) = state.topics.get(topic) {
                return Ok(Some(known.clone()));
            }
            let Some(made) = make(&state.topics) else { return Ok(None) };
            let made = Arc::new(made);
            state.topics.insert(topic.to_owned(), made.clone());
            (made, state.touch(now))
        };
        tracing::info!(topic, queues = made.write_queue_nums, perm = made.perm, "topic created");
        self.changed(generation, &[topic])?;
        Ok(Some(made))
    }

    fn replace(&self, topic: TopicConfig, now: i64) -> Result<Arc<TopicConfig>, TopicError> {
        let topic = Arc::new(topic);
        tracing::info!(topic = topic.topic_name, config = ?topic, "topic set");
        let generation = self.set(topic.clone(), now);
        self.changed(generation, &[&topic.topic_name])?;
        Ok(topic)
    }

    fn set(&self, topic: Arc<TopicConfig>, now: i64) -> u64 {
        let mut state = self.state.write();
        state.topics.insert(topic.topic_name.clone(), topic);
        state.touch(now)
    }

    /// A change is in the file before anybody is told of it, and before the request that made it is answered.
    fn changed(&self, generation: u64, topics: &[&str]) -> Result<(), TopicError> {
        self.write(generation)?;
        match self.on_change.get() {
            Some(call) => Ok(call(topics)?),
            None => Ok(()),
        }
    }

    fn write(&self, generation: u64) -> Result<(), ConfigFileError> {
        self.file.write(generation, || {
            let state = self.state.read();
            let topics = state.topics.iter().map(|(name, topic)| (name.clone(), (**topic).clone())).collect();
            let file = TopicConfigSerializeWrapper { data_version: state.version, topic_config_table: topics };
            (state.generation, protocol::json::to_pretty(&file))
        })
    }

    /// Writes the file if it is behind the table.
    pub fn flush(&self) -> Result<(), ConfigFileError> {
        let generation = self.state.read().generation;
        self.write(generation)
    }
}

impl State {
    fn touch(&mut self, now: i64) -> u64 {
        self.version.next(0, now);
        self.generation += 1;
        self.generation
    }
}

impl store::TopicKinds for TopicTable {
    fn knows(&self, topic: &str) -> bool {
        self.contains(topic)
    }

    fn queue_type(&self, topic: &str) -> store::QueueType {
        match self.get(topic) {
            Some(topic) if topic.has_batch_queues() => store::QueueType::Batch,
            _ => store::QueueType::Simple,
        }
    }

    fn is_compaction(&self, topic: &str) -> bool {
        self.get(topic).is_some_and(|topic| topic.is_compacted())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn rules() -> TopicRules {
        TopicRules {
            cluster: "DefaultCluster".into(),
            broker_name: "broker-a".into(),
            auto_create: true,
            default_queues: 8,
            cluster_topic: true,
            broker_topic: true,
            trace_topic: None,
            revive_queues: 8,
            timer_wheel: true,
            light: false,
        }
    }

    #[test]
    fn the_first_start_has_javas_system_topics() {
        let dir = tempfile::tempdir().unwrap();
        let topics = TopicTable::load(dir.path(), &rules(), 1).unwrap();
        for (name, queues, perm) in [
            ("BenchmarkTest", 1024, 6),
            ("TBW102", 8, 7),
            ("DefaultCluster", 16, 7),
            ("broker-a", 1, 7),
            ("SCHEDULE_TOPIC_XXXX", 18, 6),
            ("DefaultCluster_REPLY_TOPIC", 1, 6),
            ("rmq_sys_REVIVE_LOG_DefaultCluster", 8, 6),
            ("rmq_sys_SYNC_BROKER_MEMBER_broker-a", 1, 1),
        ] {
            let topic = topics.get(name).unwrap_or_else(|| panic!("{name} is missing"));
            assert_eq!((topic.read_queue_nums, topic.write_queue_nums, topic.perm), (queues, queues, perm), "{name}");
            assert!(topics.is_system(name));
        }
        assert!(!dir.path().join("topics.json").exists(), "nothing changed, nothing is written");
    }

    #[test]
    fn whoever_makes_or_changes_a_topic_the_store_hears_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let topics = TopicTable::load(dir.path(), &rules(), 1).unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let told = heard.clone();
        topics.on_change(Box::new(move |names| {
            told.lock().extend(names.iter().map(|name| (*name).to_owned()));
            Ok(())
        }));
        let named = |name: &str| TopicConfig { topic_name: name.to_owned(), ..Default::default() };
        topics.create_for_send("S", "TBW102", 4, 2, 5).unwrap();
        topics.create_for_send_back("%RETRY%g", 1, 6, false, 0, 5).unwrap();
        topics.create_for_send_back("%RETRY%g", 1, 6, false, 0, 5).unwrap();
        topics.create_for_send_back("%RETRY%g", 1, 6, true, 0, 5).unwrap();
        topics.update_all(vec![named("A"), named("B")], 5).unwrap();
        topics.delete("A", 5).unwrap();
        assert_eq!(*heard.lock(), ["S", "%RETRY%g", "%RETRY%g", "A", "B"]);
    }

    #[test]
    fn a_send_makes_its_topic_from_the_template() {
        let dir = tempfile::tempdir().unwrap();
        let topics = TopicTable::load(dir.path(), &rules(), 1).unwrap();
        let calls = Arc::new(AtomicUsize::new(0));
        let count = calls.clone();
        topics.on_change(Box::new(move |names| {
            count.fetch_add(names.len(), Ordering::SeqCst);
            Ok(())
        }));
        let made = topics.create_for_send("T", "TBW102", 4, 2, 5).unwrap().unwrap();
        assert_eq!((made.read_queue_nums, made.write_queue_nums, made.perm, made.topic_sys_flag), (4, 4, 6, 2));
        let many = topics.create_for_send("U", "TBW102", 100, 0, 6).unwrap().unwrap();
        assert_eq!(many.write_queue_nums, 8, "no more than the template has");
        assert!(topics.create_for_send("V", "T", 4, 0, 7).unwrap().is_none(), "T may not be inherited from");
        assert!(topics.create_for_send("V", "nothing", 4, 0, 7).unwrap().is_none());
        assert_eq!(topics.create_for_send("T", "TBW102", 1, 0, 8).unwrap().unwrap().write_queue_nums, 4);
        assert_eq!(calls.load(Ordering::SeqCst), 2);
        assert_eq!((topics.version().counter, topics.version().timestamp), (2, 6));
    }

    #[test]
    fn changes_survive_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let topics = TopicTable::load(dir.path(), &rules(), 1).unwrap();
        let attributes = BTreeMap::from([("+message.type".to_owned(), "FIFO".to_owned())]);
        let wanted =
            TopicConfig { topic_name: "T".into(), attributes: attributes.into_iter().collect(), ..Default::default() };
        topics.update(wanted, 2).unwrap();
        topics.create_for_send_back("%RETRY%g", 1, 6, false, 0, 3).unwrap();
        topics.create_for_send_back("%RETRY%g", 1, 6, true, 0, 4).unwrap();
        topics.create_for_send("gone", "TBW102", 4, 0, 5).unwrap();
        assert!(topics.delete("gone", 6).unwrap());
        let again = TopicTable::load(dir.path(), &rules(), 7).unwrap();
        assert_eq!(again.get("T").unwrap().attributes["message.type"], "FIFO");
        assert!(again.get("%RETRY%g").unwrap().order && again.get("gone").is_none());
        assert_eq!(again.version(), topics.version());
    }

    #[test]
    fn a_torn_file_falls_back_to_the_backup() {
        let dir = tempfile::tempdir().unwrap();
        let topics = TopicTable::load(dir.path(), &rules(), 1).unwrap();
        topics.create_for_send("A", "TBW102", 4, 0, 2).unwrap();
        topics.create_for_send("B", "TBW102", 4, 0, 3).unwrap();
        std::fs::write(dir.path().join("topics.json"), "{\"topicConf").unwrap();
        let again = TopicTable::load(dir.path(), &rules(), 4).unwrap();
        assert!(again.contains("A") && !again.contains("B"));
        std::fs::write(dir.path().join("topics.json"), "{\"topicConf").unwrap();
        std::fs::write(dir.path().join("topics.json.bak"), "{]").unwrap();
        assert!(TopicTable::load(dir.path(), &rules(), 4).is_err(), "both broken: the operator must look");
    }
}
