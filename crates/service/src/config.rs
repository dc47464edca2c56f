//! Configuration: one declaration per key, in Java's names and with Java's defaults.
//!
//! [`config!`](crate::config!) declares the keys of one Java class, [`config_group!`](crate::config_group!) the classes
//! that one file feeds. [`load`] reads the file and reports what is wrong with it; [`Live`] is what a running server
//! reads, and what GET_*_CONFIG and UPDATE_*_CONFIG act on.

mod declare;
mod live;
mod load;
mod names;
mod page;
mod value;

pub use live::{Live, UpdateError, Updated, Version};
pub(crate) use load::read;
pub use load::{ConfigError, Loaded, Source, Warning, load};
pub use names::{BROKER_KEYS, NAMESRV_KEYS, nearest};
pub use page::{markdown, print_all, print_important};
pub use value::Value;

/// When a new value of a key takes effect.
#[allow(non_camel_case_types)] // spelled as in the declarations
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// At once: read on each use.
    live,
    /// At the next start.
    fixed,
    /// Never: accepted because files out there hold it, but it tunes something this server does not have.
    ignored,
}

/// What is known about one key besides its value.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The Java name, as it stands in files.
    pub name: &'static str,
    /// The struct that declares it.
    pub section: &'static str,
    /// Java's word for the type, or the allowed words of an enumeration.
    pub kind: &'static str,
    /// The default for people: the value, or how it is found.
    pub default: &'static str,
    pub life: Life,
    /// Printed by `-m`.
    pub important: bool,
    pub doc: &'static str,
}

/// A value that its key cannot take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}={value}: expected {expected}")]
pub struct BadValue {
    pub key: &'static str,
    pub value: String,
    pub expected: String,
}

/// A set of configuration keys with their values: one declared struct, or a group of them.
pub trait Config: Clone + Default + Send + Sync + 'static {
    /// Every key, in order of declaration. In a group a name may occur twice; both then share one value.
    fn keys() -> Vec<&'static Key>;

    /// The value of `key` as it would stand in a file; `None` if the key is unset or unknown.
    fn get(&self, key: &str) -> Option<String>;

    /// Sets `key` from text; false if the key is unknown.
    fn set(&mut self, key: &str, value: &str) -> Result<bool, BadValue>;

    /// Takes over the values of the keys that may change in a running server.
    fn copy_live(&mut self, from: &Self);

    /// What is declared about `key`.
    fn key(key: &str) -> Option<&'static Key> {
        Self::keys().into_iter().find(|known| known.name == key)
    }
}

#[cfg(test)]
mod tests;
