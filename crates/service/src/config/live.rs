//! The configuration of a running server: cheap to read, changed by UPDATE_*_CONFIG.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;

use super::{BadValue, Config, Life};
use crate::clock::now_ms;
use crate::files;
use crate::properties::Document;

/// Keys that may never be changed from remote, whatever `configBlackList` says: they name files and the list itself.
const NEVER_REMOTE: [&str; 5] =
    ["rocketmqHome", "configBlackList", "configStorePath", "kvConfigPath", "brokerConfigPath"];

/// Values that may change while the server runs. Clones share them.
///
/// A running server sees new values of live keys only; a changed fixed key waits in the file for the next start, and
/// shows in [`Live::dump`] as Java shows it.
pub struct Live<C: Config> {
    shared: Arc<Shared<C>>,
}

impl<C: Config> Clone for Live<C> {
    fn clone(&self) -> Self {
        Live { shared: self.shared.clone() }
    }
}

struct Shared<C> {
    running: ArcSwap<C>,
    counter: AtomicU64,
    timestamp: AtomicU64,
    known: &'static str,
    stored: Mutex<Stored<C>>,
    listeners: Mutex<Vec<Listener<C>>>,
}

type Listener<C> = Box<dyn Fn(&C, &C) + Send + Sync>;

/// The values as they will be after the next start, and the file they come from.
struct Stored<C> {
    values: C,
    path: Option<PathBuf>,
    document: Document,
}

/// Java's data version of a configuration, without the state version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// Number of updates since the start.
    pub counter: u64,
    /// Time of the last one, or of the start; milliseconds since 1970.
    pub timestamp: u64,
}

/// What an update did.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Updated {
    /// Keys with a new value in effect.
    pub live: Vec<String>,
    /// Keys with a new value that waits for the next start.
    pub after_restart: Vec<String>,
    /// Keys that are kept in the file but have no effect in this server.
    pub no_effect: Vec<String>,
    /// Keys that nobody knows: left out.
    pub unknown: Vec<String>,
    /// The file that was rewritten; none if the server was started without one.
    pub file: Option<PathBuf>,
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    #[error("string2Properties error")]
    Malformed,
    /// Answered with NO_PERMISSION.
    #[error("Can not update config in black list.")]
    BlackList(String),
    #[error(transparent)]
    BadValue(#[from] BadValue),
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: std::io::Error },
}

impl<C: Config> Live<C> {
    /// Values without a file, for tests and for servers inside another process.
    pub fn new(values: C) -> Live<C> {
        Live::with_file(values, "", None, Document::default())
    }

    pub(super) fn with_file(values: C, known: &'static str, path: Option<PathBuf>, document: Document) -> Live<C> {
        Live {
            shared: Arc::new(Shared {
                running: ArcSwap::from_pointee(values.clone()),
                counter: AtomicU64::new(0),
                timestamp: AtomicU64::new(now_ms() as u64),
                known,
                stored: Mutex::new(Stored { values, path, document }),
                listeners: Mutex::default(),
            }),
        }
    }

    /// The values in effect. A few nanoseconds; do not hold the guard across an await, take [`Live::snapshot`] there.
    pub fn load(&self) -> Guard<Arc<C>> {
        self.shared.running.load()
    }

    /// The values in effect, to keep.
    pub fn snapshot(&self) -> Arc<C> {
        self.shared.running.load_full()
    }

    /// For `dataVersion` in the answer to GET_BROKER_CONFIG.
    pub fn version(&self) -> Version {
        Version {
            counter: self.shared.counter.load(Ordering::Acquire),
            timestamp: self.shared.timestamp.load(Ordering::Acquire),
        }
    }

    /// Calls `listener(old, new)` after each change of running values, on the thread that made it.
    pub fn on_change(&self, listener: impl Fn(&C, &C) + Send + Sync + 'static) {
        self.shared.listeners.lock().push(Box::new(listener));
    }

    /// Where updates go when the server was started without `-c`.
    pub fn set_store_path(&self, path: PathBuf) {
        self.shared.stored.lock().path.get_or_insert(path);
    }

    /// Changes values by program (a new role, a learnt address). They show in [`Live::dump`] but are not written to the
    /// file.
    pub fn change(&self, edit: impl Fn(&mut C)) {
        let mut stored = self.shared.stored.lock();
        edit(&mut stored.values);
        let mut running = C::clone(&self.load());
        edit(&mut running);
        self.publish(running);
    }

    /// All keys with a value, sorted, `key=value\n`: the body of GET_*_CONFIG. Keys of the file that nobody knows are in
    /// it.
    pub fn dump(&self) -> String {
        let stored = self.shared.stored.lock();
        let mut rows: BTreeMap<String, String> = BTreeMap::new();
        for entry in stored.document.entries() {
            rows.insert(entry.key.clone(), entry.value.clone());
        }
        for key in C::keys() {
            match stored.values.get(key.name) {
                Some(value) => rows.insert(key.name.to_string(), value),
                None => rows.remove(key.name),
            };
        }
        rows.into_iter().map(|(key, value)| format!("{key}={value}\n")).collect()
    }

    /// Applies the body of UPDATE_*_CONFIG: all of it or, on an error, nothing.
    ///
    /// Keys that neither this server nor Java nor the file knows are left out, as in Java. The file is rewritten before
    /// the new values take effect.
    pub fn update(&self, body: &[u8]) -> Result<Updated, UpdateError> {
        let wanted = Document::parse(body).map_err(|_| UpdateError::Malformed)?;
        let mut stored = self.shared.stored.lock();
        let black_list = stored.values.get("configBlackList").unwrap_or_default();
        let forbidden = |key: &str| NEVER_REMOTE.contains(&key) || black_list.split(';').any(|item| item.trim() == key);
        if let Some(entry) = wanted.entries().iter().find(|entry| forbidden(&entry.key)) {
            return Err(UpdateError::BlackList(entry.key.clone()));
        }

        let mut values = stored.values.clone();
        let mut document = stored.document.clone();
        let mut updated = Updated::default();
        for entry in wanted.entries() {
            if wanted.get(&entry.key) != Some(entry) {
                continue;
            }
            let declared = values.set(&entry.key, &entry.value)?;
            let list = match C::key(&entry.key).map(|key| key.life) {
                Some(Life::live) => &mut updated.live,
                Some(Life::fixed) => &mut updated.after_restart,
                Some(Life::ignored) => &mut updated.no_effect,
                None if self.is_known(&entry.key, &document) => &mut updated.no_effect,
                None => &mut updated.unknown,
            };
            list.push(entry.key.clone());
            if declared || self.is_known(&entry.key, &document) {
                document.set(&entry.key, entry.value.trim());
            }
        }

        if let Some(path) = &stored.path {
            files::persist(path, document.text()).map_err(|error| UpdateError::Write { path: path.clone(), error })?;
            updated.file = Some(path.clone());
        }
        stored.values = values;
        stored.document = document;
        let mut running = C::clone(&self.load());
        running.copy_live(&stored.values);
        self.publish(running);
        Ok(updated)
    }

    fn is_known(&self, key: &str, document: &Document) -> bool {
        document.get(key).is_some() || self.shared.known.lines().any(|name| name == key)
    }

    /// Callers hold the lock on `stored`, so changes are published one at a time.
    fn publish(&self, running: C) {
        let running = Arc::new(running);
        let old = self.shared.running.swap(running.clone());
        self.shared.counter.fetch_add(1, Ordering::AcqRel);
        self.shared.timestamp.store(now_ms() as u64, Ordering::Release);
        for listener in self.shared.listeners.lock().iter() {
            listener(&old, &running);
        }
    }
}
