//! How far each group has consumed each queue, and the file `config/consumerOffset.json`, which with light message queues is
//! `lmqConsumerOffset.json`, as in Java.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use parking_lot::Mutex;
use protocol::body::DataVersion;
use serde::{Deserialize, Serialize};

use crate::config_file::{ConfigFile, ConfigFileError};
use crate::names;

/// Parts a topic from a group in the file's keys.
const SEPARATOR: char = '@';

/// The one queue of a light message queue.
const LIGHT_QUEUE: i32 = 0;

type Queues = BTreeMap<i32, i64>;
/// Topic, then group: looked up without building a key.
type Table = HashMap<String, HashMap<String, Queues>>;

/// The file's content. `groupTopicMap` says nothing new; Java writes it and so do we.
#[derive(Debug, Clone, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct OffsetFile {
    pub data_version: DataVersion,
    pub group_topic_map: BTreeMap<String, BTreeSet<String>>,
    pub offset_table: BTreeMap<String, Queues>,
    /// Offsets of groups of light message queues, which have one queue; only where there may be some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lmq_offset_table: Option<BTreeMap<String, i64>>,
}

#[derive(Default)]
struct State {
    committed: Table,
    /// Positions an operator set and the consumers have not taken up yet. Memory only.
    reset: Table,
    /// How far pulls have got. Memory only.
    pulled: Table,
    version: DataVersion,
    commits: u64,
    generation: u64,
}

/// Consumer offsets of every group.
pub struct ConsumerOffsets {
    state: Mutex<State>,
    file: ConfigFile,
    light: bool,
    /// The version moves once per so many commits.
    version_step: u64,
}

impl ConsumerOffsets {
    pub fn load(config_dir: &Path, version_step: u64, light: bool, now: i64) -> Result<Self, ConfigFileError> {
        let plain = ConfigFile::new(config_dir.join("consumerOffset.json"));
        let (file, kept) = if light {
            let file = ConfigFile::new(config_dir.join("lmqConsumerOffset.json"));
            let kept = file.load::<OffsetFile>()?;
            // Light queues have just been switched on: what was consumed before still counts.
            let kept = if kept.is_some() { kept } else { plain.load()? };
            (file, kept)
        } else {
            let kept = plain.load::<OffsetFile>()?;
            (plain, kept)
        };
        let mut state = State { version: DataVersion { timestamp: now, ..Default::default() }, ..Default::default() };
        if let Some(kept) = kept {
            state.version = kept.data_version;
            let light = kept.lmq_offset_table.unwrap_or_default().into_iter();
            let light = light.map(|(key, offset)| (key, Queues::from([(LIGHT_QUEUE, offset)])));
            for (key, queues) in kept.offset_table.into_iter().chain(light) {
                match key.split_once(SEPARATOR) {
                    Some((topic, group)) => {
                        let groups = state.committed.entry(topic.to_owned()).or_default();
                        groups.entry(group.to_owned()).or_default().extend(queues);
                    }
                    None => tracing::warn!(key, "an offset without a group is left out"),
                }
            }
        }
        Ok(Self { state: Mutex::new(state), file, light, version_step: version_step.max(1) })
    }

    /// Takes a commit, also one that goes back.
    pub fn commit(&self, group: &str, topic: &str, queue: i32, offset: i64, now: i64) {
        let mut state = self.state.lock();
        put(&mut state.committed, topic, group, queue, offset);
        state.commits += 1;
        state.generation += 1;
        if state.commits.is_multiple_of(self.version_step) {
            state.version.next(0, now);
        }
    }

    /// Remembers how far a pull has got, which `consumerProgress` shows as in flight.
    pub fn pulled(&self, group: &str, topic: &str, queue: i32, offset: i64) {
        put(&mut self.state.lock().pulled, topic, group, queue, offset);
    }

    /// The offset to go on from: an operator's reset if one is pending, else what was committed.
    pub fn query(&self, group: &str, topic: &str, queue: i32) -> Option<i64> {
        let state = self.state.lock();
        get(&state.reset, topic, group, queue).or_else(|| get(&state.committed, topic, group, queue))
    }

    /// How far pulls have got; the committed offset if there was none.
    pub fn query_pulled(&self, group: &str, topic: &str, queue: i32) -> Option<i64> {
        let pulled = get(&self.state.lock().pulled, topic, group, queue);
        pulled.or_else(|| self.query(group, topic, queue))
    }

    /// Sets where a group goes on, over whatever its consumers commit until they have taken it up.
    pub fn reset(&self, group: &str, topic: &str, queue: i32, offset: i64, now: i64) {
        put(&mut self.state.lock().reset, topic, group, queue, offset);
        self.commit(group, topic, queue, offset, now);
    }

    /// A reset waits to be taken up: commits do not count until then.
    pub fn has_reset(&self, group: &str, topic: &str, queue: i32) -> bool {
        get(&self.state.lock().reset, topic, group, queue).is_some()
    }

    /// The pending reset, which is gone with this: the next pull has taken it up.
    pub fn take_reset(&self, group: &str, topic: &str, queue: i32) -> Option<i64> {
        let mut state = self.state.lock();
        if state.reset.is_empty() {
            return None;
        }
        let groups = state.reset.get_mut(topic)?;
        let queues = groups.get_mut(group)?;
        let offset = queues.remove(&queue);
        if queues.is_empty() {
            groups.remove(group);
        }
        if groups.is_empty() {
            state.reset.remove(topic);
        }
        offset
    }

    /// All queues a group has committed of a topic.
    pub fn queues(&self, group: &str, topic: &str) -> Option<BTreeMap<i32, i64>> {
        self.state.lock().committed.get(topic)?.get(group).cloned()
    }

    pub fn topics_of(&self, group: &str) -> BTreeSet<String> {
        let state = self.state.lock();
        let topics = state.committed.iter().filter(|(_, groups)| groups.contains_key(group));
        topics.map(|(topic, _)| topic.clone()).collect()
    }

    pub fn groups_of(&self, topic: &str) -> BTreeSet<String> {
        self.state.lock().committed.get(topic).map(|groups| groups.keys().cloned().collect()).unwrap_or_default()
    }

    /// Gives `to` the offsets `from` has of a topic.
    pub fn copy(&self, from: &str, to: &str, topic: &str) {
        let mut state = self.state.lock();
        if let Some(groups) = state.committed.get_mut(topic)
            && let Some(queues) = groups.get(from).cloned()
        {
            groups.insert(to.to_owned(), queues);
            state.generation += 1;
        }
    }

    pub fn forget_group(&self, group: &str) {
        let mut state = self.state.lock();
        let State { committed, reset, pulled, .. } = &mut *state;
        for table in [committed, reset, pulled] {
            table.retain(|_, groups| {
                groups.remove(group);
                !groups.is_empty()
            });
        }
        state.generation += 1;
    }

    pub fn forget_topic(&self, topic: &str) {
        let mut state = self.state.lock();
        state.committed.remove(topic);
        state.reset.remove(topic);
        state.pulled.remove(topic);
        state.generation += 1;
    }

    /// What the file is to hold, and what GET_ALL_CONSUMER_OFFSET answers.
    pub fn snapshot(&self) -> OffsetFile {
        self.state.lock().snapshot(self.light)
    }

    /// Writes the file if any offset moved since the last time.
    pub fn flush(&self) -> Result<(), ConfigFileError> {
        let generation = self.state.lock().generation;
        self.file.write(generation, || {
            let (generation, file) = {
                let state = self.state.lock();
                (state.generation, state.snapshot(self.light))
            };
            (generation, protocol::json::to_pretty(&file))
        })
    }
}

impl State {
    fn snapshot(&self, light: bool) -> OffsetFile {
        let mut file = OffsetFile { data_version: self.version, ..Default::default() };
        for (topic, groups) in &self.committed {
            for (group, queues) in groups {
                let key = format!("{topic}{SEPARATOR}{group}");
                let mut queues = queues.clone();
                if light
                    && group.starts_with(names::LIGHT_PREFIX)
                    && let Some(offset) = queues.remove(&LIGHT_QUEUE)
                {
                    file.lmq_offset_table.get_or_insert_default().insert(key.clone(), offset);
                }
                if !queues.is_empty() {
                    file.offset_table.insert(key, queues);
                }
                file.group_topic_map.entry(group.clone()).or_default().insert(topic.clone());
            }
        }
        file
    }
}

fn get(table: &Table, topic: &str, group: &str, queue: i32) -> Option<i64> {
    table.get(topic)?.get(group)?.get(&queue).copied()
}

fn put(table: &mut Table, topic: &str, group: &str, queue: i32, offset: i64) {
    // Looked up first: the keys are copied only for a new pair.
    if let Some(queues) = table.get_mut(topic).and_then(|groups| groups.get_mut(group)) {
        queues.insert(queue, offset);
        return;
    }
    table.entry(topic.to_owned()).or_default().entry(group.to_owned()).or_default().insert(queue, offset);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_survive_a_restart_in_javas_form() {
        let dir = tempfile::tempdir().unwrap();
        let offsets = ConsumerOffsets::load(dir.path(), 2, false, 1).unwrap();
        offsets.commit("g", "T", 0, 12, 2);
        offsets.commit("g", "T", 1, 9, 3);
        offsets.commit("g", "%RETRY%g", 0, 4, 4);
        offsets.commit("h", "T", 0, 1, 5);
        offsets.flush().unwrap();
        let text = std::fs::read_to_string(dir.path().join("consumerOffset.json")).unwrap();
        let java = r#"
	"groupTopicMap":{
		"g":[
			"%RETRY%g",
			"T"
		],
		"h":[
			"T"
		]
	},
	"offsetTable":{
		"%RETRY%g@g":{
			0:4
		},
		"T@g":{
			0:12,
			1:9
		},
		"T@h":{
			0:1
		}
	}
}"#;
        assert!(text.contains(java), "{text}");
        let again = ConsumerOffsets::load(dir.path(), 2, false, 9).unwrap();
        assert_eq!(again.query("g", "T", 1), Some(9));
        assert_eq!(again.query("g", "%RETRY%g", 0), Some(4));
        assert_eq!(again.query("g", "T", 2), None);
        assert_eq!(again.snapshot().data_version.counter, 2, "one step per two commits");
        assert_eq!(again.groups_of("T"), ["g", "h"].map(String::from).into());
        assert_eq!(again.topics_of("g"), ["T", "%RETRY%g"].map(String::from).into());
    }

    #[test]
    fn groups_of_light_queues_have_a_table_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let plain = ConsumerOffsets::load(dir.path(), 500, false, 1).unwrap();
        plain.commit("g", "T", 3, 12, 2);
        plain.flush().unwrap();
        let offsets = ConsumerOffsets::load(dir.path(), 500, true, 1).unwrap();
        assert_eq!(offsets.query("g", "T", 3), Some(12), "taken over from consumerOffset.json");
        offsets.commit("%LMQ%c", "%LMQ%q", 0, 5, 2);
        offsets.flush().unwrap();
        let text = std::fs::read_to_string(dir.path().join("lmqConsumerOffset.json")).unwrap();
        assert!(text.contains("\"lmqOffsetTable\":{\n\t\t\"%LMQ%q@%LMQ%c\":5\n\t}"), "{text}");
        assert!(text.contains("\"T@g\":{\n\t\t\t3:12\n\t\t}"), "{text}");
        let again = ConsumerOffsets::load(dir.path(), 500, true, 9).unwrap();
        assert_eq!((again.query("%LMQ%c", "%LMQ%q", 0), again.query("g", "T", 3)), (Some(5), Some(12)));
    }

    #[test]
    fn a_reset_wins_until_it_is_taken_up() {
        let dir = tempfile::tempdir().unwrap();
        let offsets = ConsumerOffsets::load(dir.path(), 500, false, 1).unwrap();
        offsets.commit("g", "T", 0, 100, 2);
        offsets.reset("g", "T", 0, 7, 3);
        assert!(offsets.has_reset("g", "T", 0) && !offsets.has_reset("g", "T", 1));
        offsets.commit("g", "T", 0, 101, 4);
        assert_eq!(offsets.query("g", "T", 0), Some(7));
        assert_eq!(offsets.take_reset("g", "T", 0), Some(7));
        assert_eq!(offsets.take_reset("g", "T", 0), None);
        assert_eq!(offsets.query("g", "T", 0), Some(101));
    }

    #[test]
    fn groups_and_topics_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let offsets = ConsumerOffsets::load(dir.path(), 500, false, 1).unwrap();
        offsets.commit("g", "T", 0, 1, 1);
        offsets.commit("h", "T", 0, 2, 1);
        offsets.commit("g", "U", 0, 3, 1);
        offsets.pulled("g", "T", 0, 30);
        assert_eq!(offsets.query_pulled("g", "T", 0), Some(30));
        offsets.copy("h", "i", "T");
        assert_eq!(offsets.query("i", "T", 0), Some(2));
        offsets.forget_group("g");
        assert_eq!(
            (offsets.query("g", "T", 0), offsets.query("g", "U", 0), offsets.query("h", "T", 0)),
            (None, None, Some(2))
        );
        assert_eq!(offsets.query_pulled("g", "T", 0), None);
        offsets.forget_topic("T");
        assert!(offsets.snapshot().offset_table.is_empty());
    }
}
