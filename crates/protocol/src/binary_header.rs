//! Binary headers (Java's serialisation type ROCKETMQ).
//!
//! ```text
//! | 2 code | 1 language | 2 version | 4 opaque | 4 flag | 4 + n remark | 4 + n fields |
//! fields: ( 2 + n key | 4 + n value )*
//! ```

use std::borrow::Cow;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::fields::{ExtFields, Span};
use crate::frame::{Command, FrameError, Head, Language, SerializeType};

const FIXED: usize = 21;

pub(crate) fn read(header: Bytes) -> Result<Command, FrameError> {
    const SHORT: FrameError = FrameError::MalformedHeader("binary header ends early");
    let mut rest = &header[..];
    if rest.len() < FIXED {
        return Err(SHORT);
    }
    let mut command = Command::request(rest.get_i16().into());
    command.serialize = SerializeType::Binary;
    command.language = Language(rest.get_u8());
    command.version = rest.get_i16().into();
    command.opaque = rest.get_i32();
    command.flag = rest.get_i32();
    let remark = take(&mut rest, 4).ok_or(SHORT)?;
    if !remark.is_empty() {
        let text = std::str::from_utf8(remark).map_err(|_| FrameError::MalformedHeader("remark is not UTF-8"))?;
        command.remark = Some(Cow::Owned(text.to_owned()));
    }
    let map = take(&mut rest, 4).ok_or(SHORT)?;
    command.fields = read_fields(&header, map)?;
    Ok(command)
}

fn read_fields(header: &Bytes, map: &[u8]) -> Result<ExtFields, FrameError> {
    const SHORT: FrameError = FrameError::MalformedHeader("binary field ends early");
    if map.is_empty() {
        return Ok(ExtFields::default());
    }
    let text = header.slice_ref(map);
    let mut spans = Vec::with_capacity(16);
    let mut rest = map;
    // Short lengths are ASCII themselves, so most maps need this one look only.
    let ascii = map.is_ascii();
    let place = |part: &[u8], rest: &[u8]| {
        let end = (map.len() - rest.len()) as u32;
        (end - part.len() as u32, end)
    };
    while !rest.is_empty() {
        let key_bytes = take(&mut rest, 2).ok_or(SHORT)?;
        let key = place(key_bytes, rest);
        let value_bytes = take(&mut rest, 4).ok_or(SHORT)?;
        let value = place(value_bytes, rest);
        if !ascii && (std::str::from_utf8(key_bytes).is_err() || std::str::from_utf8(value_bytes).is_err()) {
            return Err(FrameError::MalformedHeader("a field is not UTF-8"));
        }
        // Java reads an empty string as null, and a null field as absent.
        if !key_bytes.is_empty() && !value_bytes.is_empty() {
            spans.push(Span { key, value, key_escaped: false, value_escaped: false });
        }
    }
    Ok(ExtFields::received(text, spans))
}

/// Takes a string whose length stands before it in `width` bytes.
fn take<'a>(rest: &mut &'a [u8], width: usize) -> Option<&'a [u8]> {
    if rest.len() < width {
        return None;
    }
    let length = if width == 2 { i64::from(rest.get_i16()) } else { i64::from(rest.get_i32()) };
    let length = usize::try_from(length).ok().filter(|length| *length <= rest.len())?;
    let (part, left) = rest.split_at(length);
    *rest = left;
    Some(part)
}

pub(crate) fn write(out: &mut BytesMut, head: &Head<'_>, fields: &mut dyn FnMut(&mut crate::frame::FieldWriter<'_>)) {
    // Java truncates codes to 16 bits here; see the note at SerializeType::Binary.
    out.put_i16(head.code as i16);
    out.put_u8(head.language.0);
    out.put_i16(head.version as i16);
    out.put_i32(head.opaque);
    out.put_i32(head.flag);
    let remark = head.remark.unwrap_or_default();
    out.put_i32(remark.len() as i32);
    out.extend_from_slice(remark.as_bytes());
    let start = out.len();
    out.put_i32(0);
    fields(&mut crate::frame::FieldWriter::Binary(FieldWriter { out }));
    let length = (out.len() - start - 4) as i32;
    if let Some(prefix) = out.get_mut(start..start + 4) {
        prefix.copy_from_slice(&length.to_be_bytes());
    }
}

/// Writes entries of the field map.
#[derive(Debug)]
pub struct FieldWriter<'a> {
    out: &'a mut BytesMut,
}

impl FieldWriter<'_> {
    pub(crate) fn pair(&mut self, key: &str, value: &str) {
        if key.is_empty() || key.len() > i16::MAX as usize {
            return;
        }
        self.out.put_i16(key.len() as i16);
        self.out.extend_from_slice(key.as_bytes());
        self.out.put_i32(value.len() as i32);
        self.out.extend_from_slice(value.as_bytes());
    }
}
