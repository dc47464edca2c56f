//! Delivers delayed messages when they are due: one thread for all levels, asleep while nothing is.
//!
//! `config/delayOffset.json` keeps how far each level has got. After a crash the messages delivered since its last writing are delivered
//! again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use protocol::body::DataVersion;
use protocol::record::RecordView;
use protocol::record::property::{REAL_QUEUE_ID, REAL_TOPIC};
use serde::{Deserialize, Serialize};
use service::clock::now_ms;
use store::{Append, Store, Unit};

use crate::config_file::{ConfigFile, ConfigFileError};
use crate::delay::{DelayLevels, Due, LevelState, Look, queue_of_level};
use crate::names::{SCHEDULE_TOPIC, TRANS_HALF_TOPIC};

/// The file's content: the next offset of each level.
#[derive(Debug, Clone, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct DelayOffsetFile {
    pub data_version: DataVersion,
    pub offset_table: BTreeMap<i32, i64>,
}

/// Messages delivered between two looks at the clock: as many share one write.
const MOST_AT_ONCE: usize = 64;

struct State {
    levels: Vec<LevelState>,
    version: DataVersion,
    generation: u64,
    stopping: bool,
}

/// Where a level is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelProgress {
    pub level: i32,
    /// The next message to deliver.
    pub offset: i64,
    /// The next message to come.
    pub end: i64,
}

/// The delay levels at work.
pub struct DelayDelivery {
    table: DelayLevels,
    state: Mutex<State>,
    changed: Condvar,
    file: ConfigFile,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl DelayDelivery {
    /// Reads `delayOffset.json` in `config_dir`. Nothing is delivered before [`DelayDelivery::start`].
    pub fn load(config_dir: &Path, table: DelayLevels) -> Result<Arc<Self>, ConfigFileError> {
        let file = ConfigFile::new(config_dir.join("delayOffset.json"));
        let kept: DelayOffsetFile = file.load()?.unwrap_or_default();
        let levels = (1..=table.max_level())
            .map(|level| {
                let offset = kept.offset_table.get(&level).copied().unwrap_or(0);
                LevelState::resume(level, offset, 0, i64::MAX)
            })
            .collect();
        let state = State { levels, version: kept.data_version, generation: 0, stopping: false };
        Ok(Arc::new(Self { table, state: Mutex::new(state), changed: Condvar::new(), file, thread: Mutex::new(None) }))
    }

    pub fn table(&self) -> &DelayLevels {
        &self.table
    }

    /// Brings the offsets into what the queues hold and starts to deliver.
    pub fn start(self: &Arc<Self>, store: Arc<Store>) -> std::io::Result<()> {
        {
            let mut state = self.state.lock();
            for level in &mut state.levels {
                let queue = queue_of_level(level.level);
                let (min, max) = (store.min_offset(SCHEDULE_TOPIC, queue), store.max_offset(SCHEDULE_TOPIC, queue));
                *level = LevelState::resume(level.level, level.offset, min, max);
            }
        }
        let delivery = self.clone();
        let thread = std::thread::Builder::new().name("delay-delivery".into()).spawn(move || delivery.run(&store))?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    /// A message has come into a queue of the schedule topic.
    pub fn arrived(&self, queue: i32, now: i64) {
        let mut state = self.state.lock();
        if let Some(level) = usize::try_from(queue).ok().and_then(|at| state.levels.get_mut(at)) {
            let before = level.next_look;
            level.arrived(now);
            if level.next_look != before {
                self.changed.notify_one();
            }
        }
    }

    /// Ends delivery after the messages under way, and keeps the offsets.
    pub fn stop(&self) -> Result<(), ConfigFileError> {
        self.state.lock().stopping = true;
        self.changed.notify_one();
        let thread = self.thread.lock().take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("delay delivery ended by a panic");
        }
        self.flush()
    }

    /// Writes the file if a level has moved since the last time. To be called every `flushDelayOffsetInterval`.
    pub fn flush(&self) -> Result<(), ConfigFileError> {
        let generation = self.state.lock().generation;
        self.file.write(generation, || {
            let mut state = self.state.lock();
            state.version.counter += 1;
            state.version.timestamp = now_ms();
            let generation = state.generation;
            let file = self.file_of(&state);
            drop(state);
            (generation, protocol::json::to_pretty(&file))
        })
    }

    /// What the file would hold now: the answer to GET_ALL_DELAY_OFFSET.
    pub fn snapshot(&self) -> DelayOffsetFile {
        self.file_of(&self.state.lock())
    }

    /// How far each level has got and where its queue ends.
    pub fn progress(&self, store: &Store) -> Vec<LevelProgress> {
        let levels = self.state.lock().levels.clone();
        let end = |level: &LevelState| store.max_offset(SCHEDULE_TOPIC, queue_of_level(level.level));
        levels.iter().map(|one| LevelProgress { level: one.level, offset: one.offset, end: end(one) }).collect()
    }

    fn file_of(&self, state: &State) -> DelayOffsetFile {
        let moved = state.levels.iter().filter(|level| level.offset > 0);
        DelayOffsetFile {
            data_version: state.version,
            offset_table: moved.map(|level| (level.level, level.offset)).collect(),
        }
    }

    fn run(&self, store: &Store) {
        while let Some(level) = self.wait_for_level() {
            let now = now_ms();
            let look = self.look(store, &level, now);
            let mut state = self.state.lock();
            if matches!(look, Look::Progress { .. }) {
                state.generation += 1;
            }
            if let Some(current) = state.levels.get_mut(level.level as usize - 1) {
                current.looked(&level, look, now_ms());
            }
        }
    }

    /// Sleeps until a level has to be looked at; `None` to stop.
    fn wait_for_level(&self) -> Option<LevelState> {
        let mut state = self.state.lock();
        loop {
            if state.stopping {
                return None;
            }
            let now = now_ms();
            let next = state.levels.iter().min_by_key(|level| level.next_look).copied()?;
            if next.next_look <= now {
                return Some(next);
            }
            if next.next_look == i64::MAX {
                self.changed.wait(&mut state);
            } else {
                // In slices, as the wall clock may be set.
                let pause = Duration::from_millis((next.next_look - now).min(1_000) as u64);
                self.changed.wait_for(&mut state, pause);
            }
        }
    }

    /// Delivers what is due of one level.
    fn look(&self, store: &Store, level: &LevelState, now: i64) -> Look {
        let queue = queue_of_level(level.level);
        let units = store.units(SCHEDULE_TOPIC, queue, level.offset, MOST_AT_ONCE);
        if units.is_empty() {
            let min = store.min_offset(SCHEDULE_TOPIC, queue);
            return if min > level.offset { Look::Progress { next_offset: min } } else { Look::Drained };
        }
        let mut next_offset = level.offset;
        let mut ticket = None;
        let mut first_due_later = None;
        let mut failed = false;
        for unit in units {
            if let Due::At(at) = level.due(&self.table, unit.tags_code, now) {
                first_due_later = Some(at);
                break;
            }
            match deliver(store, &unit) {
                Ok(appended) => ticket = appended.or(ticket),
                Err(error) => {
                    tracing::warn!(level = level.level, offset = unit.queue_offset, %error, "a delayed message waits on");
                    failed = true;
                    break;
                }
            }
            next_offset = unit.queue_offset + 1;
        }
        if let Some(ticket) = ticket
            && let Err(error) = store.write_out(ticket)
        {
            tracing::error!(level = level.level, %error, "delayed messages cannot be delivered");
            return Look::Failed;
        }
        match first_due_later {
            _ if next_offset > level.offset => Look::Progress { next_offset },
            Some(at) if !failed => Look::NotDue { at },
            _ => Look::Failed,
        }
    }
}

/// Appends the message a unit points to under its real topic; gives the store's ticket. `None` when it is skipped.
fn deliver(store: &Store, unit: &Unit) -> Result<Option<u64>, store::PutError> {
    let skip = |why: &str| {
        tracing::error!(offset = unit.queue_offset, place = unit.physical_offset, why, "a delayed message is lost");
        Ok(None)
    };
    let Some(bytes) = store.record_at(unit.physical_offset) else {
        return skip("its record is gone");
    };
    let Ok(record) = RecordView::parse(&bytes) else {
        return skip("its record is broken");
    };
    let queue = record.property(REAL_QUEUE_ID).and_then(|text| text.parse().ok());
    let (Some(topic), Some(queue_id)) = (record.property(REAL_TOPIC), queue) else {
        return skip("it does not say where it goes");
    };
    if topic == TRANS_HALF_TOPIC {
        return skip("it is half a transaction");
    }
    let appended = store.append(&Append {
        topic,
        queue_id,
        flag: record.flag,
        sys_flag: record.sys_flag,
        born_timestamp: record.born_timestamp,
        born_host: record.born_host,
        store_host: record.store_host,
        reconsume_times: record.reconsume_times,
        prepared_transaction_offset: record.prepared_transaction_offset,
        body: record.body,
        properties: record.properties,
        more_properties: b"",
    })?;
    Ok(Some(appended.end))
}
