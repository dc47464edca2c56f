//! Reads JSON bodies.

use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};

/// Parses a body. Standard JSON, which nearly all is, is read in one pass without a tree in between; what is not goes
/// through the reader that knows Java's habits.
pub(super) fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    if !has_reference(text)
        && let Ok(value) = serde_json::from_slice(text)
    {
        return Ok(value);
    }
    protocol::json::from_slice(text).map_err(|error| error.to_string())
}

/// Whether a repeated object stands as `{"$ref":..}`, which only the other reader resolves.
fn has_reference(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'$') {
        rest = &rest[at + 1..];
        if rest.starts_with(b"ref\"") {
            return true;
        }
    }
    false
}

/// The entries of an object in their order, without a map in between. Null members are left out.
#[derive(Debug)]
pub(super) struct Entries<T>(pub Vec<(String, T)>);

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Pairs<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Pairs<T> {
            type Value = Entries<T>;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Option<T>>()? {
                    entries.extend(value.map(|value| (key, value)));
                }
                Ok(Entries(entries))
            }
        }
        from.deserialize_map(Pairs(std::marker::PhantomData))
    }
}
