//! A tree into typed values, with Java's readiness to convert.

use std::borrow::Cow;

use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};

use super::{JsonError, Node};

/// Reads typed values out of a node.
#[derive(Clone, Copy)]
pub(super) struct Reader<'n, 'a>(pub(super) &'n Node<'a>);

impl<'n> Reader<'n, '_> {
    fn mismatch<T>(self, wanted: &str) -> Result<T, JsonError> {
        let found = match self.0 {
            Node::Null => "null",
            Node::Bool(_) => "a boolean",
            Node::Int(_) | Node::Float(_) => "a number",
            Node::Text(_) => "a text",
            Node::List(_) => "an array",
            Node::Map(_) => "an object",
        };
        Err(JsonError::Content(format!("expected {wanted}, found {found}")))
    }

    /// Numbers as they are, numbers in quotes, booleans as 0 and 1, null and empty text as 0.
    fn int(self) -> Result<i64, JsonError> {
        match self.0 {
            Node::Null => Ok(0),
            Node::Bool(value) => Ok((*value).into()),
            Node::Int(value) => Ok(*value),
            Node::Float(value) => Ok(*value as i64),
            Node::Text(text) => {
                let text = text.trim();
                if text.is_empty() || text == "null" {
                    return Ok(0);
                }
                match text.parse::<i64>() {
                    Ok(value) => Ok(value),
                    Err(_) => match text.parse::<f64>() {
                        Ok(value) => Ok(value as i64),
                        Err(_) => self.mismatch("a whole number"),
                    },
                }
            }
            _ => self.mismatch("a whole number"),
        }
    }

    fn float(self) -> Result<f64, JsonError> {
        match self.0 {
            Node::Float(value) => Ok(*value),
            Node::Text(text) if text.contains(['.', 'e', 'E']) => {
                text.trim().parse().or_else(|_| self.mismatch("a number"))
            }
            _ => self.int().map(|value| value as f64),
        }
    }

    fn boolean(self) -> Result<bool, JsonError> {
        match self.0 {
            Node::Null => Ok(false),
            Node::Bool(value) => Ok(*value),
            Node::Int(value) => Ok(*value != 0),
            Node::Text(text) => Ok(text.eq_ignore_ascii_case("true") || text == "1" || text.eq_ignore_ascii_case("y")),
            _ => self.mismatch("a boolean"),
        }
    }

    /// Scalars as text; objects and arrays as the JSON they are.
    fn text(self) -> Cow<'n, str> {
        match self.0 {
            Node::Null => Cow::Borrowed(""),
            Node::Bool(true) => Cow::Borrowed("true"),
            Node::Bool(false) => Cow::Borrowed("false"),
            other => other.key_text(),
        }
    }
}

macro_rules! whole {
    ($($method:ident $visit:ident $ty:ty),*) => {$(
        fn $method<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, JsonError> {
            let value = self.int()?;
            match <$ty>::try_from(value) {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(JsonError::Content(format!("{value} is out of range"))),
            }
        }
    )*};
}

impl<'n> de::Deserializer<'n> for Reader<'n, '_> {
    type Error = JsonError;

    fn deserialize_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, JsonError> {
        match self.0 {
            Node::Null => visitor.visit_unit(),
            Node::Bool(value) => visitor.visit_bool(*value),
            Node::Int(value) => visitor.visit_i64(*value),
            Node::Float(value) => visitor.visit_f64(*value),
            Node::Text(text) => visitor.visit_str(text),
            Node::List(_) => self.deserialize_seq(visitor),
            Node::Map(_) => self.deserialize_map(visitor),
        }
    }

    whole! {
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64, deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64
    }

    fn deserialize_bool<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_bool(self.boolean()?)
    }

    fn deserialize_f32<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_f64(self.float()?)
    }

    fn deserialize_f64<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_f64(self.float()?)
    }

    fn deserialize_char<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_str(&self.text())
    }

    fn deserialize_str<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, JsonError> {
        match self.text() {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_string<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, JsonError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, JsonError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, JsonError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, JsonError> {
        match self.0 {
            Node::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'n>>(self, _name: &'static str, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'n>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, JsonError> {
        match self.0 {
            Node::List(items) => visitor.visit_seq(Items { rest: items.iter() }),
            Node::Null => visitor.visit_seq(Items { rest: [].iter() }),
            _ => self.mismatch("an array"),
        }
    }

    fn deserialize_tuple<V: Visitor<'n>>(self, _length: usize, visitor: V) -> Result<V::Value, JsonError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'n>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, JsonError> {
        match self.0 {
            Node::Map(members) => visitor.visit_map(Members { rest: members.iter(), value: None }),
            Node::Null => visitor.visit_map(Members { rest: [].iter(), value: None }),
            _ => self.mismatch("an object"),
        }
    }

    fn deserialize_struct<V: Visitor<'n>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        let Node::Map(members) = self.0 else { return self.mismatch("an object") };
        let mut found: Vec<(&'static str, &'n Node<'_>)> = Vec::with_capacity(fields.len());
        for (key, value) in members {
            let (Some(name), false) = (field(key, fields), matches!(value, Node::Null)) else { continue };
            match found.iter_mut().find(|(known, _)| *known == name) {
                Some(slot) => slot.1 = value,
                None => found.push((name, value)),
            }
        }
        visitor.visit_map(Fields { rest: found.into_iter(), value: None })
    }

    fn deserialize_enum<V: Visitor<'n>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        let name = match self.0 {
            Node::Int(ordinal) => match usize::try_from(*ordinal).ok().and_then(|at| variants.get(at)) {
                Some(name) => Cow::Borrowed(*name),
                None => return Err(JsonError::Content(format!("{ordinal} is none of {variants:?}"))),
            },
            _ => self.text(),
        };
        let known = variants.iter().find(|known| known.eq_ignore_ascii_case(&name));
        let name = known.map_or(name.as_ref(), |known| known);
        visitor.visit_enum(IntoDeserializer::<JsonError>::into_deserializer(name))
    }

    fn deserialize_identifier<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, JsonError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_unit()
    }
}

/// The field a key means: the one of that name, or of that name but for case, underscores and dashes.
fn field(key: &Node<'_>, fields: &'static [&'static str]) -> Option<&'static str> {
    let Node::Text(key) = key else { return None };
    if let Some(name) = fields.iter().find(|name| *name == key) {
        return Some(name);
    }
    let plain = |text: &str| -> String {
        text.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase()).collect()
    };
    let key = plain(key);
    fields.iter().find(|name| plain(name) == key).copied()
}

struct Items<'n, 'a> {
    rest: std::slice::Iter<'n, Node<'a>>,
}

impl<'n> de::SeqAccess<'n> for Items<'n, '_> {
    type Error = JsonError;

    fn next_element_seed<T: DeserializeSeed<'n>>(&mut self, seed: T) -> Result<Option<T::Value>, JsonError> {
        self.rest.next().map(|item| seed.deserialize(Reader(item))).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Members<'n, 'a> {
    rest: std::slice::Iter<'n, (Node<'a>, Node<'a>)>,
    value: Option<&'n Node<'a>>,
}

impl<'n> de::MapAccess<'n> for Members<'n, '_> {
    type Error = JsonError;

    fn next_key_seed<K: DeserializeSeed<'n>>(&mut self, seed: K) -> Result<Option<K::Value>, JsonError> {
        let Some((key, value)) = self.rest.by_ref().find(|(_, value)| !matches!(value, Node::Null)) else {
            return Ok(None);
        };
        self.value = Some(value);
        seed.deserialize(Reader(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'n>>(&mut self, seed: V) -> Result<V::Value, JsonError> {
        seed.deserialize(Reader(self.value.take().unwrap_or(&Node::Null)))
    }
}

struct Fields<'n, 'a> {
    rest: std::vec::IntoIter<(&'static str, &'n Node<'a>)>,
    value: Option<&'n Node<'a>>,
}

impl<'n> de::MapAccess<'n> for Fields<'n, '_> {
    type Error = JsonError;

    fn next_key_seed<K: DeserializeSeed<'n>>(&mut self, seed: K) -> Result<Option<K::Value>, JsonError> {
        let Some((name, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some(value);
        seed.deserialize(IntoDeserializer::<JsonError>::into_deserializer(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'n>>(&mut self, seed: V) -> Result<V::Value, JsonError> {
        seed.deserialize(Reader(self.value.take().unwrap_or(&Node::Null)))
    }
}

impl de::Error for JsonError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::Content(message.to_string())
    }
}
