//! Writing units to the files, and syncing those.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Queues;
use crate::batch_unit::BatchUnit;
use crate::commit_log::file_name;
use crate::consume_queue::{ConsumeQueue, encode_unit};
use crate::file::{StoreFile, sync_names};

/// More changed files than this are synced by one call for the whole file system.
const SYNCFS_FROM: usize = 256;

/// Queue and written bytes by file; not the open files, whose number is bounded.
type UnsyncedFiles = HashMap<(u32, u64), (Arc<ConsumeQueue>, u64)>;

/// What was written but not synced.
#[derive(Default)]
pub(super) struct Unsynced {
    pub(super) files: UnsyncedFiles,
    pub(super) dirs: Vec<PathBuf>,
}

impl Unsynced {
    pub(super) fn wrote(&mut self, queue: &Arc<ConsumeQueue>, key: (u32, u64), bytes: u64) {
        self.files.entry(key).or_insert_with(|| (queue.clone(), 0)).1 += bytes;
    }

    /// Forgets all files of a queue.
    pub(super) fn forget(&mut self, queue: &ConsumeQueue) {
        self.files.retain(|_, (of, _)| of.uid != queue.uid);
    }
}

impl Queues {
    /// Writes the units that are only in memory to the files. On an error they stay in memory and the queue stays listed.
    pub(crate) fn save_all(&self) -> io::Result<()> {
        let mut io = self.io.lock();
        let listed = std::mem::take(&mut *self.listed.lock());
        let mut result = Ok(());
        let mut failed = Vec::new();
        for queue in listed {
            if queue.is_dead() {
                self.note_saved(queue.unsaved().1.len());
                continue;
            }
            if result.is_err() {
                failed.push(queue);
                continue;
            }
            if let Err(error) = self.save(&queue, &mut io) {
                tracing::error!(topic = %queue.topic, queue = queue.id, %error, "writing a consume queue failed");
                queue.state().listed = true;
                failed.push(queue);
                result = Err(error);
            }
        }
        self.listed.lock().append(&mut failed);
        result
    }

    fn save(&self, queue: &Arc<ConsumeQueue>, io: &mut Unsynced) -> io::Result<()> {
        let (mut at, bytes) = queue.unsaved();
        // Taken after the units, so it holds all they point to.
        self.save_ext(queue, io)?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (start, in_file) = self.file_of(queue.kind, at);
            let room = (self.folder(queue.kind).file_size - in_file) as usize;
            let (now, later) = rest.split_at(room.min(rest.len()));
            let file = self.file_for_write(queue, start, io)?;
            file.write_all_at(now, in_file)?;
            let units = now.len() / queue.kind.unit_len();
            io.wrote(queue, (queue.uid, start), now.len() as u64);
            at += units as i64;
            rest = later;
            self.note_saved(now.len());
            if queue.set_saved(at) {
                self.warm.lock().push(queue.clone());
            }
        }
        Ok(())
    }

    /// Writes a unit of a plain queue over the one in the file. Its tags code stands in it, whether the queue is extended or not.
    pub(crate) fn overwrite(&self, queue: &Arc<ConsumeQueue>, unit: &BatchUnit) -> io::Result<()> {
        let mut io = self.io.lock();
        if queue.is_dead() || unit.base >= queue.tail_start() {
            return Ok(());
        }
        let (start, at) = self.file_of(queue.kind, unit.base);
        let bytes = encode_unit(unit.physical_offset, unit.size, unit.tags_code);
        self.open(queue, start)?.write_all_at(&bytes, at)?;
        io.wrote(queue, (queue.uid, start), bytes.len() as u64);
        Ok(())
    }

    /// So many bytes of units are no longer in memory alone. Fillers are not counted before.
    fn note_saved(&self, bytes: usize) {
        self.unsaved_bytes.fetch_sub(bytes.min(self.unsaved_bytes()), Ordering::Relaxed);
    }

    fn file_for_write(&self, queue: &ConsumeQueue, start: u64, io: &mut Unsynced) -> io::Result<Arc<StoreFile>> {
        if queue.state().files.contains(&start) {
            return self.open(queue, start);
        }
        let folder = self.folder(queue.kind);
        let file = self.create_file(&folder.root, queue, (queue.uid, start), folder.file_size, io)?;
        let mut state = queue.state();
        let at = state.files.partition_point(|s| *s < start);
        state.files.insert(at, start);
        Ok(file)
    }

    /// Makes a file, named after the second part of its key, in a queue's folder under `root`.
    pub(super) fn create_file(
        &self,
        root: &Path,
        queue: &ConsumeQueue,
        key: (u32, u64),
        size: u64,
        io: &mut Unsynced,
    ) -> io::Result<Arc<StoreFile>> {
        let topic = root.join(&*queue.topic);
        let dir = topic.join(queue.id.to_string());
        if !dir.is_dir() {
            fs::create_dir_all(&dir)?;
            io.dirs.extend(root.parent().map(Path::to_path_buf));
            io.dirs.extend([root.to_path_buf(), topic]);
        }
        let file = Arc::new(StoreFile::create(&dir.join(file_name(key.1)), size, self.faults.clone())?);
        io.dirs.push(dir);
        self.open.lock().insert(key, file.clone());
        Ok(file)
    }

    /// Syncs files with at least `least_bytes` of unsynced units; with 0 all of them, and new names.
    pub(crate) fn sync(&self, least_bytes: u64) -> io::Result<()> {
        // The list is taken, so that saving goes on while the disk works.
        let (files, dirs) = {
            let mut io = self.io.lock();
            let dirs = if least_bytes == 0 { std::mem::take(&mut io.dirs) } else { Vec::new() };
            let due: HashMap<_, _> = io.files.extract_if(|_, (_, bytes)| *bytes >= least_bytes).collect();
            (due, dirs)
        };
        let result = self.sync_files(&files, dirs.clone());
        if result.is_err() {
            let mut io = self.io.lock();
            io.dirs.extend(dirs);
            for (key, (queue, bytes)) in files {
                io.files.entry(key).or_insert((queue, 0)).1 += bytes;
            }
        }
        result
    }

    /// Whether a sync has failed since the start.
    pub(crate) fn doubtful(&self) -> bool {
        self.doubtful.load(Ordering::Acquire)
    }

    fn doubt(&self, _: &io::Error) {
        self.doubtful.store(true, Ordering::Release);
    }

    fn sync_files(&self, files: &UnsyncedFiles, mut dirs: Vec<PathBuf>) -> io::Result<()> {
        if files.len() + dirs.len() >= SYNCFS_FROM && self.faults.is_none() {
            let root = fs::File::open(self.root())?;
            return rustix::fs::syncfs(root).map_err(io::Error::from).inspect_err(|e| self.doubt(e));
        }
        for ((uid, start), (queue, _)) in files {
            let file = if *uid == queue.uid { self.open(queue, *start) } else { self.open_ext(queue, *start) };
            match file {
                Ok(file) => file.sync().inspect_err(|e| self.doubt(e))?,
                // Removed meanwhile.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        dirs.sort();
        dirs.dedup();
        for dir in dirs {
            match sync_names(&dir, &self.faults) {
                // The topic was deleted meanwhile.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Closes all files; they are opened again when somebody reads.
    pub(crate) fn close_files(&self) {
        self.open.lock().close_all();
    }

    /// Frees the tails of queues nobody wrote to since the last call.
    pub(crate) fn cool(&self) {
        self.warm.lock().retain(|queue| !queue.is_dead() && !queue.cool());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreConfig;

    #[test]
    fn what_a_deleted_topic_had_in_memory_does_not_count_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let queues = Queues::new(&StoreConfig::new(dir.path()), Arc::new(()));
        let queue = queues.get_or_make("T", 0);
        let unit = BatchUnit { physical_offset: 0, size: 100, tags_code: 0, store_time: 1, base: 0, count: 1 };
        queues.put(&queue, &unit);
        assert_eq!(queues.unsaved_bytes(), 20);
        queues.delete_topic("T").unwrap();
        queues.save_all().unwrap();
        assert_eq!(queues.unsaved_bytes(), 0);
    }
}
