//! JSON headers, read in one pass over the bytes and written without a tree in between.

use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};

use crate::fields::{ExtFields, Span};
use crate::frame::{Command, FrameError, Head, Language, decimal};

pub(crate) fn read(header: Bytes) -> Result<Command, FrameError> {
    let text = std::str::from_utf8(&header).map_err(|_| FrameError::MalformedHeader("not UTF-8"))?;
    let mut scan = Scanner { text: text.as_bytes(), at: 0 };
    let mut command = Command::request(0);
    command.language = Language::OTHER;
    command.version = 0;
    let mut spans = Vec::new();
    scan.object(|scan, key, _| {
        match &scan.text[key.0 as usize..key.1 as usize] {
            b"code" => command.code = scan.number()?,
            b"flag" => command.flag = scan.number()?,
            b"opaque" => command.opaque = scan.number()?,
            b"version" => command.version = scan.number()?,
            b"language" => {
                if let Some(value) = scan.scalar()? {
                    command.language = Language::from_name(&scan.string(value));
                }
            }
            b"remark" => {
                if let Some(value) = scan.scalar()? {
                    command.remark = Some(Cow::Owned(scan.string(value).into_owned()));
                }
            }
            b"extFields" => {
                if scan.peek() == Some(b'{') {
                    spans.reserve(16);
                    scan.object(|scan, key, key_escaped| {
                        if let Some(value) = scan.scalar()? {
                            let (value, value_escaped) = (value.span, value.escaped);
                            spans.push(Span { key, value, key_escaped, value_escaped });
                        }
                        Ok(())
                    })?;
                } else {
                    scan.skip_value(0)?;
                }
            }
            _ => scan.skip_value(0)?,
        }
        Ok(())
    })?;
    scan.end()?;
    command.fields = ExtFields::received(header, spans);
    Ok(command)
}

pub(crate) fn write(out: &mut BytesMut, head: &Head<'_>, fields: &mut dyn FnMut(&mut crate::frame::FieldWriter<'_>)) {
    out.reserve(192 + head.remark.map_or(0, str::len));
    let mut digits = [0u8; 20];
    out.extend_from_slice(b"{\"code\":");
    out.extend_from_slice(decimal(head.code.into(), &mut digits).as_bytes());
    let mark = out.len();
    out.extend_from_slice(b",\"extFields\":{");
    let mut writer = crate::frame::FieldWriter::Json(FieldWriter { out, first: true });
    fields(&mut writer);
    let empty = matches!(&writer, crate::frame::FieldWriter::Json(w) if w.first);
    if empty {
        out.truncate(mark);
    } else {
        out.put_u8(b'}');
    }
    out.extend_from_slice(b",\"flag\":");
    out.extend_from_slice(decimal(head.flag.into(), &mut digits).as_bytes());
    out.extend_from_slice(b",\"language\":\"");
    out.extend_from_slice(head.language.name().as_bytes());
    out.extend_from_slice(b"\",\"opaque\":");
    out.extend_from_slice(decimal(head.opaque.into(), &mut digits).as_bytes());
    if let Some(remark) = head.remark {
        out.extend_from_slice(b",\"remark\":");
        write_string(out, remark);
    }
    out.extend_from_slice(b",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":");
    out.extend_from_slice(decimal(head.version.into(), &mut digits).as_bytes());
    out.put_u8(b'}');
}

/// Writes the members of `extFields`.
#[derive(Debug)]
pub struct FieldWriter<'a> {
    out: &'a mut BytesMut,
    first: bool,
}

impl FieldWriter<'_> {
    pub(crate) fn pair(&mut self, key: &str, value: &str) {
        if !self.first {
            self.out.put_u8(b',');
        }
        self.first = false;
        write_string(self.out, key);
        self.out.put_u8(b':');
        write_string(self.out, value);
    }
}

/// Writes a JSON string, escaping what JSON demands and leaving the rest as UTF-8.
pub(crate) fn write_string(out: &mut impl BufMut, text: &str) {
    out.put_u8(b'"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.put_slice(&text.as_bytes()[plain..at]);
        plain = at + 1;
        match byte {
            b'"' => out.put_slice(b"\\\""),
            b'\\' => out.put_slice(b"\\\\"),
            b'\n' => out.put_slice(b"\\n"),
            b'\r' => out.put_slice(b"\\r"),
            b'\t' => out.put_slice(b"\\t"),
            0x08 => out.put_slice(b"\\b"),
            0x0C => out.put_slice(b"\\f"),
            other => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.put_slice(b"\\u00");
                out.put_u8(HEX[usize::from(other >> 4)]);
                out.put_u8(HEX[usize::from(other & 15)]);
            }
        }
    }
    out.put_slice(&text.as_bytes()[plain..]);
    out.put_u8(b'"');
}

/// Resolves the escapes of a JSON string's inside. Lone surrogates become the replacement character.
///
/// Message properties hold an escape every dozen bytes, so this is as hot as the scanner: it copies eight bytes at a
/// time into room that is large enough from the start, since no escape is shorter than what it stands for.
pub(crate) fn unescape(raw: &str) -> String {
    let raw = raw.as_bytes();
    let mut out = vec![0; raw.len()];
    let (mut read, mut written) = (0, 0);
    while read < raw.len() {
        let plain = match (raw.get(read..read + 8), out.get_mut(written..written + 8)) {
            (Some(chunk), Some(room)) => {
                room.copy_from_slice(chunk);
                let hits = equal_bytes(word(chunk), b'\\');
                (hits.trailing_zeros() / 8) as usize
            }
            _ => {
                let rest = &raw[read..];
                let plain = rest.iter().position(|byte| *byte == b'\\').unwrap_or(rest.len());
                out[written..written + plain].copy_from_slice(&rest[..plain]);
                plain
            }
        };
        read += plain;
        written += plain;
        if raw.get(read) == Some(&b'\\') {
            let (length, character) = unescape_one(&raw[read..]);
            read += length;
            written += character.encode_utf8(&mut out[written..]).len();
        }
    }
    out.truncate(written);
    // Only whole characters were taken out and put in.
    String::from_utf8(out).unwrap_or_default()
}

/// `escape` starts with a backslash; returns how much of it was used up, and what it stands for.
#[inline]
fn unescape_one(escape: &[u8]) -> (usize, char) {
    match escape.get(1) {
        Some(b'u') => unescape_unicode(escape),
        Some(b'n') => (2, '\n'),
        Some(b'r') => (2, '\r'),
        Some(b't') => (2, '\t'),
        Some(b'b') => (2, '\u{8}'),
        Some(b'f') => (2, '\u{c}'),
        Some(plain) if plain.is_ascii() => (2, char::from(*plain)),
        // A longer character, which follows as it is; or the backslash stands at the end, which the scanners rule out.
        _ => (1, '\\'),
    }
}

/// `escape` starts with `\u`.
#[inline]
fn unescape_unicode(escape: &[u8]) -> (usize, char) {
    let unit = |at: usize| -> Option<u32> {
        let digits = escape.get(at..at + 4)?.first_chunk::<4>()?;
        digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
    };
    let Some(first) = unit(2) else { return (2, 'u') };
    if (0xD800..0xDC00).contains(&first)
        && escape.get(6..8) == Some(b"\\u")
        && let Some(low @ 0xDC00..0xE000) = unit(8)
    {
        let pair = 0x10000 + ((first - 0xD800) << 10) + (low - 0xDC00);
        return (12, char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    (6, char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
}

#[inline]
fn word(chunk: &[u8]) -> u64 {
    chunk.first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

/// The top bit of each byte of `word` that is `byte`. Bits above the lowest one may be wrong, which does not matter to
/// who looks for the first.
#[inline]
fn equal_bytes(word: u64, byte: u8) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let zeros = word ^ (ONES * u64::from(byte));
    zeros.wrapping_sub(ONES) & !zeros & (ONES << 7)
}

/// The first quote or backslash at or behind `at`; looks at eight bytes at a time.
#[inline]
fn quote_or_backslash(text: &[u8], mut at: usize) -> Option<usize> {
    while let Some(chunk) = text.get(at..at + 8) {
        let word = word(chunk);
        let hits = equal_bytes(word, b'"') | equal_bytes(word, b'\\');
        if hits != 0 {
            return Some(at + (hits.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    let rest = text.get(at..)?;
    rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).map(|found| at + found)
}

/// A scalar's place: for strings the inside of the quotes.
#[derive(Clone, Copy)]
struct Scalar {
    span: (u32, u32),
    escaped: bool,
}

/// Takes a member's name, its place and whether it has escapes, and reads the value.
type Member<'f, 'a> = &'f mut dyn FnMut(&mut Scanner<'a>, (u32, u32), bool) -> Result<(), FrameError>;

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

const DEEPEST: usize = 32;

impl Scanner<'_> {
    fn fail<T>(&self, why: &'static str) -> Result<T, FrameError> {
        Err(FrameError::MalformedHeader(why))
    }

    #[inline]
    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.text.get(self.at) {
            // All blanks lie below or at the space, and nothing else may stand there.
            if *byte > b' ' || !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    #[inline]
    fn expect(&mut self, byte: u8, why: &'static str) -> Result<(), FrameError> {
        if self.peek() != Some(byte) {
            return self.fail(why);
        }
        self.at += 1;
        Ok(())
    }

    fn end(&mut self) -> Result<(), FrameError> {
        if self.peek().is_some() { self.fail("bytes after the header object") } else { Ok(()) }
    }

    fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, (u32, u32), bool) -> Result<(), FrameError>,
    ) -> Result<(), FrameError> {
        self.expect(b'{', "no object")?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.fail("no member name");
            }
            let key = self.quoted()?;
            self.expect(b':', "no colon after a member name")?;
            member(self, key.span, key.escaped)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.fail("object does not end"),
            }
        }
    }

    /// Stands on the opening quote.
    #[inline]
    fn quoted(&mut self) -> Result<Scalar, FrameError> {
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            match quote_or_backslash(self.text, at) {
                Some(found) if self.text[found] == b'"' => {
                    at = found;
                    break;
                }
                Some(found) => {
                    escaped = true;
                    at = found + 2;
                }
                None => return self.fail("string does not end"),
            }
        }
        self.at = at + 1;
        Ok(Scalar { span: (start as u32, at as u32), escaped })
    }

    /// A string, number or boolean; `None` for null, and for objects and arrays, which are passed over.
    #[inline]
    fn scalar(&mut self) -> Result<Option<Scalar>, FrameError> {
        match self.peek() {
            Some(b'"') => self.quoted().map(Some),
            Some(b'{' | b'[') => self.skip_value(0).map(|()| None),
            _ => {
                let word = self.word()?;
                let text = &self.text[word.span.0 as usize..word.span.1 as usize];
                Ok(if text == b"null" { None } else { Some(word) })
            }
        }
    }

    fn word(&mut self) -> Result<Scalar, FrameError> {
        self.peek();
        let start = self.at;
        while let Some(b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_') = self.text.get(self.at) {
            self.at += 1;
        }
        if self.at == start {
            return self.fail("no value");
        }
        Ok(Scalar { span: (start as u32, self.at as u32), escaped: false })
    }

    fn string(&self, value: Scalar) -> Cow<'_, str> {
        let raw = std::str::from_utf8(&self.text[value.span.0 as usize..value.span.1 as usize]).unwrap_or_default();
        if value.escaped { Cow::Owned(unescape(raw)) } else { Cow::Borrowed(raw) }
    }

    /// An integer, quoted or not; null reads as zero.
    fn number(&mut self) -> Result<i32, FrameError> {
        match self.scalar()? {
            None => Ok(0),
            Some(value) => {
                let text = &self.text[value.span.0 as usize..value.span.1 as usize];
                match crate::header::whole(text).and_then(|number| i32::try_from(number).ok()) {
                    Some(number) => Ok(number),
                    None => self.fail("a number is none"),
                }
            }
        }
    }

    /// Apart from [`Self::skip_value`] because closures that call each other have no finite type.
    fn skip_object(&mut self, depth: usize) -> Result<(), FrameError> {
        let skip: Member<'_, '_> = &mut |scan, _, _| scan.skip_value(depth + 1);
        self.object(skip)
    }

    fn skip_value(&mut self, depth: usize) -> Result<(), FrameError> {
        if depth > DEEPEST {
            return self.fail("nested too deeply");
        }
        match self.peek() {
            Some(b'"') => self.quoted().map(drop),
            Some(b'{') => self.skip_object(depth),
            Some(b'[') => {
                self.at += 1;
                if self.peek() == Some(b']') {
                    self.at += 1;
                    return Ok(());
                }
                loop {
                    self.skip_value(depth + 1)?;
                    match self.peek() {
                        Some(b',') => self.at += 1,
                        Some(b']') => {
                            self.at += 1;
                            return Ok(());
                        }
                        _ => return self.fail("array does not end"),
                    }
                }
            }
            _ => self.word().map(drop),
        }
    }
}
