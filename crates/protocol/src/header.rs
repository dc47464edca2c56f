//! Typed headers: a struct's fields flattened into a frame's extension fields under their Java names.

use std::borrow::Cow;

use crate::fields::{ExtFields, FieldSink};

/// Why the extension fields do not make a header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("the field {0} is missing")]
    Missing(&'static str),
    #[error("the field {field} cannot hold {value:?}")]
    Invalid { field: &'static str, value: String },
}

/// A header that can be read from and written into extension fields.
pub trait Header: Sized {
    fn read(fields: &ExtFields) -> Result<Self, HeaderError>;
    fn write(&self, sink: &mut dyn FieldSink);
}

/// A value that stands in one extension field.
pub trait FieldValue: Sized {
    fn parse(text: &str) -> Option<Self>;
    fn put(&self, key: &'static str, sink: &mut dyn FieldSink);
    /// What a missing field reads as; `None` makes it an error.
    fn absent() -> Option<Self> {
        None
    }
}

impl FieldValue for String {
    fn parse(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
    fn put(&self, key: &'static str, sink: &mut dyn FieldSink) {
        sink.text(key, self);
    }
}

impl FieldValue for i32 {
    fn parse(text: &str) -> Option<Self> {
        text.trim().parse().ok()
    }
    fn put(&self, key: &'static str, sink: &mut dyn FieldSink) {
        sink.int(key, (*self).into());
    }
}

impl FieldValue for i64 {
    fn parse(text: &str) -> Option<Self> {
        text.trim().parse().ok()
    }
    fn put(&self, key: &'static str, sink: &mut dyn FieldSink) {
        sink.int(key, *self);
    }
}

impl FieldValue for bool {
    fn parse(text: &str) -> Option<Self> {
        // Java's Boolean.parseBoolean: everything but "true" is false.
        Some(text.trim().eq_ignore_ascii_case("true"))
    }
    fn put(&self, key: &'static str, sink: &mut dyn FieldSink) {
        sink.flag(key, *self);
    }
}

impl<T: FieldValue> FieldValue for Option<T> {
    fn parse(text: &str) -> Option<Self> {
        T::parse(text).map(Some)
    }
    fn put(&self, key: &'static str, sink: &mut dyn FieldSink) {
        if let Some(value) = self {
            value.put(key, sink);
        }
    }
    fn absent() -> Option<Self> {
        Some(None)
    }
}

/// Declares headers. Each field names its key on the wire; `Option` fields may be absent, `= value` gives a default
/// for a field that Java sends always but reads leniently. `Default` gives those defaults too, and zero or empty text to
/// the required fields.
///
/// ```
/// protocol::headers! {
///     /// Asks for a queue's largest offset.
///     pub struct GetMaxOffset {
///         topic: String => "topic",
///         queue_id: i32 => "queueId" = 0,
///         committed: Option<bool> => "committed",
///     }
/// }
/// ```
#[macro_export]
macro_rules! headers {
    ($($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$fmeta:meta])* $field:ident : $ty:ty => $key:literal $(= $default:expr)?),* $(,)?
    })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[$fmeta])* pub $field: $ty,)*
        }

        impl $crate::Header for $name {
            fn read(fields: &$crate::ExtFields) -> Result<Self, $crate::HeaderError> {
                $(let mut $field: Option<$ty> = None;)*
                for (key, value) in fields.iter() {
                    match key.as_ref() {
                        $($key => {
                            let parsed = <$ty as $crate::header::FieldValue>::parse(&value);
                            if parsed.is_none() {
                                return Err($crate::HeaderError::Invalid { field: $key, value: value.into_owned() });
                            }
                            $field = parsed;
                        })*
                        _ => {}
                    }
                }
                Ok(Self {
                    $($field: match $field {
                        Some(value) => value,
                        None => $crate::headers!(@absent $ty, $key $(, $default)?),
                    },)*
                })
            }

            fn write(&self, sink: &mut dyn $crate::FieldSink) {
                $($crate::header::FieldValue::put(&self.$field, $key, sink);)*
                let _ = sink;
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $crate::headers!(@default $ty $(, $default)?),)* }
            }
        }
    )*};
    (@default $ty:ty, $default:expr) => { $default };
    (@default $ty:ty) => { <$ty>::default() };
    (@absent $ty:ty, $key:literal, $default:expr) => { $default };
    (@absent $ty:ty, $key:literal) => {
        match <$ty as $crate::header::FieldValue>::absent() {
            Some(value) => value,
            None => return Err($crate::HeaderError::Missing($key)),
        }
    };
}

/// Declares the borrowed counterpart of a header for the requests that come by the thousand: texts are read in place,
/// in one pass over the fields, and nothing is allocated unless a text has escapes. A field may have several keys.
macro_rules! borrowed_headers {
    ($($(#[$meta:meta])* pub struct $name:ident<$life:lifetime> {
        $($(#[$fmeta:meta])* $field:ident : $ty:ty => $key:literal $(| $other:literal)? $(= $default:expr)?),* $(,)?
    })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name<$life> {
            $($(#[$fmeta])* pub $field: $ty,)*
        }

        impl<$life> $name<$life> {
            /// Reads the header out of a frame's extension fields.
            pub fn read(fields: &$life $crate::ExtFields) -> Result<Self, $crate::HeaderError> {
                $(let mut $field: Option<$ty> = None;)*
                for (key, value) in fields.iter() {
                    match key.as_ref() {
                        $($key $(| $other)? => {
                            $field = Some($crate::header::BorrowedValue::parse(value).map_err(|value| {
                                $crate::HeaderError::Invalid { field: $key, value: value.into_owned() }
                            })?);
                        })*
                        _ => {}
                    }
                }
                Ok(Self {
                    $($field: match $field {
                        Some(value) => value,
                        None => $crate::header::borrowed_headers!(@absent $key $(, $default)?),
                    },)*
                })
            }

            /// Writes the header under its first keys.
            pub fn write(&self, sink: &mut dyn $crate::FieldSink) {
                $($crate::header::BorrowedValue::put(&self.$field, $key, sink);)*
            }
        }
    )*};
    (@absent $key:literal, $default:expr) => { $default };
    (@absent $key:literal) => { return Err($crate::HeaderError::Missing($key)) };
}
pub(crate) use borrowed_headers;

/// A value of a borrowed header. What cannot be read is handed back.
pub(crate) trait BorrowedValue<'a>: Sized {
    fn parse(text: Cow<'a, str>) -> Result<Self, Cow<'a, str>>;
    fn put(&self, key: &'static str, sink: &mut dyn FieldSink);
}

impl<'a> BorrowedValue<'a> for Cow<'a, str> {
    fn parse(text: Cow<'a, str>) -> Result<Self, Cow<'a, str>> {
        Ok(text)
    }
    fn put(&self, key: &'static str, sink: &mut dyn FieldSink) {
        sink.text(key, self);
    }
}

impl<'a, T: BorrowedValue<'a>> BorrowedValue<'a> for Option<T> {
    fn parse(text: Cow<'a, str>) -> Result<Self, Cow<'a, str>> {
        T::parse(text).map(Some)
    }
    fn put(&self, key: &'static str, sink: &mut dyn FieldSink) {
        if let Some(value) = self {
            value.put(key, sink);
        }
    }
}

macro_rules! borrowed_numbers {
    ($($ty:ty),*) => {$(
        impl<'a> BorrowedValue<'a> for $ty {
            fn parse(text: Cow<'a, str>) -> Result<Self, Cow<'a, str>> {
                <Self as FieldValue>::parse(&text).ok_or(text)
            }
            fn put(&self, key: &'static str, sink: &mut dyn FieldSink) {
                FieldValue::put(self, key, sink);
            }
        }
    )*};
}
borrowed_numbers!(i32, i64, bool);
