//! The frame: a length, a header in one of two serialisations, and a body.
//!
//! ```text
//! | 4 length of what follows | 1 serialisation | 3 header length | header | body |
//! ```

use std::borrow::Cow;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::fields::ExtFields;
use crate::header::{Header, HeaderError};
use crate::{VERSION, binary_header, json_header};

/// The largest frame accepted by default, its length field included: 16 MiB, as in Java.
pub const MAX_FRAME_LENGTH: usize = 16 * 1024 * 1024;

const FLAG_RESPONSE: i32 = 1;
const FLAG_ONEWAY: i32 = 2;

/// How the header of a frame is written. Each frame says it of itself; both may meet on one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SerializeType {
    #[default]
    Json,
    /// The compact form named ROCKETMQ. It holds codes in 16 bits, so it cannot carry the pop requests.
    Binary,
}

/// The language a peer says it is written in. Unknown ones are no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Language(pub u8);

const LANGUAGES: [&str; 14] = [
    "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST",
    "NODE_JS",
];

impl Language {
    pub const JAVA: Self = Self(0);
    pub const OTHER: Self = Self(7);
    pub const GO: Self = Self(9);
    pub const RUST: Self = Self(12);

    /// The name used in JSON headers.
    pub fn name(self) -> &'static str {
        LANGUAGES.get(self.0 as usize).copied().unwrap_or("OTHER")
    }

    pub fn from_name(name: &str) -> Self {
        let code = LANGUAGES.iter().position(|known| *known == name);
        code.and_then(|at| u8::try_from(at).ok()).map_or(Self::OTHER, Self)
    }
}

/// Why bytes are not a frame. The connection that sent them cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("frame of {length} bytes is longer than the limit of {limit}")]
    TooLong { length: usize, limit: usize },
    #[error("header length {header} does not fit in a frame of {length} bytes")]
    HeaderPastFrame { header: usize, length: usize },
    #[error("unknown header serialisation {0}")]
    UnknownSerialisation(u8),
    #[error("malformed header: {0}")]
    MalformedHeader(&'static str),
}

/// One request or response.
#[derive(Debug, Clone)]
pub struct Command {
    pub code: i32,
    pub language: Language,
    /// The sender's version ordinal; see [`crate::VERSION`].
    pub version: i32,
    /// Ties a response to its request on one connection.
    pub opaque: i32,
    pub flag: i32,
    pub remark: Option<Cow<'static, str>>,
    pub serialize: SerializeType,
    pub fields: ExtFields,
    /// Empty and absent bodies are the same.
    pub body: Bytes,
}

impl Command {
    pub fn request(code: i32) -> Self {
        Self {
            code,
            language: Language::RUST,
            version: VERSION,
            opaque: 0,
            flag: 0,
            remark: None,
            serialize: SerializeType::Json,
            fields: ExtFields::default(),
            body: Bytes::new(),
        }
    }

    pub fn response(code: i32) -> Self {
        Self { flag: FLAG_RESPONSE, ..Self::request(code) }
    }

    pub fn with_remark(mut self, remark: impl Into<Cow<'static, str>>) -> Self {
        self.remark = Some(remark.into());
        self
    }

    pub fn with_header(mut self, header: &impl Header) -> Self {
        header.write(&mut self.fields);
        self
    }

    pub fn with_field(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.fields.set(key, value);
        self
    }

    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Reads the typed header out of the extension fields.
    pub fn header<H: Header>(&self) -> Result<H, HeaderError> {
        H::read(&self.fields)
    }

    pub fn is_response(&self) -> bool {
        self.flag & FLAG_RESPONSE != 0
    }

    pub fn is_oneway(&self) -> bool {
        self.flag & FLAG_ONEWAY != 0
    }

    pub fn mark_oneway(&mut self) {
        self.flag |= FLAG_ONEWAY;
    }

    pub fn mark_response(&mut self) {
        self.flag |= FLAG_RESPONSE;
    }

    /// Appends the frame to `out`.
    pub fn encode(&self, out: &mut BytesMut) {
        self.encode_head(out);
        out.extend_from_slice(&self.body);
    }

    /// Appends everything but the body, which must follow.
    pub fn encode_head(&self, out: &mut BytesMut) {
        let head = Head {
            code: self.code,
            language: self.language,
            version: self.version,
            opaque: self.opaque,
            flag: self.flag,
            remark: self.remark.as_deref(),
            serialize: self.serialize,
        };
        encode_parts(
            out,
            &head,
            &mut |sink| {
                for (key, value) in self.fields.iter() {
                    sink.pair(&key, &value);
                }
            },
            self.body.len(),
        );
    }
}

/// The fixed part of a header about to be written.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    pub code: i32,
    pub language: Language,
    pub version: i32,
    pub opaque: i32,
    pub flag: i32,
    pub remark: Option<&'a str>,
    pub serialize: SerializeType,
}

impl<'a> Head<'a> {
    /// The head of an answer to the request `opaque`.
    pub fn response(code: i32, opaque: i32, remark: Option<&'a str>, serialize: SerializeType) -> Self {
        Self { code, language: Language::RUST, version: VERSION, opaque, flag: FLAG_RESPONSE, remark, serialize }
    }
}

/// Writes extension fields straight into a frame, in its serialisation.
#[derive(Debug)]
pub enum FieldWriter<'a> {
    Json(json_header::FieldWriter<'a>),
    Binary(binary_header::FieldWriter<'a>),
}

impl FieldWriter<'_> {
    pub fn pair(&mut self, key: &str, value: &str) {
        match self {
            Self::Json(out) => out.pair(key, value),
            Self::Binary(out) => out.pair(key, value),
        }
    }
}

impl crate::FieldSink for FieldWriter<'_> {
    fn text(&mut self, key: &'static str, value: &str) {
        self.pair(key, value);
    }

    fn int(&mut self, key: &'static str, value: i64) {
        let mut digits = [0u8; 20];
        self.pair(key, decimal(value, &mut digits));
    }
}

/// Appends everything of a frame but its body, which is `body_length` bytes and must follow: the way of hot answers,
/// which need no [`Command`].
pub fn encode_parts(
    out: &mut BytesMut,
    head: &Head<'_>,
    fields: &mut dyn FnMut(&mut FieldWriter<'_>),
    body_length: usize,
) {
    let start = out.len();
    out.put_u64(0);
    let mark = match head.serialize {
        SerializeType::Json => {
            json_header::write(out, head, fields);
            0u32
        }
        SerializeType::Binary => {
            binary_header::write(out, head, fields);
            1u32
        }
    };
    let header = out.len() - start - 8;
    let length = 4 + header + body_length;
    // Both fit: headers and bodies are bounded by the frame limit long before 2^32.
    if let Some(prefix) = out.get_mut(start..start + 8) {
        prefix[..4].copy_from_slice(&(length as u32).to_be_bytes());
        prefix[4..].copy_from_slice(&((mark << 24) | (header as u32 & 0x00FF_FFFF)).to_be_bytes());
    }
}

/// Takes one whole frame off the front of `input`; `None` when more bytes are needed.
///
/// `limit` bounds the whole frame, its length field included.
pub fn decode(input: &mut BytesMut, limit: usize) -> Result<Option<Command>, FrameError> {
    let Some(prefix) = input.first_chunk::<4>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*prefix) as usize;
    if length.saturating_add(4) > limit {
        return Err(FrameError::TooLong { length: length.saturating_add(4), limit });
    }
    if length < 4 {
        return Err(FrameError::HeaderPastFrame { header: 0, length });
    }
    if input.len() < length + 4 {
        return Ok(None);
    }
    let mut frame = input.split_to(length + 4).freeze();
    frame.advance(4);
    let mark = frame.get_u32();
    let header_length = (mark & 0x00FF_FFFF) as usize;
    if header_length > frame.len() {
        return Err(FrameError::HeaderPastFrame { header: header_length, length });
    }
    let header = frame.split_to(header_length);
    let mut command = match (mark >> 24) as u8 {
        0 => json_header::read(header)?,
        1 => binary_header::read(header)?,
        other => return Err(FrameError::UnknownSerialisation(other)),
    };
    command.body = frame;
    Ok(Some(command))
}

/// Writes a number without going through the formatting machinery.
pub(crate) fn decimal(value: i64, digits: &mut [u8; 20]) -> &str {
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    std::str::from_utf8(&digits[at..]).unwrap_or("0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> BytesMut {
        let hex: String = hex.split_whitespace().collect();
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    fn encoded(command: &Command) -> BytesMut {
        let mut out = BytesMut::new();
        command.encode(&mut out);
        out
    }

    #[test]
    fn json_request_has_javas_bytes() {
        let text = r#"{"code":105,"extFields":{"topic":"T"},"flag":0,"language":"JAVA","opaque":1,"serializeTypeCurrentRPC":"JSON","version":479}"#;
        let mut wire = bytes("0000007f 0000007b");
        wire.extend_from_slice(text.as_bytes());
        let command = decode(&mut wire.clone(), MAX_FRAME_LENGTH).unwrap().unwrap();
        assert_eq!((command.code, command.opaque, command.version, command.flag), (105, 1, 479, 0));
        assert_eq!(command.fields.get("topic").as_deref(), Some("T"));
        assert_eq!(encoded(&command), wire);
    }

    #[test]
    fn binary_request_has_javas_bytes() {
        let wire =
            bytes("00000025 01000021 0069 00 01df 00000001 00000000 00000000 0000000c 0005 746f706963 00000001 54");
        let command = decode(&mut wire.clone(), MAX_FRAME_LENGTH).unwrap().unwrap();
        assert_eq!(command.fields.get("topic").as_deref(), Some("T"));
        assert_eq!(encoded(&command), wire);
        let wire = bytes("0000001b 01000015 0000 00 01df 00000001 00000001 00000000 00000000 7b7d");
        let command = decode(&mut wire.clone(), MAX_FRAME_LENGTH).unwrap().unwrap();
        assert!(command.is_response() && &command.body[..] == b"{}");
        assert_eq!(encoded(&command), wire);
        let wire = bytes("0000001a 01000016 0136 0c 01df 00000007 00000002 00000001 78 00000000");
        let command = decode(&mut wire.clone(), MAX_FRAME_LENGTH).unwrap().unwrap();
        assert!(command.is_oneway() && command.remark.as_deref() == Some("x"));
        assert_eq!(encoded(&command), wire);
    }

    #[test]
    fn half_frames_wait_and_long_ones_are_refused() {
        let wire = encoded(&Command::request(105).with_field("topic", "T"));
        for cut in 0..wire.len() {
            assert!(decode(&mut BytesMut::from(&wire[..cut]), MAX_FRAME_LENGTH).unwrap().is_none());
        }
        let limit = wire.len() - 1;
        assert!(matches!(decode(&mut wire.clone(), limit), Err(FrameError::TooLong { .. })));
        assert!(decode(&mut bytes("00000004 01000005"), 64).is_err());
        assert!(decode(&mut bytes("00000004 07000000"), 64).is_err());
    }

    #[test]
    fn foreign_json_headers_are_read() {
        let text = "{\"code\" : 310, \"extFields\":{\"queueId\":0,\"flag\":true,\"n\":null,\"k\\u0041\":\"a\\n\\\"\"},\"flag\":0,\"language\":\"COBOL\",\"opaque\":-3,\"other\":[1,{\"a\":2}],\"version\":63}\n";
        let mut wire = BytesMut::new();
        wire.put_u32(4 + text.len() as u32);
        wire.put_u32(text.len() as u32);
        wire.extend_from_slice(text.as_bytes());
        let command = decode(&mut wire, MAX_FRAME_LENGTH).unwrap().unwrap();
        assert_eq!((command.code, command.opaque, command.language), (310, -3, Language::OTHER));
        assert_eq!(command.fields.get("queueId").as_deref(), Some("0"));
        assert_eq!(command.fields.get("flag").as_deref(), Some("true"));
        assert_eq!(command.fields.get("n"), None);
        assert_eq!(command.fields.get("kA").as_deref(), Some("a\n\""));
    }
}
