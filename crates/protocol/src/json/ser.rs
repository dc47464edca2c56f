//! Typed values into a tree, with the keys of every object sorted.

use std::borrow::Cow;

use serde::Serialize;
use serde::ser::{
    self, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple, SerializeTupleStruct,
    SerializeTupleVariant,
};

use super::{JsonError, Node};

type Tree = Node<'static>;

pub(super) struct TreeBuilder;

fn text(value: impl Into<String>) -> Tree {
    Node::Text(Cow::Owned(value.into()))
}

/// Wraps the content of a variant that has one under its name.
fn variant(name: &'static str, content: Tree) -> Tree {
    Node::Map(vec![(Node::Text(Cow::Borrowed(name)), content)])
}

impl ser::Serializer for TreeBuilder {
    type Ok = Tree;
    type Error = JsonError;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Items;
    type SerializeMap = Members;
    type SerializeStruct = Members;
    type SerializeStructVariant = Members;

    fn serialize_bool(self, value: bool) -> Result<Tree, JsonError> {
        Ok(Node::Bool(value))
    }
    fn serialize_i8(self, value: i8) -> Result<Tree, JsonError> {
        Ok(Node::Int(value.into()))
    }
    fn serialize_i16(self, value: i16) -> Result<Tree, JsonError> {
        Ok(Node::Int(value.into()))
    }
    fn serialize_i32(self, value: i32) -> Result<Tree, JsonError> {
        Ok(Node::Int(value.into()))
    }
    fn serialize_i64(self, value: i64) -> Result<Tree, JsonError> {
        Ok(Node::Int(value))
    }
    fn serialize_u8(self, value: u8) -> Result<Tree, JsonError> {
        Ok(Node::Int(value.into()))
    }
    fn serialize_u16(self, value: u16) -> Result<Tree, JsonError> {
        Ok(Node::Int(value.into()))
    }
    fn serialize_u32(self, value: u32) -> Result<Tree, JsonError> {
        Ok(Node::Int(value.into()))
    }
    fn serialize_u64(self, value: u64) -> Result<Tree, JsonError> {
        // Java has no larger whole numbers than i64.
        Ok(Node::Int(i64::try_from(value).unwrap_or(i64::MAX)))
    }
    fn serialize_f32(self, value: f32) -> Result<Tree, JsonError> {
        Ok(Node::Float(value.into()))
    }
    fn serialize_f64(self, value: f64) -> Result<Tree, JsonError> {
        Ok(Node::Float(value))
    }
    fn serialize_char(self, value: char) -> Result<Tree, JsonError> {
        Ok(text(value))
    }
    fn serialize_str(self, value: &str) -> Result<Tree, JsonError> {
        Ok(text(value))
    }
    fn serialize_bytes(self, value: &[u8]) -> Result<Tree, JsonError> {
        Ok(Node::List(value.iter().map(|byte| Node::Int((*byte).into())).collect()))
    }
    fn serialize_none(self) -> Result<Tree, JsonError> {
        Ok(Node::Null)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Tree, JsonError> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<Tree, JsonError> {
        Ok(Node::Null)
    }
    fn serialize_unit_struct(self, _name: &'static str) -> Result<Tree, JsonError> {
        Ok(Node::Null)
    }
    fn serialize_unit_variant(self, _name: &'static str, _at: u32, variant: &'static str) -> Result<Tree, JsonError> {
        Ok(Node::Text(Cow::Borrowed(variant)))
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<Tree, JsonError> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _at: u32,
        name: &'static str,
        value: &T,
    ) -> Result<Tree, JsonError> {
        Ok(variant(name, value.serialize(self)?))
    }
    fn serialize_seq(self, length: Option<usize>) -> Result<Items, JsonError> {
        Ok(Items { list: Vec::with_capacity(length.unwrap_or(0).min(4096)), variant: None })
    }
    fn serialize_tuple(self, length: usize) -> Result<Items, JsonError> {
        self.serialize_seq(Some(length))
    }
    fn serialize_tuple_struct(self, _name: &'static str, length: usize) -> Result<Items, JsonError> {
        self.serialize_seq(Some(length))
    }
    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _at: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Items, JsonError> {
        Ok(Items { list: Vec::new(), variant: Some(variant) })
    }
    fn serialize_map(self, _length: Option<usize>) -> Result<Members, JsonError> {
        Ok(Members { list: Vec::new(), key: Node::Null, variant: None })
    }
    fn serialize_struct(self, _name: &'static str, length: usize) -> Result<Members, JsonError> {
        Ok(Members { list: Vec::with_capacity(length), key: Node::Null, variant: None })
    }
    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _at: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Members, JsonError> {
        Ok(Members { list: Vec::new(), key: Node::Null, variant: Some(variant) })
    }
}

pub(super) struct Items {
    list: Vec<Tree>,
    variant: Option<&'static str>,
}

impl Items {
    fn push(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), JsonError> {
        self.list.push(value.serialize(TreeBuilder)?);
        Ok(())
    }

    fn done(self) -> Tree {
        let list = Node::List(self.list);
        match self.variant {
            Some(name) => variant(name, list),
            None => list,
        }
    }
}

macro_rules! items {
    ($($trait:ident :: $method:ident),*) => {$(
        impl $trait for Items {
            type Ok = Tree;
            type Error = JsonError;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), JsonError> {
                self.push(value)
            }
            fn end(self) -> Result<Tree, JsonError> {
                Ok(self.done())
            }
        }
    )*};
}
items!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);

pub(super) struct Members {
    list: Vec<(Tree, Tree)>,
    key: Tree,
    variant: Option<&'static str>,
}

impl Members {
    fn field(&mut self, key: &'static str, value: &(impl Serialize + ?Sized)) -> Result<(), JsonError> {
        self.list.push((Node::Text(Cow::Borrowed(key)), value.serialize(TreeBuilder)?));
        Ok(())
    }

    fn done(mut self) -> Tree {
        self.list.sort_by(|one, two| one.0.key_order(&two.0));
        let map = Node::Map(self.list);
        match self.variant {
            Some(name) => variant(name, map),
            None => map,
        }
    }
}

impl SerializeMap for Members {
    type Ok = Tree;
    type Error = JsonError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), JsonError> {
        self.key = key.serialize(TreeBuilder)?;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), JsonError> {
        let key = std::mem::replace(&mut self.key, Node::Null);
        self.list.push((key, value.serialize(TreeBuilder)?));
        Ok(())
    }

    fn end(self) -> Result<Tree, JsonError> {
        Ok(self.done())
    }
}

macro_rules! members {
    ($($trait:ident),*) => {$(
        impl $trait for Members {
            type Ok = Tree;
            type Error = JsonError;
            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), JsonError> {
                self.field(key, value)
            }
            fn end(self) -> Result<Tree, JsonError> {
                Ok(self.done())
            }
        }
    )*};
}
members!(SerializeStruct, SerializeStructVariant);

impl ser::Error for JsonError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::Content(message.to_string())
    }
}
