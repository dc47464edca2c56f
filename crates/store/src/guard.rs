//! `lock` and `abort`: one broker per directory, and whether the last one ended in order.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, fcntl_lock};

use crate::OpenError;

/// Directories this process has open: the kernel's record locks do not hold a process back from itself.
static HELD: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The right to use a directory. Java's `FileLock` and ours exclude each other.
pub(crate) struct DirLock {
    root: PathBuf,
    /// Closing any descriptor of the file frees the lock, so this is the only one.
    file: Option<File>,
}

impl DirLock {
    pub(crate) fn take(root: &Path) -> Result<Self, OpenError> {
        fs::create_dir_all(root).map_err(OpenError::io(root))?;
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let lock = Self::lock(root, &options, FlockOperation::NonBlockingLockExclusive)?;
        let path = root.join("lock");
        if let Some(mut file) = lock.file.as_ref() {
            file.write_all(b"lock").map_err(OpenError::io(&path))?;
        }
        Ok(lock)
    }

    /// The right to look at a directory nobody uses, which changes nothing in it. `None` without a lock file: then no broker
    /// has ever started on it.
    pub(crate) fn take_to_read(root: &Path) -> Result<Option<Self>, OpenError> {
        match Self::lock(root, File::options().read(true), FlockOperation::NonBlockingLockShared) {
            Err(OpenError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound && root.is_dir() => Ok(None),
            result => result.map(Some),
        }
    }

    fn lock(root: &Path, options: &fs::OpenOptions, operation: FlockOperation) -> Result<Self, OpenError> {
        let root = root.canonicalize().map_err(OpenError::io(root))?;
        let mut held = HELD.lock();
        if held.contains(&root) {
            return Err(OpenError::Locked(root.display().to_string()));
        }
        let path = root.join("lock");
        let file = options.open(&path).map_err(OpenError::io(&path))?;
        match fcntl_lock(&file, operation) {
            Ok(()) => {}
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => {
                return Err(OpenError::Locked(root.display().to_string()));
            }
            Err(e) => return Err(OpenError::io(&path)(e.into())),
        }
        held.push(root.clone());
        Ok(DirLock { root, file: Some(file) })
    }
}

impl Drop for DirLock {
    fn drop(&mut self) {
        let mut held = HELD.lock();
        self.file = None;
        held.retain(|dir| *dir != self.root);
    }
}

/// The file that stands while the store is open.
pub(crate) struct Abort {
    path: PathBuf,
}

impl Abort {
    pub(crate) fn in_dir(root: &Path) -> Self {
        Abort { path: root.join("abort") }
    }

    pub(crate) fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Writes the file, keeping the text of an older one as Java does.
    pub(crate) fn write(&self) -> io::Result<()> {
        if self.exists() {
            fs::copy(&self.path, self.path.with_file_name("abort.bak"))?;
        }
        fs::write(&self.path, std::process::id().to_string())?;
        File::open(&self.path)?.sync_all()
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}
