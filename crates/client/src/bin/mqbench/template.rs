//! A send request encoded once; only its times and its id are written anew for each message.

use bytes::{BufMut, BytesMut};
use protocol::frame::{Head, encode_parts};
use protocol::{Language, SerializeType, VERSION, request_code};

/// Marks bodies that carry the time they were due.
pub(crate) const MAGIC: &[u8; 8] = b"MQBENCH1";
/// Bodies shorter than this carry no time.
pub(crate) const STAMPED: usize = 16;

const BORN: &str = "1111111111111";
const KEY: &str = "7F0000010000000000000000ABCDEF99";
/// Digits of the key that count.
const COUNTED: usize = 12;

pub(crate) struct Template {
    frame: Vec<u8>,
    born_at: usize,
    key_at: usize,
    body_at: usize,
}

pub(crate) struct Target<'a> {
    pub(crate) topic: &'a str,
    pub(crate) group: &'a str,
    pub(crate) broker_name: &'a str,
    pub(crate) queue_id: i32,
    pub(crate) serialize: SerializeType,
}

impl Template {
    /// `None` only if the encoder did not write what it was given.
    pub(crate) fn new(target: &Target<'_>, opaque: i32, body: &[u8]) -> Option<Self> {
        let head = Head {
            code: request_code::SEND_MESSAGE_V2,
            language: Language::RUST,
            version: VERSION,
            opaque,
            flag: 0,
            remark: None,
            serialize: target.serialize,
        };
        let properties = format!("UNIQ_KEY\u{1}{KEY}\u{2}WAIT\u{1}true\u{2}");
        let mut out = BytesMut::new();
        let queue = target.queue_id.to_string();
        encode_parts(
            &mut out,
            &head,
            &mut |sink| {
                sink.pair("a", target.group);
                sink.pair("b", target.topic);
                sink.pair("c", "TBW102");
                sink.pair("d", "4");
                sink.pair("e", &queue);
                sink.pair("f", "0");
                sink.pair("g", BORN);
                sink.pair("h", "0");
                sink.pair("i", &properties);
                sink.pair("j", "0");
                sink.pair("k", "false");
                sink.pair("m", "false");
                sink.pair("n", target.broker_name);
            },
            body.len(),
        );
        let body_at = out.len();
        out.put_slice(body);
        let born_at = find(&out, BORN)?;
        let key_at = find(&out, KEY)? + KEY.len() - COUNTED;
        Some(Self { frame: out.to_vec(), born_at, key_at, body_at })
    }

    /// The frame of the message `number`, due at `stamp` nanoseconds.
    pub(crate) fn patched(&mut self, number: u64, born_millis: u64, stamp: u64) -> &[u8] {
        digits(&mut self.frame[self.born_at..self.born_at + BORN.len()], born_millis, 10);
        digits(&mut self.frame[self.key_at..self.key_at + COUNTED], number, 16);
        let body = &mut self.frame[self.body_at..];
        if body.len() >= STAMPED {
            body[..8].copy_from_slice(MAGIC);
            body[8..16].copy_from_slice(&stamp.to_be_bytes());
        }
        &self.frame
    }
}

fn find(bytes: &[u8], text: &str) -> Option<usize> {
    bytes.windows(text.len()).position(|window| window == text.as_bytes())
}

fn digits(into: &mut [u8], mut value: u64, base: u64) {
    for digit in into.iter_mut().rev() {
        *digit = b"0123456789ABCDEF"[(value % base) as usize];
        value /= base;
    }
}

#[cfg(test)]
mod tests {
    use protocol::headers::SendMessageRequestV2;

    use super::*;

    #[test]
    fn a_patched_frame_is_a_good_request() {
        for serialize in [SerializeType::Json, SerializeType::Binary] {
            let target = Target { topic: "T", group: "G", broker_name: "b", queue_id: 3, serialize };
            let mut template = Template::new(&target, 17, &[b'x'; 20]).unwrap();
            let mut wire = BytesMut::from(template.patched(0xBEEF, 1_700_000_000_123, 42));
            let command = protocol::frame::decode(&mut wire, 4096).unwrap().unwrap();
            assert_eq!((command.code, command.opaque), (310, 17));
            let header: SendMessageRequestV2 = command.header().unwrap();
            assert_eq!((header.born_timestamp, header.queue_id), (1_700_000_000_123, 3));
            assert!(header.properties.unwrap().contains("UNIQ_KEY\u{1}7F00000100000000000000000000BEEF\u{2}"));
            assert_eq!(&command.body[..8], MAGIC);
            assert_eq!(&command.body[8..], [&42u64.to_be_bytes()[..], b"xxxx"].concat());
        }
    }
}
