//! JSON as Java's servers and clients write it, which is not quite JSON.
//!
//! What fastjson writes and reads beyond the standard: integer and even object keys in maps, written without quotes;
//! names without quotes or in single ones; trailing commas; comments; numbers in quotes. [`from_slice`] reads all of
//! it, and reads into the type that is asked for: a number from text, text from a number, an enum from its ordinal.
//! Null members count as absent, of repeated members the last one counts, and the names of a struct's fields are found
//! without regard to case, underscores and dashes.
//!
//! There are three ways to write, all with sorted keys and without null members: [`to_legacy`] is fastjson's own
//! dialect, which bodies use; [`to_standard`] quotes every key, for clients that ask for it; [`to_pretty`] is the
//! dialect with line breaks and tabs, for files.

mod de;
mod node;
mod parse;
mod refs;
mod ser;
mod write;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use node::Node;

/// Objects and arrays may be nested this deep.
pub const DEEPEST: usize = 64;

/// Why text could not be read, or a value not be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    #[error("not UTF-8")]
    NotUtf8,
    #[error("{what} at byte {at}")]
    Syntax { what: &'static str, at: usize },
    /// The text is well-formed but does not hold what was asked for.
    #[error("{0}")]
    Content(String),
}

/// Reads a value out of text.
pub fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, JsonError> {
    T::deserialize(de::Reader(&parse_node(text)?))
}

/// Reads a value out of text.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, JsonError> {
    from_slice(text.as_bytes())
}

/// Reads any text into a tree of standard JSON. Keys that are no strings become their text.
pub fn parse(text: &[u8]) -> Result<serde_json::Value, JsonError> {
    parse_node(text).map(|node| node.to_value())
}

/// Reads any text into a tree that keeps the kinds of keys.
pub fn parse_node(text: &[u8]) -> Result<Node<'_>, JsonError> {
    let root = parse::parse(text)?;
    if memchr::memmem::find(text, b"$ref").is_none() { Ok(root) } else { refs::resolve(root) }
}

/// Writes the dialect of bodies: `{"brokerAddrs":{0:"10.0.0.1:10911"}}`.
pub fn to_legacy(value: &(impl Serialize + ?Sized)) -> Vec<u8> {
    write::compact(&tree(value), write::Keys::Bare)
}

/// Writes standard JSON with all keys quoted.
pub fn to_standard(value: &(impl Serialize + ?Sized)) -> Vec<u8> {
    write::compact(&tree(value), write::Keys::Quoted)
}

/// Writes the dialect with line breaks and tabs, as files hold it.
pub fn to_pretty(value: &(impl Serialize + ?Sized)) -> Vec<u8> {
    write::pretty(&tree(value))
}

/// What cannot be written, which only a `Serialize` implementation that fails can bring about, reads as null.
fn tree(value: &(impl Serialize + ?Sized)) -> Node<'static> {
    value.serialize(ser::TreeBuilder).unwrap_or(Node::Null)
}
