//! One JSON file under `config/`: read with its `.bak` as a fall-back, rewritten whole when its table changes.

use std::path::PathBuf;

use parking_lot::Mutex;
use serde::de::DeserializeOwned;

/// Why a table could not be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    #[error(transparent)]
    Load(service::files::LoadError<protocol::json::JsonError>),
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: std::io::Error },
}

/// A table's file. Writers that meet share one write: the later of two states covers the earlier.
pub struct ConfigFile {
    path: PathBuf,
    /// The newest generation of the table that is in the file.
    written: Mutex<u64>,
}

impl ConfigFile {
    pub fn new(path: PathBuf) -> Self {
        Self { path, written: Mutex::new(0) }
    }

    /// Reads the table: the file, or else its `.bak`; `None` when neither holds anything, as on the first start.
    pub fn load<T: DeserializeOwned>(&self) -> Result<Option<T>, ConfigFileError> {
        service::files::load(&self.path, protocol::json::from_slice).map_err(ConfigFileError::Load)
    }

    /// Makes sure the file holds generation `generation` of the table or a later one. `encode` gives the current
    /// generation and its text.
    pub fn write(&self, generation: u64, encode: impl FnOnce() -> (u64, Vec<u8>)) -> Result<(), ConfigFileError> {
        let mut written = self.written.lock();
        if *written >= generation {
            return Ok(());
        }
        let (now, text) = encode();
        service::files::persist(&self.path, &text)
            .map_err(|error| ConfigFileError::Write { path: self.path.clone(), error })?;
        *written = now;
        Ok(())
    }
}
