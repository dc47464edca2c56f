//! Writing a record.

use std::net::{IpAddr, SocketAddr};

use bytes::BufMut;

use super::{
    LONGEST_PROPERTIES, LONGEST_V1_TOPIC, MAGIC_V1, MAGIC_V2, PHYSICAL_OFFSET_AT, QUEUE_OFFSET_AT, SMALLEST_RECORD,
    STORE_TIMESTAMP_AT, SYS_FLAG_AT, body_crc, properties, property_crc, sys_flag,
};

/// A message about to be stored.
///
/// The offsets and the store time may be given here, or left zero and patched into the bytes once they are known.
#[derive(Debug, Clone, Copy)]
pub struct NewRecord<'a> {
    pub topic: &'a str,
    pub queue_id: i32,
    /// The application's own flag, stored untouched.
    pub flag: i32,
    /// The address bits are set from the two hosts, whatever is given.
    pub sys_flag: i32,
    pub queue_offset: i64,
    pub physical_offset: i64,
    /// Milliseconds since the epoch.
    pub born_timestamp: i64,
    pub born_host: SocketAddr,
    /// Milliseconds since the epoch.
    pub store_timestamp: i64,
    pub store_host: SocketAddr,
    pub reconsume_times: i32,
    pub prepared_transaction_offset: i64,
    /// Stored as it is, compressed or not.
    pub body: &'a [u8],
    /// A property string.
    pub properties: &'a [u8],
    /// A second property string that follows the first; a separator is put between them when the first has none.
    pub more_properties: &'a [u8],
    /// Leaves the 20 bytes of the `__CRC32#` property at the end, for [`super::patch_property_crc`] to fill.
    pub with_property_crc: bool,
}

/// Why a message cannot be stored as a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("the topic takes {0} bytes, more than {max}", max = i16::MAX)]
    TopicTooLong(usize),
    #[error("the properties take {0} bytes, more than {max}", max = LONGEST_PROPERTIES)]
    PropertiesTooLong(usize),
    #[error("the record would take {0} bytes")]
    TooLong(usize),
}

/// How the lengths of a record come out.
struct Layout {
    total: usize,
    wide_topic: bool,
    separator: bool,
    crc_separator: bool,
    properties: usize,
    sys_flag: i32,
}

fn layout(record: &NewRecord<'_>) -> Result<Layout, RecordError> {
    let mut sys_flag = record.sys_flag & !(sys_flag::BORN_HOST_V6 | sys_flag::STORE_HOST_V6);
    if record.born_host.is_ipv6() {
        sys_flag |= sys_flag::BORN_HOST_V6;
    }
    if record.store_host.is_ipv6() {
        sys_flag |= sys_flag::STORE_HOST_V6;
    }
    let unended = |part: &[u8]| part.last().is_some_and(|last| *last != properties::PAIR_END);
    let separator = !record.more_properties.is_empty() && unended(record.properties);
    let mut length = record.properties.len() + usize::from(separator) + record.more_properties.len();
    let mut crc_separator = false;
    if record.with_property_crc {
        let last = if record.more_properties.is_empty() { record.properties } else { record.more_properties };
        crc_separator = unended(last);
        length += usize::from(crc_separator) + property_crc::PROPERTY_CRC_LENGTH;
    }
    if length > LONGEST_PROPERTIES {
        return Err(RecordError::PropertiesTooLong(length));
    }
    if record.topic.len() > i16::MAX as usize {
        return Err(RecordError::TopicTooLong(record.topic.len()));
    }
    let wide_topic = record.topic.len() > LONGEST_V1_TOPIC;
    let hosts = sys_flag::born_host_length(sys_flag) + sys_flag::store_host_length(sys_flag);
    let total =
        SMALLEST_RECORD - 16 + hosts + usize::from(wide_topic) + record.body.len() + record.topic.len() + length;
    if total > i32::MAX as usize {
        return Err(RecordError::TooLong(total));
    }
    Ok(Layout { total, wide_topic, separator, crc_separator, properties: length, sys_flag })
}

/// The bytes the record will take.
pub fn record_length(record: &NewRecord<'_>) -> Result<usize, RecordError> {
    layout(record).map(|layout| layout.total)
}

/// Appends the record and returns its length in bytes. Nothing is written when it fails.
pub fn encode_record(out: &mut impl BufMut, record: &NewRecord<'_>) -> Result<usize, RecordError> {
    let Layout { total, wide_topic, separator, crc_separator, properties, sys_flag } = layout(record)?;
    // The fixed part is put together apart so that `out` checks its room once, not at each field.
    let mut head = Head { bytes: [0; 112], at: 0 };
    head.u32(total as u32);
    head.u32(if wide_topic { MAGIC_V2 } else { MAGIC_V1 });
    head.i32(body_crc(record.body));
    head.i32(record.queue_id);
    head.i32(record.flag);
    head.i64(record.queue_offset);
    head.i64(record.physical_offset);
    head.i32(sys_flag);
    head.i64(record.born_timestamp);
    head.host(record.born_host);
    head.i64(record.store_timestamp);
    head.host(record.store_host);
    head.i32(record.reconsume_times);
    head.i64(record.prepared_transaction_offset);
    head.u32(record.body.len() as u32);
    out.put_slice(&head.bytes[..head.at]);
    out.put_slice(record.body);
    if wide_topic {
        out.put_u16(record.topic.len() as u16);
    } else {
        out.put_u8(record.topic.len() as u8);
    }
    out.put_slice(record.topic.as_bytes());
    out.put_u16(properties as u16);
    out.put_slice(record.properties);
    if separator {
        out.put_u8(properties::PAIR_END);
    }
    out.put_slice(record.more_properties);
    if record.with_property_crc {
        if crc_separator {
            out.put_u8(properties::PAIR_END);
        }
        out.put_slice(&property_crc::EMPTY);
    }
    Ok(total)
}

struct Head {
    bytes: [u8; 112],
    at: usize,
}

impl Head {
    fn put<const N: usize>(&mut self, value: [u8; N]) {
        self.bytes[self.at..self.at + N].copy_from_slice(&value);
        self.at += N;
    }

    fn u32(&mut self, value: u32) {
        self.put(value.to_be_bytes());
    }

    fn i32(&mut self, value: i32) {
        self.put(value.to_be_bytes());
    }

    fn i64(&mut self, value: i64) {
        self.put(value.to_be_bytes());
    }

    fn host(&mut self, host: SocketAddr) {
        match host.ip() {
            IpAddr::V4(ip) => self.put(ip.octets()),
            IpAddr::V6(ip) => self.put(ip.octets()),
        }
        self.u32(host.port().into());
    }
}

/// Writes the queue offset into an encoded record. Shorter bytes stay as they are.
pub fn patch_queue_offset(record: &mut [u8], offset: i64) {
    patch(record, QUEUE_OFFSET_AT, offset);
}

/// Writes the physical offset into an encoded record. Shorter bytes stay as they are.
pub fn patch_physical_offset(record: &mut [u8], offset: i64) {
    patch(record, PHYSICAL_OFFSET_AT, offset);
}

/// Writes the store time, in milliseconds, into an encoded record. Shorter bytes stay as they are.
pub fn patch_store_timestamp(record: &mut [u8], millis: i64) {
    let flag = record.get(SYS_FLAG_AT..SYS_FLAG_AT + 4).and_then(|flag| flag.first_chunk::<4>());
    let flag = flag.map_or(0, |flag| i32::from_be_bytes(*flag));
    patch(record, STORE_TIMESTAMP_AT - 8 + sys_flag::born_host_length(flag), millis);
}

fn patch(record: &mut [u8], at: usize, value: i64) {
    if let Some(place) = record.get_mut(at..at + 8) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}
