//! What a message is found by, and the hashes under which the index knows it.

use protocol::record::{properties, sys_flag};

/// Java's hash of a key text for the index: never negative.
pub(crate) fn key_hash(prefix: i32, key: &[u8]) -> i32 {
    let step = |hash: i32, unit: u16| hash.wrapping_mul(31).wrapping_add(i32::from(unit));
    let hash = if key.is_ascii() {
        key.iter().fold(prefix, |hash, byte| step(hash, u16::from(*byte)))
    } else {
        String::from_utf8_lossy(key).encode_utf16().fold(prefix, step)
    };
    hash.checked_abs().unwrap_or(0)
}

/// Java's hash state after `topic#`.
pub(crate) fn key_prefix(topic: &str) -> i32 {
    protocol::record::java_hash(topic).wrapping_mul(31).wrapping_add(i32::from(b'#'))
}

/// What a message is found by.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Keys<'a> {
    pub(crate) unique: Option<&'a [u8]>,
    /// Separated by blanks.
    pub(crate) keys: Option<&'a [u8]>,
    pub(crate) tags: Option<&'a [u8]>,
}

impl<'a> Keys<'a> {
    pub(crate) fn of(record_properties: &'a [u8]) -> Self {
        let mut found = Keys::default();
        for (key, value) in properties::iter(record_properties) {
            match key {
                b"UNIQ_KEY" => found.unique = Some(value),
                b"KEYS" => found.keys = Some(value),
                b"TAGS" => found.tags = Some(value),
                _ => {}
            }
        }
        found
    }
}

/// The hash of a tag text, which Java keeps apart from keys as `topic#T#tags`.
pub(crate) fn tag_key_hash(prefix: i32, tags: &[u8]) -> i32 {
    let prefix = b"T#".iter().fold(prefix, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(*byte)));
    key_hash(prefix, tags)
}

/// The hashes of a message's unique key, keys and tags, in this order. Rolled back transactions have none.
pub(crate) fn key_hashes(prefix: i32, flags: i32, of: &Keys<'_>, put: &mut dyn FnMut(i32)) {
    if sys_flag::transaction(flags) == sys_flag::TRANSACTION_ROLLBACK {
        return;
    }
    if let Some(unique) = of.unique {
        put(key_hash(prefix, unique));
    }
    for key in of.keys.unwrap_or_default().split(|b| *b == b' ').filter(|k| !k.is_empty()) {
        put(key_hash(prefix, key));
    }
    if let Some(tags) = of.tags {
        put(tag_key_hash(prefix, tags));
    }
}
