//! The file `deletedTopics`: where in the commit log the messages of deleted topics end.
//!
//! A deleted topic's records stay in the commit log until retention takes them, and recovery may go through them again. Those
//! below the topic's end count for no queue of its name. Java does not look at the file. It holds the sum over the rest in
//! hexadecimal, a line feed, and JSON: `{"topic": commit log offset, …}`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::file::{Faults, replace};
use crate::folders::if_there;

/// Its name, under the root.
pub(crate) const FILE: &str = "deletedTopics";

type Ends = BTreeMap<String, u64>;

pub(crate) struct Deleted {
    path: PathBuf,
    faults: Option<Arc<dyn Faults>>,
    state: Mutex<State>,
    saving: Mutex<()>,
    deleting: Mutex<()>,
}

#[derive(Default)]
struct State {
    ends: Ends,
    /// What the file holds.
    saved: Ends,
    /// That is something else.
    changed: bool,
}

impl Deleted {
    /// Reads the file. One that is damaged counts as empty: the log says so, and the store is more than these.
    pub(crate) fn load(root: &Path, faults: Option<Arc<dyn Faults>>) -> Self {
        let path = root.join(FILE);
        let ends = look(root).unwrap_or_else(|error| {
            tracing::error!(path = %path.display(), %error, "messages of deleted topics may come back");
            Ends::new()
        });
        let state = Mutex::new(State { saved: ends.clone(), ends, changed: false });
        Deleted { path, faults, state, saving: Mutex::default(), deleting: Mutex::default() }
    }

    /// Deletions come one after another: a second one of a topic must not take the queues of a new topic for those it ended.
    pub(crate) fn one_at_a_time(&self) -> MutexGuard<'_, ()> {
        self.deleting.lock()
    }

    /// Whether the record at `at`, of this topic, is one of a deleted topic.
    pub(crate) fn covers(&self, topic: &str, at: u64) -> bool {
        self.state.lock().ends.get(topic).is_some_and(|end| at < *end)
    }

    /// The records below `end` are the last of this topic. Called under the put lock.
    pub(crate) fn end(&self, topic: &str, end: u64) {
        let mut state = self.state.lock();
        state.ends.insert(topic.to_owned(), end);
        state.changed = true;
    }

    /// Records behind `written` were refused, and others will lie there. Called under the put lock.
    pub(crate) fn lower(&self, written: u64) {
        let state = &mut *self.state.lock();
        for end in state.ends.values_mut().filter(|end| **end > written) {
            *end = written;
            state.changed = true;
        }
    }

    /// Forgets those that lie below the beginning of the log.
    pub(crate) fn forget_below(&self, min: u64) {
        let mut state = self.state.lock();
        let before = state.ends.len();
        state.ends.retain(|_, end| *end > min);
        state.changed |= state.ends.len() < before;
    }

    /// Writes the file if something has changed. What is not flushed waits: were the log to end before it after a crash, it would
    /// hide the messages that are put there then.
    pub(crate) fn save(&self, flushed: u64) -> io::Result<()> {
        let _one = self.saving.lock();
        let safe = {
            let mut state = self.state.lock();
            if !state.changed {
                return Ok(());
            }
            state.changed = state.ends.values().any(|end| *end > flushed);
            let safe = |(topic, end): (&String, &u64)| {
                // An earlier topic of the name has ended for good.
                let end = if *end <= flushed { end } else { state.saved.get(topic)? };
                Some((topic.clone(), *end))
            };
            state.ends.iter().filter_map(safe).collect::<Ends>()
        };
        let json = serde_json::to_string(&safe)?;
        let content = format!("{:08x}\n{json}", crc32fast::hash(json.as_bytes()));
        let written = replace(&self.path, content.as_bytes(), &self.faults);
        let mut state = self.state.lock();
        match &written {
            Ok(()) => state.saved = safe,
            Err(_) => state.changed = true,
        }
        written
    }
}

/// What the file under a root says; nothing when there is none.
fn look(root: &Path) -> io::Result<Ends> {
    let Some(text) = if_there(fs::read_to_string(root.join(FILE)))? else { return Ok(Ends::new()) };
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the file is damaged");
    let (sum, json) = text.split_once('\n').ok_or_else(damaged)?;
    if sum != format!("{:08x}", crc32fast::hash(json.as_bytes())) {
        return Err(damaged());
    }
    Ok(serde_json::from_str(json)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(dir: &Path) -> Ends {
        look(dir).unwrap()
    }

    fn ends<const N: usize>(ends: [(&str, u64); N]) -> Ends {
        ends.into_iter().map(|(topic, end)| (topic.to_owned(), end)).collect()
    }

    #[test]
    fn what_is_not_flushed_is_saved_once_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let deleted = Deleted::load(dir.path(), None);
        deleted.end("A", 100);
        deleted.end("B\n", 200);
        deleted.save(150).unwrap();
        assert_eq!(saved(dir.path()), ends([("A", 100)]));
        deleted.save(200).unwrap();
        assert_eq!(saved(dir.path()), ends([("A", 100), ("B\n", 200)]));
        deleted.end("A", 300);
        deleted.save(250).unwrap();
        assert_eq!(saved(dir.path()), ends([("A", 100), ("B\n", 200)]), "the topic before it stays deleted");
        let again = Deleted::load(dir.path(), None);
        assert!(again.covers("A", 99) && !again.covers("A", 100) && !again.covers("C", 0));
        again.forget_below(100);
        again.save(200).unwrap();
        assert_eq!(saved(dir.path()), ends([("B\n", 200)]));
    }

    #[test]
    fn where_records_were_refused_new_ones_are_not_hidden() {
        let dir = tempfile::tempdir().unwrap();
        let deleted = Deleted::load(dir.path(), None);
        deleted.end("A", 100);
        deleted.end("B", 200);
        deleted.lower(150);
        assert!(deleted.covers("B", 149) && !deleted.covers("B", 150) && deleted.covers("A", 99));
    }

    #[test]
    fn a_damaged_file_hides_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let deleted = Deleted::load(dir.path(), None);
        deleted.end("A", 100);
        deleted.save(100).unwrap();
        let path = dir.path().join(FILE);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, damaged).unwrap();
            assert!(look(dir.path()).is_err(), "byte {at}");
        }
        assert!(!Deleted::load(dir.path(), None).covers("A", 0));
    }
}
