//! The consumer groups of this broker and their file `config/subscriptionGroup.json`.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use protocol::body::{DataVersion, SubscriptionGroupConfig, SubscriptionGroupWrapper};

use crate::attributes;
use crate::config_file::{ConfigFile, ConfigFileError};
use crate::names;

/// The forbidden bit that stops a group from reading a topic.
pub const FORBIDDEN_READ: u32 = 2;

type Forbidden = BTreeMap<String, BTreeMap<String, i32>>;

struct State {
    groups: HashMap<String, Arc<SubscriptionGroupConfig>>,
    forbidden: Forbidden,
    version: DataVersion,
    generation: u64,
}

/// Why a group was not made or changed.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    File(#[from] ConfigFileError),
}

/// The groups of this broker.
pub struct SubscriptionGroups {
    state: RwLock<State>,
    file: ConfigFile,
    light: bool,
}

impl SubscriptionGroups {
    /// Reads `subscriptionGroup.json` in `config_dir` over the groups every broker has.
    pub fn load(config_dir: &Path, now: i64) -> Result<Self, ConfigFileError> {
        let file = ConfigFile::new(config_dir.join("subscriptionGroup.json"));
        let mut groups: HashMap<_, _> = names::BUILT_IN_GROUPS
            .into_iter()
            .map(|name| {
                (
                    name.to_owned(),
                    Arc::new(SubscriptionGroupConfig { group_name: name.to_owned(), ..Default::default() }),
                )
            })
            .collect();
        let mut version = DataVersion { timestamp: now, ..Default::default() };
        let mut forbidden = Forbidden::new();
        if let Some(kept) = file.load::<SubscriptionGroupWrapper>()? {
            version = kept.data_version;
            forbidden = kept.forbidden_table;
            groups.extend(kept.subscription_group_table.into_iter().map(|(name, group)| (name, Arc::new(group))));
        }
        Ok(Self { state: RwLock::new(State { groups, forbidden, version, generation: 0 }), file, light: false })
    }

    /// With `enableLmq` the groups of light message queues exist without being in the table.
    pub fn with_light(self, light: bool) -> Self {
        Self { light, ..self }
    }

    pub fn get(&self, group: &str) -> Option<Arc<SubscriptionGroupConfig>> {
        self.state.read().groups.get(group).cloned()
    }

    fn is_light(&self, group: &str) -> bool {
        self.light && group.starts_with(names::LIGHT_PREFIX)
    }

    pub fn contains(&self, group: &str) -> bool {
        self.state.read().groups.contains_key(group) || self.is_light(group)
    }

    /// The group's settings; a group not known yet is made with Java's defaults when `auto_create` or its name allows.
    pub fn find(&self, group: &str, auto_create: bool, now: i64) -> Option<Arc<SubscriptionGroupConfig>> {
        if let Some(known) = self.get(group) {
            return Some(known);
        }
        if self.is_light(group) {
            return Some(Arc::new(SubscriptionGroupConfig { group_name: group.to_owned(), ..Default::default() }));
        }
        if !(auto_create || names::is_system_group(group)) || names::check_group(group).is_err() {
            return None;
        }
        let (made, generation) = {
            let mut state = self.state.write();
            if let Some(known) = state.groups.get(group) {
                return Some(known.clone());
            }
            let made = Arc::new(SubscriptionGroupConfig { group_name: group.to_owned(), ..Default::default() });
            state.groups.insert(group.to_owned(), made.clone());
            (made, state.touch(now))
        };
        tracing::info!(group, "group created");
        if let Err(error) = self.write(generation) {
            // The group works; a later change or the stop writes it.
            tracing::error!(group, %error, "the new group is not in its file");
        }
        Some(made)
    }

    /// Creates or changes a group as an operator asks: `attributes` holds signed changes.
    pub fn update(&self, wanted: SubscriptionGroupConfig, now: i64) -> Result<(), GroupError> {
        self.update_all(vec![wanted], now)
    }

    /// The same for several groups with one write of the file. The first one that is refused ends it; those before it stay.
    pub fn update_all(&self, list: Vec<SubscriptionGroupConfig>, now: i64) -> Result<(), GroupError> {
        let count = list.len();
        let (generation, result) = {
            let mut state = self.state.write();
            let result = list.into_iter().try_for_each(|wanted| state.set(wanted, count == 1, now));
            (state.generation, result)
        };
        if count > 1 {
            tracing::info!(count, "groups set");
        }
        self.write(generation)?;
        result
    }

    /// Forgets a group; false when there was none.
    pub fn delete(&self, group: &str, now: i64) -> Result<bool, GroupError> {
        let generation = {
            let mut state = self.state.write();
            state.forbidden.remove(group);
            if state.groups.remove(group).is_none() {
                return Ok(false);
            }
            state.touch(now)
        };
        tracing::info!(group, "group deleted");
        self.write(generation)?;
        Ok(true)
    }

    /// Sets or clears one forbidden bit of a group for a topic.
    pub fn set_forbidden(&self, group: &str, topic: &str, bit: u32, on: bool, now: i64) -> Result<(), GroupError> {
        let generation = {
            let mut state = self.state.write();
            let topics = state.forbidden.entry(group.to_owned()).or_default();
            let bits = topics.entry(topic.to_owned()).or_insert(0);
            *bits = if on { *bits | (1 << bit) } else { *bits & !(1 << bit) };
            if *bits <= 0 {
                topics.remove(topic);
            }
            if topics.is_empty() {
                state.forbidden.remove(group);
            }
            state.touch(now)
        };
        Ok(self.write(generation)?)
    }

    pub fn is_forbidden(&self, group: &str, topic: &str, bit: u32) -> bool {
        let state = self.state.read();
        state.forbidden.get(group).and_then(|topics| topics.get(topic)).is_some_and(|bits| bits & (1 << bit) != 0)
    }

    /// Everything, with the version it belongs to.
    pub fn snapshot(&self) -> (DataVersion, BTreeMap<String, Arc<SubscriptionGroupConfig>>, Forbidden) {
        let state = self.state.read();
        let groups = state.groups.iter().map(|(name, group)| (name.clone(), group.clone())).collect();
        (state.version, groups, state.forbidden.clone())
    }

    pub fn names(&self) -> Vec<String> {
        self.state.read().groups.keys().cloned().collect()
    }

    fn write(&self, generation: u64) -> Result<(), ConfigFileError> {
        self.file.write(generation, || {
            let state = self.state.read();
            let groups = state.groups.iter().map(|(name, group)| (name.clone(), (**group).clone())).collect();
            let file = SubscriptionGroupWrapper {
                data_version: state.version,
                forbidden_table: state.forbidden.clone(),
                subscription_group_table: groups,
            };
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
    fn set(&mut self, mut wanted: SubscriptionGroupConfig, alone: bool, now: i64) -> Result<(), GroupError> {
        let current = self.groups.get(&wanted.group_name);
        let before = current.map(|group| group.attributes.clone()).unwrap_or_default();
        wanted.attributes = attributes::alter(current.is_none(), attributes::GROUP, &before, &wanted.attributes)
            .map_err(GroupError::Refused)?;
        if alone {
            tracing::info!(group = wanted.group_name, config = ?wanted, "group set");
        }
        self.groups.insert(wanted.group_name.clone(), Arc::new(wanted));
        self.touch(now);
        Ok(())
    }

    fn touch(&mut self, now: i64) -> u64 {
        self.version.next(0, now);
        self.generation += 1;
        self.generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_appear_when_asked_for_and_stay() {
        let dir = tempfile::tempdir().unwrap();
        let groups = SubscriptionGroups::load(dir.path(), 1).unwrap();
        assert!(groups.contains("TOOLS_CONSUMER") && !groups.contains("g"));
        assert!(groups.find("g", false, 2).is_none());
        let made = groups.find("g", true, 2).unwrap();
        assert_eq!((made.retry_max_times, made.retry_queue_nums, made.consume_enable), (16, 1, true));
        assert!(groups.find("CID_RMQ_SYS_X", false, 3).is_some());
        assert!(groups.find("bad group", true, 3).is_none() && groups.find(&"g".repeat(121), true, 3).is_none());
        let again = SubscriptionGroups::load(dir.path(), 9).unwrap();
        assert!(again.contains("g") && again.contains("CID_RMQ_SYS_X"));
    }

    #[test]
    fn updates_and_deletions_survive_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let groups = SubscriptionGroups::load(dir.path(), 1).unwrap();
        let wanted = SubscriptionGroupConfig { group_name: "g".into(), retry_max_times: 3, ..Default::default() };
        groups.update(wanted, 2).unwrap();
        groups.find("h", true, 3).unwrap();
        assert!(groups.delete("h", 4).unwrap() && !groups.delete("h", 4).unwrap());
        groups.set_forbidden("g", "T", FORBIDDEN_READ, true, 5).unwrap();
        groups.set_forbidden("g", "U", FORBIDDEN_READ, true, 5).unwrap();
        groups.set_forbidden("g", "U", FORBIDDEN_READ, false, 5).unwrap();
        let again = SubscriptionGroups::load(dir.path(), 9).unwrap();
        assert_eq!(again.get("g").unwrap().retry_max_times, 3);
        assert!(!again.contains("h"));
        assert!(again.is_forbidden("g", "T", FORBIDDEN_READ) && !again.is_forbidden("g", "U", FORBIDDEN_READ));
    }
}
