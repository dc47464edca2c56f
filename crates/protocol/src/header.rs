//! Typed headers: a struct's fields flattened into a frame's extension fields under their Java names.

use std::borrow::Cow;

use crate::fields::{ExtFields, FieldSink, Raw};

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
        whole(text.as_bytes()).and_then(|value| Self::try_from(value).ok())
    }
    fn put(&self, key: &'static str, sink: &mut dyn FieldSink) {
        sink.int(key, (*self).into());
    }
}

impl FieldValue for i64 {
    fn parse(text: &str) -> Option<Self> {
        whole(text.as_bytes())
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
/// in one pass over the fields, and nothing is allocated unless a text has escapes.
macro_rules! borrowed_headers {
    ($($(#[$meta:meta])* pub struct $name:ident<$life:lifetime> {
        $($(#[$fmeta:meta])* $field:ident : $ty:ty => $key:literal $(= $default:expr)?),* $(,)?
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
                for (key, value) in fields.raw() {
                    let key = key.plain();
                    $(if key.as_ref() == $crate::header::borrowed_headers!(@bytes $key) {
                        $field = Some($crate::header::BorrowedValue::parse(value).map_err(|value| {
                            $crate::HeaderError::Invalid { field: $key, value: value.into_owned() }
                        })?);
                        continue;
                    })*
                }
                Ok(Self {
                    $($field: match $field {
                        Some(value) => value,
                        None => $crate::header::borrowed_headers!(@absent $key $(, $default)?),
                    },)*
                })
            }

            /// Writes the header.
            pub fn write(&self, sink: &mut dyn $crate::FieldSink) {
                $($crate::header::BorrowedValue::put(&self.$field, $key, sink);)*
            }
        }
    )*};
    (@bytes $key:literal) => { const { str::as_bytes($key) } };
    (@absent $key:literal, $default:expr) => { $default };
    (@absent $key:literal) => { return Err($crate::HeaderError::Missing($key)) };
}
pub(crate) use borrowed_headers;

/// A value of a borrowed header. What cannot be read is handed back.
pub(crate) trait BorrowedValue<'a>: Sized {
    fn parse(raw: Raw<'a>) -> Result<Self, Cow<'a, str>>;
    fn put(&self, key: &'static str, sink: &mut dyn FieldSink);
}

impl<'a> BorrowedValue<'a> for Cow<'a, str> {
    #[inline]
    fn parse(raw: Raw<'a>) -> Result<Self, Cow<'a, str>> {
        Ok(raw.text())
    }
    fn put(&self, key: &'static str, sink: &mut dyn FieldSink) {
        sink.text(key, self);
    }
}

impl<'a, T: BorrowedValue<'a>> BorrowedValue<'a> for Option<T> {
    #[inline]
    fn parse(raw: Raw<'a>) -> Result<Self, Cow<'a, str>> {
        T::parse(raw).map(Some)
    }
    fn put(&self, key: &'static str, sink: &mut dyn FieldSink) {
        if let Some(value) = self {
            value.put(key, sink);
        }
    }
}

impl<'a> BorrowedValue<'a> for i64 {
    #[inline]
    fn parse(raw: Raw<'a>) -> Result<Self, Cow<'a, str>> {
        whole(&raw.plain()).ok_or_else(|| raw.text())
    }
    fn put(&self, key: &'static str, sink: &mut dyn FieldSink) {
        sink.int(key, *self);
    }
}

impl<'a> BorrowedValue<'a> for i32 {
    #[inline]
    fn parse(raw: Raw<'a>) -> Result<Self, Cow<'a, str>> {
        whole(&raw.plain()).and_then(|value| Self::try_from(value).ok()).ok_or_else(|| raw.text())
    }
    fn put(&self, key: &'static str, sink: &mut dyn FieldSink) {
        sink.int(key, (*self).into());
    }
}

impl<'a> BorrowedValue<'a> for bool {
    #[inline]
    fn parse(raw: Raw<'a>) -> Result<Self, Cow<'a, str>> {
        Ok(raw.plain().trim_ascii().eq_ignore_ascii_case(b"true"))
    }
    fn put(&self, key: &'static str, sink: &mut dyn FieldSink) {
        sink.flag(key, *self);
    }
}

/// Reads a decimal number with blanks around it and a sign.
#[inline]
pub(crate) fn whole(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii();
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() {
        return None;
    }
    // Towards the negative side, which reaches one further. Eighteen digits cannot overflow.
    let small = digits.len() <= 18;
    let mut value = 0i64;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = if small {
            value.wrapping_mul(10).wrapping_sub(digit.into())
        } else {
            value.checked_mul(10)?.checked_sub(digit.into())?
        };
    }
    if negative { Some(value) } else { value.checked_neg() }
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn whole_numbers() {
        for number in [0, 1, -1, 10, i64::MAX, i64::MIN] {
            assert_eq!(whole(number.to_string().as_bytes()), Some(number));
        }
        assert_eq!(whole(b" +7 "), Some(7));
        for text in ["", "-", "1.0", "9223372036854775808", "-9223372036854775809", "0x1", "1 2"] {
            assert_eq!(whole(text.as_bytes()), None, "{text}");
        }
    }
}
