//! The file calls that can fail, with one place to make them fail in tests.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Test hook under every write and sync of the store. The default passes everything through. Folders are synced too, for the
/// names in them.
pub trait Faults: Send + Sync {
    /// Asked before `data` goes to `path` at `offset`. `Ok(n)` lets the first `n` bytes through (a short write when less
    /// than all); `Err` fails the call.
    fn before_write(&self, path: &Path, offset: u64, data: &[u8]) -> io::Result<usize> {
        let _ = (path, offset);
        Ok(data.len())
    }
    /// Asked before a sync of `path`.
    fn before_sync(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Ok(())
    }
    /// Told after a successful sync.
    fn after_sync(&self, path: &Path) {
        let _ = path;
    }
    /// Asked before a file is created at its full size.
    fn before_create(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Ok(())
    }
    /// Asked before a name of a compacted log's file is changed or removed, and before a small file is replaced.
    fn before_change(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Ok(())
    }
}

/// An open file of the store that is written at given positions.
pub(crate) struct StoreFile {
    file: File,
    path: PathBuf,
    faults: Option<Arc<dyn Faults>>,
}

impl StoreFile {
    /// Opens an existing file for reading and writing.
    pub(crate) fn open(path: &Path, faults: Option<Arc<dyn Faults>>) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        Ok(StoreFile { file, path: path.to_path_buf(), faults })
    }

    /// Opens an existing file for reading alone.
    pub(crate) fn open_to_read(path: &Path) -> io::Result<Self> {
        Ok(StoreFile { file: File::open(path)?, path: path.to_path_buf(), faults: None })
    }

    /// Opens or creates a file of exactly `size` bytes; new bytes are a sparse zero tail.
    pub(crate) fn create(path: &Path, size: u64, faults: Option<Arc<dyn Faults>>) -> io::Result<Self> {
        if let Some(faults) = &faults {
            faults.before_create(path)?;
        }
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        if file.metadata()?.len() != size {
            file.set_len(size)?;
        }
        Ok(StoreFile { file, path: path.to_path_buf(), faults })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Writes all of `data` at `offset`. On an error an unknown part of it is in the file.
    pub(crate) fn write_all_at(&self, mut data: &[u8], mut offset: u64) -> io::Result<()> {
        let Some(faults) = &self.faults else { return self.file.write_all_at(data, offset) };
        while !data.is_empty() {
            let allowed = faults.before_write(&self.path, offset, data)?.min(data.len());
            if allowed == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            let (now, later) = data.split_at(allowed);
            self.file.write_all_at(now, offset)?;
            data = later;
            offset += allowed as u64;
        }
        Ok(())
    }

    /// Reads up to `buf.len()` bytes; fewer only at the end of the file.
    pub(crate) fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.file.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    /// Syncs a folder with this file's hooks.
    pub(crate) fn sync_names(&self, dir: &Path) -> io::Result<()> {
        sync_names(dir, &self.faults)
    }

    /// `fdatasync`.
    pub(crate) fn sync(&self) -> io::Result<()> {
        sync(&self.path, &self.faults, || self.file.sync_data())
    }
}

/// Replaces a small file: after a crash it has the old or the new content.
pub(crate) fn replace(path: &Path, content: &[u8], faults: &Option<Arc<dyn Faults>>) -> io::Result<()> {
    let new = path.with_extension("tmp");
    let file = StoreFile::create(&new, content.len() as u64, faults.clone())?;
    file.write_all_at(content, 0)?;
    file.sync()?;
    if let Some(faults) = faults {
        faults.before_change(path)?;
    }
    std::fs::rename(&new, path)?;
    path.parent().map_or(Ok(()), |dir| sync_names(dir, faults))
}

/// Syncs a folder, so that names made or removed in it survive the machine.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// The same with its hooks.
pub(crate) fn sync_names(dir: &Path, faults: &Option<Arc<dyn Faults>>) -> io::Result<()> {
    sync(dir, faults, || sync_dir(dir))
}

/// A sync of `path` with its hooks.
pub(crate) fn sync(
    path: &Path,
    faults: &Option<Arc<dyn Faults>>,
    call: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let Some(faults) = faults else { return call() };
    faults.before_sync(path)?;
    call()?;
    faults.after_sync(path);
    Ok(())
}
