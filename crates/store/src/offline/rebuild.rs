//! Building the consume queues and the index again from the commit log. Compacted logs follow them by themselves.
//!
//! They are built in a folder of their own beside the old ones, by the same recovery that a start runs, and put into place
//! when they are whole and on the disk. Dying at any moment leaves a store that opens: with the old queues, or between the
//! renames with none, which the next start builds again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::KnownTopics;
use super::files::must_be_a_store;
use crate::aside;
use crate::deleted;
use crate::file::sync_dir;
use crate::folders::{entries, if_there};
use crate::guard::DirLock;
use crate::progress::Report;
use crate::{OpenError, Store, StoreConfig};

/// Where the new files grow, under the root.
const WORK: &str = "rebuild.tmp";
/// What is built. Nothing may point from an old folder into a new one, nor the other way round.
const FOLDERS: [&str; 4] = ["consumequeue", "batchconsumequeue", "consumequeue_ext", "index"];
/// Bytes of commit log indexed between two looks at the clock.
const INDEX_STEP: u64 = 64 << 20;

/// What was built.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rebuilt {
    pub queues: u64,
    /// Places in the queues; those of lost messages are empty.
    pub units: u64,
    pub index_files: u64,
    pub index_entries: u64,
    /// Where the commit log ends.
    pub log_end: u64,
    /// The folder with the old files, when they were kept.
    pub kept: Option<PathBuf>,
}

/// Builds consume queues and index again. With `keep_old` the old ones are moved to `rebuild.old/<time>` under the root, else
/// they are removed at the end. The commit log is recovered as by a start.
pub fn rebuild(config: &StoreConfig, keep_old: bool) -> Result<Rebuilt, OpenError> {
    let root = &config.root;
    must_be_a_store(config)?;
    let _lock = DirLock::take(root)?;
    let work = root.join(WORK);
    let at_work = OpenError::io(&work);
    // One that died may have left some.
    bring_cut_home(root, &work).map_err(&at_work)?;
    if_there(fs::remove_dir_all(&work)).map_err(&at_work)?;
    fs::create_dir(&work).map_err(&at_work)?;
    // Recovery decides by how the last process ended, and leaves out what was deleted.
    for name in ["checkpoint", "abort", deleted::FILE] {
        if_there(fs::copy(root.join(name), work.join(name))).map_err(&at_work)?;
    }
    let built = build(config, &work);
    bring_cut_home(root, &work).map_err(&at_work)?;
    let mut rebuilt = built?;
    rebuilt.kept = put_into_place(root, &work, keep_old).map_err(OpenError::io(root))?;
    Ok(rebuilt)
}

fn build(config: &StoreConfig, work: &Path) -> Result<Rebuilt, OpenError> {
    let at_work = OpenError::io(work);
    let topics = Arc::new(KnownTopics::read(&config.root));
    let store = Store::open(builder(config, work), topics, Box::new(()))?;
    let end = store.positions.confirmed();
    store.queues.save_all().map_err(&at_work)?;
    let mut report = Report::new(config.screen.clone());
    while store.index.enabled() && store.index.position() < end {
        let to = store.index.position().max(store.log.min_offset()) + INDEX_STEP;
        store.index.catch_up(&store.log, to.min(end)).map_err(&at_work)?;
        report.tick(|| format!("index: at {} of {end}", store.index.position()));
    }
    let queues = store.queues.all();
    let (index_files, index_entries) = store.index.totals();
    let rebuilt = Rebuilt {
        queues: queues.len() as u64,
        units: queues.iter().map(|queue| (queue.end() - queue.min()).max(0) as u64).sum(),
        index_files,
        index_entries,
        log_end: end,
        kept: None,
    };
    store.close();
    if work.join("abort").exists() {
        return Err(OpenError::bad(work, "the new files could not be written to the end; the log says why".into()));
    }
    Ok(rebuilt)
}

/// A store that builds in `work` and deletes nothing of the commit log.
fn builder(config: &StoreConfig, work: &Path) -> StoreConfig {
    StoreConfig {
        root: work.to_path_buf(),
        commit_log_paths: config.commit_log_dirs(),
        enable_compaction: false,
        file_reserved_time: Duration::from_secs(u32::MAX.into()),
        clean_file_forcibly: false,
        ..config.clone()
    }
}

/// What recovery has cut off the commit log is kept where a start keeps it.
fn bring_cut_home(root: &Path, work: &Path) -> io::Result<()> {
    let (from, to) = (work.join(aside::FOLDER), root.join(aside::FOLDER));
    for entry in entries(&from)? {
        let entry = entry?;
        fs::create_dir_all(&to)?;
        fs::rename(entry.path(), to.join(entry.file_name()))?;
        sync_dir(&to)?;
        sync_dir(root)?;
    }
    Ok(())
}

fn put_into_place(root: &Path, work: &Path, keep_old: bool) -> io::Result<Option<PathBuf>> {
    let old = root.join("rebuild.old").join(chrono::Local::now().format("%Y%m%d%H%M%S%3f").to_string());
    fs::create_dir_all(&old)?;
    for name in FOLDERS {
        if_there(fs::rename(root.join(name), old.join(name)))?;
    }
    for name in FOLDERS.iter().rev().filter(|name| work.join(name).exists()) {
        sync_dir(&work.join(name))?;
        fs::rename(work.join(name), root.join(name))?;
    }
    // The marks speak of the new files, so they come last; until then those of the old ones are true of the new ones too.
    fs::rename(work.join("checkpoint"), root.join("checkpoint"))?;
    sync_dir(root)?;
    if_there(fs::remove_file(root.join("abort")))?;
    fs::remove_dir_all(work)?;
    if !keep_old {
        fs::remove_dir_all(&old)?;
    }
    sync_dir(root)?;
    Ok(keep_old.then_some(old))
}
