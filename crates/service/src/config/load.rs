//! From a file and the command line to values, warnings and errors.

use std::fmt;
use std::path::{Path, PathBuf};

use super::live::Live;
use super::names::nearest;
use super::{BadValue, Config, Life};
use crate::properties::{Document, Malformed};

/// Where the values of a server come from.
#[derive(Debug, Clone, Default)]
pub struct Source<'a> {
    /// The `-c` file; UPDATE_*_CONFIG rewrites it.
    pub file: Option<&'a Path>,
    /// `key=value` pairs of the command line; they win over the file.
    pub overrides: &'a [(String, String)],
    /// Java's keys of this server, one a line: [`BROKER_KEYS`](super::BROKER_KEYS) or
    /// [`NAMESRV_KEYS`](super::NAMESRV_KEYS).
    pub known: &'static str,
}

/// A configuration that can be served, and what its owner should be told about it.
pub struct Loaded<C: Config> {
    pub live: Live<C>,
    pub warnings: Vec<Warning>,
}

/// Something in a file that has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// Java knows the key, this server does not.
    NotImplemented { place: String, key: String },
    /// The key tunes something this server does not have.
    NoEffect { place: String, key: String },
    /// Nobody knows the key.
    Unknown { place: String, key: String, nearest: Option<&'static str> },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::NotImplemented { place, key } => {
                write!(f, "{place}: {key} is known to RocketMQ but not implemented here; it has no effect")
            }
            Warning::NoEffect { place, key } => {
                write!(f, "{place}: {key} is accepted but has no effect in this server")
            }
            Warning::Unknown { place, key, nearest: Some(nearest) } => {
                write!(f, "{place}: unknown key {key}; did you mean {nearest}?")
            }
            Warning::Unknown { place, key, nearest: None } => write!(f, "{place}: unknown key {key}; it has no effect"),
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {}: {error}", path.display())]
    Read { path: PathBuf, error: std::io::Error },
    #[error("{}:{}: malformed \\uxxxx escape", path.display(), error.line)]
    Malformed { path: PathBuf, error: Malformed },
    /// All bad values at once, each with its place.
    #[error("{}", lines(.0))]
    Values(Vec<(String, BadValue)>),
}

fn lines(bad: &[(String, BadValue)]) -> String {
    bad.iter().map(|(place, bad)| format!("{place}: {bad}")).collect::<Vec<_>>().join("\n")
}

/// Reads the file, then the overrides, over the values of `base`; then `finish` completes what depends on them.
pub fn load<C: Config>(
    base: C,
    source: &Source<'_>,
    finish: impl FnOnce(&mut C) -> Result<(), ConfigError>,
) -> Result<Loaded<C>, ConfigError> {
    let document = match source.file {
        Some(path) => read(path)?,
        None => Document::default(),
    };
    let mut values = base;
    let mut warnings = Vec::new();
    let mut bad = Vec::new();
    let mut apply = |place: String, key: &str, value: &str| match values.set(key, value) {
        Ok(true) if C::key(key).is_some_and(|key| key.life == Life::ignored) => {
            warnings.push(Warning::NoEffect { place, key: key.to_string() });
        }
        Ok(true) => {}
        Ok(false) => warnings.push(unknown::<C>(place, key, source.known)),
        Err(error) => bad.push((place, error)),
    };
    for entry in document.entries() {
        // a bad value counts only if it is the last of its key
        if document.get(&entry.key) == Some(entry) {
            let file = source.file.map(|path| path.display().to_string()).unwrap_or_default();
            apply(format!("{file}:{}", entry.line), &entry.key, &entry.value);
        }
    }
    for (key, value) in source.overrides {
        apply("command line".to_string(), key, value);
    }
    if !bad.is_empty() {
        return Err(ConfigError::Values(bad));
    }
    finish(&mut values)?;
    let live = Live::with_file(values, source.known, source.file.map(Path::to_path_buf), document);
    Ok(Loaded { live, warnings })
}

/// Reads a properties file.
pub(crate) fn read(path: &Path) -> Result<Document, ConfigError> {
    let text = std::fs::read(path).map_err(|error| ConfigError::Read { path: path.to_path_buf(), error })?;
    Document::parse(&text).map_err(|error| ConfigError::Malformed { path: path.to_path_buf(), error })
}

fn unknown<C: Config>(place: String, key: &str, known: &'static str) -> Warning {
    if known.lines().any(|name| name == key) {
        return Warning::NotImplemented { place, key: key.to_string() };
    }
    let declared = C::keys().into_iter().map(|key| key.name);
    Warning::Unknown { place, key: key.to_string(), nearest: nearest(key, declared.chain(known.lines())) }
}
