//! Opening a stopped store's files for reading.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use super::findings::{Finding, Remedy};
use super::{KnownTopics, OfflineStore};
use crate::checkpoint::Checkpoint;
use crate::commit_log::{CommitLog, Segment, list_files, offset_name};
use crate::deleted::Deleted;
use crate::file::StoreFile;
use crate::guard::{Abort, DirLock};
use crate::{OpenError, StoreConfig};

impl OfflineStore {
    /// Opens a directory nobody uses. Changes nothing in it.
    pub fn open(config: StoreConfig) -> Result<OfflineStore, OpenError> {
        let root = &config.root;
        must_be_a_store(&config)?;
        let lock = DirLock::take_to_read(root)?;
        let mut found_at_open = Vec::new();
        let log = open_log(&config, &mut found_at_open)?;
        let (times, progress) = Checkpoint::look(&root.join("checkpoint")).unwrap_or_default();
        Ok(OfflineStore {
            topics: KnownTopics::read(root),
            deleted: Deleted::load(root, None),
            abort: Abort::in_dir(root).exists(),
            log,
            found_at_open,
            times,
            progress,
            config,
            _lock: lock,
        })
    }
}

/// A wrong path must not be called a store without faults, nor become one.
pub(super) fn must_be_a_store(config: &StoreConfig) -> Result<(), OpenError> {
    if !config.root.is_dir() {
        return Err(OpenError::bad(&config.root, "there is no such folder".into()));
    }
    let dirs = config.commit_log_dirs();
    if dirs.iter().chain(&config.read_only_commit_log_paths).any(|dir| dir.is_dir()) {
        return Ok(());
    }
    let sought: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    Err(OpenError::bad(&config.root, format!("is no store: there is no commit log folder {}", sought.join(" nor "))))
}

fn open_log(config: &StoreConfig, found: &mut Vec<Finding>) -> Result<CommitLog, OpenError> {
    let mut paths = Vec::new();
    for dir in config.commit_log_dirs().iter().chain(&config.read_only_commit_log_paths) {
        list_files(dir, &mut paths)?;
    }
    let mut named: Vec<(u64, PathBuf)> = Vec::with_capacity(paths.len());
    for path in paths {
        match offset_name(&path) {
            Some(start) => named.push((start, path)),
            None => found.push(Finding::new(
                "foreign file among the commit log",
                Remedy::ByHand,
                &path,
                "its name is no offset; move it elsewhere",
            )),
        }
    }
    named.sort();
    named.dedup();
    let last = named.last().map(|(start, _)| *start);
    let mut segments: Vec<Arc<Segment>> = Vec::with_capacity(named.len());
    for (start, path) in named {
        let len = fs::metadata(&path).map_err(OpenError::io(&path))?.len();
        if len != config.commit_log_file_size && !(len == 0 && Some(start) == last) {
            let what = format!("is {len} bytes long, mappedFileSizeCommitLog is {}", config.commit_log_file_size);
            found.push(Finding::new("commit log file of another size", Remedy::ByHand, &path, what).offset(start));
        }
        if let Some(before) = segments.last().filter(|before| start < before.end()) {
            let what = format!("overlaps {}", before.file.path().display());
            found.push(Finding::new("overlapping commit log files", Remedy::ByHand, &path, what).offset(start));
            continue;
        }
        let size = len.min(config.commit_log_file_size);
        if size > 0 {
            let file = StoreFile::open_to_read(&path).map_err(OpenError::io(&path))?;
            segments.push(Arc::new(Segment::new(start, size, file, true)));
        }
    }
    Ok(CommitLog::of(config, segments))
}
