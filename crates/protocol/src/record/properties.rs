//! The property string: `key 0x01 value 0x02 key 0x01 value 0x02 …`.
//!
//! Properties stay bytes on their way through the servers. What has no key or no value vanishes for every reader, as it
//! does in Java; of a repeated key the last one counts; a value may hold 0x01 but not 0x02.

/// Ends a key.
pub const KEY_END: u8 = 1;
/// Ends a pair; the last one may lack it.
pub const PAIR_END: u8 = 2;

/// All pairs that count as properties, in the order they stand. Repeated keys appear each time.
pub fn iter(properties: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    parts(properties).filter_map(|part| split(part.bytes))
}

/// The value of `key`, or `None` when it is absent or not UTF-8.
pub fn get<'a>(properties: &'a [u8], key: &str) -> Option<&'a str> {
    std::str::from_utf8(get_bytes(properties, key)?).ok()
}

/// The value of `key` as it stands.
pub fn get_bytes<'a>(properties: &'a [u8], key: &str) -> Option<&'a [u8]> {
    iter(properties).filter(|(k, _)| *k == key.as_bytes()).last().map(|(_, value)| value)
}

/// Whether `key` has a value.
pub fn contains(properties: &[u8], key: &str) -> bool {
    iter(properties).any(|(k, _)| k == key.as_bytes())
}

/// Adds a pair at the end without looking for an earlier one of the same key. An empty key or value adds nothing.
pub fn append(properties: &mut Vec<u8>, key: &str, value: &str) {
    if key.is_empty() || value.is_empty() {
        return;
    }
    if properties.last().is_some_and(|last| *last != PAIR_END) {
        properties.push(PAIR_END);
    }
    properties.extend_from_slice(key.as_bytes());
    properties.push(KEY_END);
    properties.extend_from_slice(value.as_bytes());
    properties.push(PAIR_END);
}

/// Puts a pair in place of all of the same key. An empty value only deletes.
pub fn set(properties: &mut Vec<u8>, key: &str, value: &str) {
    delete(properties, key);
    append(properties, key, value);
}

/// Takes out all pairs of `key`; tells whether there was one.
pub fn delete(properties: &mut Vec<u8>, key: &str) -> bool {
    let mut kept = 0;
    let mut read = 0;
    while read < properties.len() {
        let end = find(PAIR_END, &properties[read..]).map_or(properties.len(), |at| read + at + 1);
        let part = &properties[read..end];
        let part = part.strip_suffix(&[PAIR_END]).unwrap_or(part);
        if split(part).is_none_or(|(k, _)| k != key.as_bytes()) {
            properties.copy_within(read..end, kept);
            kept += end - read;
        }
        read = end;
    }
    let found = kept != properties.len();
    properties.truncate(kept);
    found
}

/// Writes pairs as Java does: every pair ended, empty ones left out.
pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in pairs {
        append(&mut out, key, value);
    }
    out
}

struct Part<'a> {
    bytes: &'a [u8],
}

fn parts(properties: &[u8]) -> impl Iterator<Item = Part<'_>> {
    let mut rest = properties;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (bytes, after) = match find(PAIR_END, rest) {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (rest, &rest[..0]),
        };
        rest = after;
        Some(Part { bytes })
    })
}

fn split(part: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = find(KEY_END, part)?;
    let (key, value) = (&part[..at], &part[at + 1..]);
    (!key.is_empty() && !value.is_empty()).then_some((key, value))
}

fn find(byte: u8, bytes: &[u8]) -> Option<usize> {
    memchr::memchr(byte, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(properties: &[u8]) -> Vec<(&str, &str)> {
        iter(properties).map(|(k, v)| (std::str::from_utf8(k).unwrap(), std::str::from_utf8(v).unwrap())).collect()
    }

    #[test]
    fn what_java_drops_is_dropped() {
        assert_eq!(text(b"A\x011\x02B\x01\x02\x012\x02junk\x02C\x01a\x01b"), [("A", "1"), ("C", "a\x01b")]);
        assert_eq!(text(b""), []);
        assert_eq!(text(b"\x02\x02"), []);
        assert_eq!(get(b"A\x011\x02A\x012\x02", "A"), Some("2"));
        assert_eq!(get(b"AB\x011\x02", "A"), None);
    }

    #[test]
    fn pairs_are_set_and_deleted_in_place() {
        let mut all = b"A\x011\x02B\x012\x02A\x013".to_vec();
        set(&mut all, "A", "9");
        assert_eq!(all, b"B\x012\x02A\x019\x02");
        assert!(delete(&mut all, "B") && !delete(&mut all, "C"));
        assert_eq!(all, b"A\x019\x02");
        let mut open = b"A\x011".to_vec();
        append(&mut open, "B", "2");
        append(&mut open, "B", "");
        assert_eq!(open, b"A\x011\x02B\x012\x02");
    }
}
