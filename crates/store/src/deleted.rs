//! The file `deletedTopics`: where in the commit log the messages of deleted topics end.
//!
//! A deleted topic's records stay in the commit log until retention takes them, and recovery may go through them again. Those
//! below the topic's end count for no queue of its name, unless they are younger than the deletion: the log may have been cut or
//! replaced by somebody who does not look at the file, as Java does not. It holds the sum over the rest in hexadecimal, a line
//! feed, and JSON: `{"topic": {"offset": commit log offset, "time": milliseconds since 1970}, …}`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

use crate::file::{Faults, replace};
use crate::folders::if_there;

/// Its name, under the root.
pub(crate) const FILE: &str = "deletedTopics";

type Ends = BTreeMap<String, End>;

/// Where a deleted topic ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    /// Its records lie below.
    pub(crate) offset: u64,
    /// And were stored then or before.
    pub(crate) time: i64,
}

pub(crate) struct Deleted {
    path: PathBuf,
    faults: Option<Arc<dyn Faults>>,
    state: Mutex<State>,
    saving: Mutex<()>,
    deleting: Mutex<()>,
    /// Queues are dead, and the disk does not know yet that they are to go. Stays when a deletion has failed.
    undecided: AtomicBool,
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
        Deleted {
            path,
            faults,
            state,
            saving: Mutex::default(),
            deleting: Mutex::default(),
            undecided: AtomicBool::default(),
        }
    }

    /// Deletions come one after another: a second one of a topic must not take the queues of a new topic for those it ended.
    pub(crate) fn one_at_a_time(&self) -> MutexGuard<'_, ()> {
        self.deleting.lock()
    }

    /// Between the first queue that is made dead and the end of the deletion. Dead queues put and save no more units, so that the
    /// marks of what is in the queues must stand still: should the deletion fail, its units are made again from there.
    pub(crate) fn set_undecided(&self, undecided: bool) {
        self.undecided.store(undecided, Ordering::SeqCst);
    }

    /// To be asked after the units were saved.
    pub(crate) fn is_undecided(&self) -> bool {
        self.undecided.load(Ordering::SeqCst)
    }

    /// Whether the record at `at` in this topic, stored at `time`, is one of a deleted topic.
    pub(crate) fn covers(&self, topic: &str, at: u64, time: i64) -> bool {
        self.state.lock().ends.get(topic).is_some_and(|end| at < end.offset && time <= end.time)
    }

    /// The records below are the last of this topic. Called under the put lock.
    pub(crate) fn end(&self, topic: &str, end: End) {
        let mut state = self.state.lock();
        state.ends.insert(topic.to_owned(), end);
        state.changed = true;
    }

    /// Records behind `written` were refused, and others will lie there. Called under the put lock.
    pub(crate) fn lower(&self, written: u64) {
        let state = &mut *self.state.lock();
        for end in state.ends.values_mut().filter(|end| end.offset > written) {
            end.offset = written;
            state.changed = true;
        }
    }

    /// Forgets those that lie below the beginning of the log.
    pub(crate) fn forget_below(&self, min: u64) {
        let mut state = self.state.lock();
        let before = state.ends.len();
        state.ends.retain(|_, end| end.offset > min);
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
            state.changed = state.ends.values().any(|end| end.offset > flushed);
            let safe = |(topic, end): (&String, &End)| {
                // An earlier topic of the name has ended for good.
                let end = if end.offset <= flushed { end } else { state.saved.get(topic)? };
                Some((topic.clone(), *end))
            };
            let safe = state.ends.iter().filter_map(safe).collect::<Ends>();
            if safe == state.saved {
                return Ok(());
            }
            safe
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

    fn at(offset: u64) -> End {
        End { offset, time: 5 }
    }

    fn ends<const N: usize>(ends: [(&str, u64); N]) -> Ends {
        ends.into_iter().map(|(topic, end)| (topic.to_owned(), at(end))).collect()
    }

    #[test]
    fn what_is_not_flushed_is_saved_once_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let deleted = Deleted::load(dir.path(), None);
        deleted.end("A", at(100));
        deleted.end("B\n", at(200));
        deleted.save(150).unwrap();
        assert_eq!(saved(dir.path()), ends([("A", 100)]));
        deleted.save(200).unwrap();
        assert_eq!(saved(dir.path()), ends([("A", 100), ("B\n", 200)]));
        deleted.end("A", at(300));
        deleted.save(250).unwrap();
        assert_eq!(saved(dir.path()), ends([("A", 100), ("B\n", 200)]), "the topic before it stays deleted");
        let again = Deleted::load(dir.path(), None);
        assert!(again.covers("A", 99, 5) && !again.covers("A", 100, 5) && !again.covers("C", 0, 5));
        assert!(!again.covers("A", 99, 6), "younger than the deletion");
        again.forget_below(100);
        again.save(200).unwrap();
        assert_eq!(saved(dir.path()), ends([("B\n", 200)]));
    }

    #[test]
    fn where_records_were_refused_new_ones_are_not_hidden() {
        let dir = tempfile::tempdir().unwrap();
        let deleted = Deleted::load(dir.path(), None);
        deleted.end("A", at(100));
        deleted.end("B", at(200));
        deleted.lower(150);
        assert!(deleted.covers("B", 149, 5) && !deleted.covers("B", 150, 5) && deleted.covers("A", 99, 5));
    }

    #[test]
    fn a_damaged_file_hides_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let deleted = Deleted::load(dir.path(), None);
        deleted.end("A", at(100));
        deleted.save(100).unwrap();
        let path = dir.path().join(FILE);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, damaged).unwrap();
            assert!(look(dir.path()).is_err(), "byte {at}");
        }
        assert!(!Deleted::load(dir.path(), None).covers("A", 0, 5));
    }
}
