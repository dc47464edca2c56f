//! The tree between text and typed values.

use std::borrow::Cow;
use std::cmp::Ordering;

/// A JSON value whose maps may have any value as a key.
#[derive(Debug, Clone, PartialEq)]
pub enum Node<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    /// In the order read; a key may stand more than once.
    Map(Vec<(Node<'a>, Node<'a>)>),
}

impl<'a> Node<'a> {
    /// The last value of a member.
    pub fn member(&self, name: &str) -> Option<&Node<'a>> {
        match self {
            Self::Map(members) => {
                members.iter().rev().find(|(key, _)| matches!(key, Self::Text(key) if key == name)).map(|(_, v)| v)
            }
            _ => None,
        }
    }

    /// The value as standard JSON.
    pub fn to_value(&self) -> serde_json::Value {
        use serde_json::Value;
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::from(*value),
            Self::Float(value) => Value::from(*value),
            Self::Text(value) => Value::from(value.as_ref()),
            Self::List(list) => Value::Array(list.iter().map(Node::to_value).collect()),
            Self::Map(members) => Value::Object(
                members.iter().map(|(key, value)| (key.key_text().into_owned(), value.to_value())).collect(),
            ),
        }
    }

    /// A key as text: its own, or what it would be written as.
    pub(super) fn key_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            other => {
                let text = super::write::compact(other, super::write::Keys::Bare);
                Cow::Owned(String::from_utf8(text).unwrap_or_default())
            }
        }
    }

    /// A total order for sorting keys: kinds apart, whole numbers by value, texts by bytes, objects by their members.
    pub(super) fn key_order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Int(one), Self::Int(two)) => one.cmp(two),
            (Self::Text(one), Self::Text(two)) => one.cmp(two),
            (Self::Float(one), Self::Float(two)) => one.total_cmp(two),
            (Self::Bool(one), Self::Bool(two)) => one.cmp(two),
            (Self::List(one), Self::List(two)) => {
                let items = one.iter().zip(two).map(|(one, two)| one.key_order(two));
                items.fold(Ordering::Equal, Ordering::then).then(one.len().cmp(&two.len()))
            }
            (Self::Map(one), Self::Map(two)) => {
                let members = one.iter().zip(two);
                let order = members.map(|(one, two)| one.0.key_order(&two.0).then_with(|| one.1.key_order(&two.1)));
                order.fold(Ordering::Equal, Ordering::then).then(one.len().cmp(&two.len()))
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Int(_) => 2,
            Self::Float(_) => 3,
            Self::Text(_) => 4,
            Self::List(_) => 5,
            Self::Map(_) => 6,
        }
    }
}

impl serde::Serialize for Node<'_> {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => out.serialize_unit(),
            Self::Bool(value) => out.serialize_bool(*value),
            Self::Int(value) => out.serialize_i64(*value),
            Self::Float(value) => out.serialize_f64(*value),
            Self::Text(value) => out.serialize_str(value),
            Self::List(items) => out.collect_seq(items),
            Self::Map(members) => out.collect_map(members.iter().map(|(key, value)| (key, value))),
        }
    }
}
