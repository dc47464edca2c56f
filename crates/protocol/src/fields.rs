//! The extension fields of a frame header: the string map that carries every typed header.

use std::borrow::Cow;

use bytes::Bytes;

/// Where one field lies inside the header text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub key: (u32, u32),
    pub value: (u32, u32),
    pub key_escaped: bool,
    pub value_escaped: bool,
}

/// The extension fields of one frame.
///
/// Received fields stay where they arrived: a list of spans into the header's bytes, so that reading a typed header
/// copies only what the caller keeps. Fields of a frame under construction are owned.
#[derive(Debug, Clone, Default)]
pub struct ExtFields {
    repr: Repr,
}

#[derive(Debug, Clone, Default)]
enum Repr {
    #[default]
    Empty,
    /// `text` is valid UTF-8 as a whole and every span lies on character borders (the two header readers see to it).
    Received {
        text: Bytes,
        spans: Vec<Span>,
    },
    Owned(Vec<(Cow<'static, str>, String)>),
}

/// A key or value as it stands in the frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Raw<'a> {
    pub bytes: &'a [u8],
    /// The bytes hold JSON escapes.
    pub escaped: bool,
}

impl<'a> Raw<'a> {
    fn of(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), escaped: false }
    }

    #[inline]
    pub(crate) fn text(self) -> Cow<'a, str> {
        // The readers checked the text once; bytes that are not UTF-8 cannot arise, and would read as empty.
        let raw = std::str::from_utf8(self.bytes).unwrap_or_default();
        if self.escaped { Cow::Owned(crate::json_header::unescape(raw)) } else { Cow::Borrowed(raw) }
    }

    /// The bytes without escapes.
    #[inline]
    pub(crate) fn plain(self) -> Cow<'a, [u8]> {
        match self.escaped {
            false => Cow::Borrowed(self.bytes),
            true => Cow::Owned(self.text().into_owned().into_bytes()),
        }
    }
}

/// Takes the fields of a typed header one by one.
pub trait FieldSink {
    fn text(&mut self, key: &'static str, value: &str);
    fn int(&mut self, key: &'static str, value: i64);
    fn flag(&mut self, key: &'static str, value: bool) {
        self.text(key, if value { "true" } else { "false" });
    }
}

impl ExtFields {
    pub(crate) fn received(text: Bytes, spans: Vec<Span>) -> Self {
        if spans.is_empty() { Self::default() } else { Self { repr: Repr::Received { text, spans } } }
    }

    pub fn is_empty(&self) -> bool {
        match &self.repr {
            Repr::Empty => true,
            Repr::Received { spans, .. } => spans.is_empty(),
            Repr::Owned(list) => list.is_empty(),
        }
    }

    /// The value of `key`; of a repeated key the last one counts.
    pub fn get(&self, key: &str) -> Option<Cow<'_, str>> {
        self.iter().filter(|(k, _)| k == key).last().map(|(_, v)| v)
    }

    /// All fields in the order they were received or set.
    pub fn iter(&self) -> Iter<'_> {
        Iter { fields: self, next: 0 }
    }

    /// Sets a field, replacing an earlier value of the same key.
    pub fn set(&mut self, key: impl Into<Cow<'static, str>>, value: impl Into<String>) {
        let key = key.into();
        let list = self.make_owned();
        match list.iter_mut().find(|(k, _)| *k == key) {
            Some(slot) => slot.1 = value.into(),
            None => list.push((key, value.into())),
        }
    }

    fn make_owned(&mut self) -> &mut Vec<(Cow<'static, str>, String)> {
        if !matches!(self.repr, Repr::Owned(_)) {
            let list = self.iter().map(|(k, v)| (Cow::Owned(k.into_owned()), v.into_owned())).collect();
            self.repr = Repr::Owned(list);
        }
        match &mut self.repr {
            Repr::Owned(list) => list,
            _ => unreachable!("just made owned"),
        }
    }

    /// All fields as they lie in the frame, for readers that look at most of them only in passing.
    #[inline]
    pub(crate) fn raw(&self) -> impl Iterator<Item = (Raw<'_>, Raw<'_>)> {
        let (list, text, spans): (&[_], &[u8], &[_]) = match &self.repr {
            Repr::Empty => (&[], &[], &[]),
            Repr::Owned(list) => (list, &[], &[]),
            Repr::Received { text, spans } => (&[], text, spans),
        };
        let cut = |(start, end): (u32, u32), escaped| Raw {
            bytes: text.get(start as usize..end as usize).unwrap_or_default(),
            escaped,
        };
        let owned = list.iter().map(move |(key, value)| (Raw::of(key), Raw::of(value)));
        owned
            .chain(spans.iter().map(move |span| (cut(span.key, span.key_escaped), cut(span.value, span.value_escaped))))
    }

    fn nth(&self, at: usize) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
        match &self.repr {
            Repr::Empty => None,
            Repr::Owned(list) => list.get(at).map(|(k, v)| (Cow::Borrowed(k.as_ref()), Cow::Borrowed(v.as_str()))),
            Repr::Received { text, spans } => spans
                .get(at)
                .map(|span| (read(text, span.key, span.key_escaped), read(text, span.value, span.value_escaped))),
        }
    }
}

impl FieldSink for ExtFields {
    fn text(&mut self, key: &'static str, value: &str) {
        self.set(key, value);
    }

    fn int(&mut self, key: &'static str, value: i64) {
        self.set(key, value.to_string());
    }
}

fn read(text: &Bytes, (start, end): (u32, u32), escaped: bool) -> Cow<'_, str> {
    Raw { bytes: text.get(start as usize..end as usize).unwrap_or_default(), escaped }.text()
}

/// Iterates over the fields of a frame.
#[derive(Debug)]
pub struct Iter<'a> {
    fields: &'a ExtFields,
    next: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (Cow<'a, str>, Cow<'a, str>);

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.fields.nth(self.next)?;
        self.next += 1;
        Some(item)
    }
}
