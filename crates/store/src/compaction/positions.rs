//! `position-checkpoint`: up to where each log has been compacted.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::files::Folder;

/// The file's content, as Java writes it.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Content {
    empty: bool,
    queue_offset_map: BTreeMap<String, i64>,
}

pub(super) struct Positions {
    path: PathBuf,
    folder: Folder,
    map: Mutex<BTreeMap<String, i64>>,
}

impl Positions {
    /// Reads the file. Without it, or when it cannot be read, everything is compacted once more, which changes nothing.
    pub(super) fn load(folder: Folder) -> Self {
        let path = folder.log.join("position-checkpoint");
        let content = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::warn!(path = %path.display(), %error, "cannot read the positions of compaction; it begins anew");
                Content::default()
            }),
            Err(_) => Content::default(),
        };
        Positions { path, folder, map: Mutex::new(content.queue_offset_map) }
    }

    /// Queue offset of the last message that a round has looked at; −1 before the first round.
    pub(super) fn get(&self, topic: &str, queue: i32) -> i64 {
        self.map.lock().get(&key(topic, queue)).copied().unwrap_or(-1)
    }

    pub(super) fn set(&self, topic: &str, queue: i32, offset: i64) -> io::Result<()> {
        let mut map = self.map.lock();
        map.insert(key(topic, queue), offset);
        self.write(&map)
    }

    pub(super) fn forget_topic(&self, topic: &str) -> io::Result<()> {
        let mut map = self.map.lock();
        let before = map.len();
        map.retain(|key, _| key.rsplit_once('_').is_none_or(|(of, _)| of != topic));
        if map.len() == before { Ok(()) } else { self.write(&map) }
    }

    fn write(&self, map: &BTreeMap<String, i64>) -> io::Result<()> {
        let content = Content { empty: map.is_empty(), queue_offset_map: map.clone() };
        self.folder.replace(&self.path, &serde_json::to_vec_pretty(&content)?)
    }
}

fn key(topic: &str, queue: i32) -> String {
    format!("{topic}_{queue}")
}
