//! Going through the units of a stopped store's queues.

use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::OfflineStore;
use super::findings::{Finding, Remedy};
use crate::commit_log::{file_name, offset_name};
use crate::folders::queue_folders;
use crate::{QueueType, Unit};

/// Units read at once.
const CHUNK: u64 = 3276;

/// One queue's folder.
pub(super) struct Folder {
    pub(super) topic: String,
    pub(super) id: i32,
    pub(super) kind: QueueType,
    pub(super) path: PathBuf,
}

/// A queue's files, all of the right size and without a gap.
pub(super) struct QueueFiles<'a> {
    pub(super) folder: &'a Folder,
    size: u64,
    /// First byte of each.
    starts: Vec<u64>,
}

impl OfflineStore {
    /// Where the queue is, or would be.
    pub(super) fn queue_folder(&self, topic: &str, id: i32, kind: QueueType) -> Folder {
        let path = self.config.queue_folder(kind).0.join(topic).join(id.to_string());
        Folder { topic: topic.to_owned(), id, kind, path }
    }

    /// All queues of a kind that there are folders for; other names are passed over, as at loading.
    pub(super) fn queue_folders(&self, kind: QueueType) -> io::Result<Vec<Folder>> {
        let folders = queue_folders(&self.config.queue_folder(kind).0)?;
        Ok(folders.into_iter().map(|(topic, id, path)| Folder { topic, id, kind, path }).collect())
    }

    /// The files in a queue's folder, when they can be loaded as they are.
    pub(super) fn queue_files<'a>(&self, folder: &'a Folder) -> io::Result<Result<QueueFiles<'a>, Finding>> {
        let (_, size) = self.config.queue_folder(folder.kind);
        let starts = starts(&folder.path, size)?;
        Ok(starts.map(|starts| QueueFiles { folder, size, starts }))
    }
}

impl QueueFiles<'_> {
    /// Tells `on` the units from the `from`th on, valid or not: file, byte in it, unit.
    pub(super) fn each(&self, from: u64, on: &mut dyn FnMut(&Path, u64, Unit) -> ControlFlow<()>) -> io::Result<()> {
        let unit_len = self.folder.kind.unit_len();
        let per_file = self.size / unit_len as u64;
        let mut chunk = vec![0; CHUNK as usize * unit_len];
        for start in self.starts.iter().filter(|start| **start + self.size > from * unit_len as u64) {
            let path = self.folder.path.join(file_name(*start));
            let file = File::open(&path)?;
            let first = start / unit_len as u64;
            let mut index = from.max(first);
            while index < first + per_file {
                let want = CHUNK.min(first + per_file - index);
                let raw = chunk.get_mut(..want as usize * unit_len).unwrap_or_default();
                file.read_exact_at(raw, (index - first) * unit_len as u64)?;
                for (raw, at) in raw.chunks_exact(unit_len).zip(index..) {
                    let unit = self.folder.kind.decode(at as i64, raw);
                    if on(&path, (at - first) * unit_len as u64, unit).is_break() {
                        return Ok(());
                    }
                }
                index += want;
            }
        }
        Ok(())
    }

    /// Queue offset of the first unit there can be.
    pub(super) fn first(&self) -> i64 {
        match self.folder.kind {
            QueueType::Simple => (self.starts.first().unwrap_or(&0) / self.folder.kind.unit_len() as u64) as i64,
            QueueType::Batch => 0,
        }
    }
}

fn starts(dir: &Path, size: u64) -> io::Result<Result<Vec<u64>, Finding>> {
    let mut files = Vec::new();
    let broken = |path: &Path, what: String| {
        Ok(Err(Finding::new("consume queue that cannot be loaded", Remedy::NextStart, path, what)))
    };
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            continue;
        }
        match offset_name(&entry.path()) {
            Some(start) => files.push((start, entry.metadata()?.len())),
            None => return broken(&entry.path(), "its name is no offset".into()),
        }
    }
    files.sort_unstable();
    if files.last().is_some_and(|(_, len)| *len == 0) {
        files.pop();
    }
    let mut expected = None;
    for (start, len) in &files {
        let path = dir.join(file_name(*start));
        if *len != size || start % size != 0 {
            return broken(&path, format!("has {len} bytes, {size} are expected"));
        }
        if expected.is_some_and(|expected| expected != *start) {
            return broken(&path, "the file before it is missing".into());
        }
        expected = Some(start + size);
    }
    Ok(Ok(files.into_iter().map(|(start, _)| start).collect()))
}
