//! Files and folders that need not be there.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

/// `None` when what was asked for does not exist.
pub(crate) fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// What a folder holds. The error names the folder.
pub(crate) fn entries(dir: &Path) -> io::Result<impl Iterator<Item = io::Result<DirEntry>>> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", dir.display()));
    Ok(if_there(fs::read_dir(dir)).map_err(named)?.into_iter().flatten())
}

/// The folders `<topic>/<queue id>` under a root, in order. Other names are passed over.
pub(crate) fn queue_folders(root: &Path) -> io::Result<Vec<(String, i32, PathBuf)>> {
    let mut folders = Vec::new();
    for (topic, path) in sub_folders(root)? {
        for (queue, path) in sub_folders(&path)? {
            folders.extend(queue.parse().ok().map(|id| (topic.clone(), id, path)));
        }
    }
    folders.sort();
    Ok(folders)
}

/// The folders in a folder, in no order.
pub(crate) fn sub_folders(dir: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut folders = Vec::new();
    for entry in entries(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.extend(entry.file_name().into_string().ok().map(|name| (name, entry.path())));
        }
    }
    Ok(folders)
}
