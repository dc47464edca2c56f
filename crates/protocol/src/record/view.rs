//! Reading a record without copying it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{MAGIC_BLANK, MAGIC_V1, MAGIC_V2, body_crc, properties, sys_flag};

/// A stored record, taken apart.
#[derive(Debug, Clone, Copy)]
pub struct RecordView<'a> {
    /// The whole record.
    pub bytes: &'a [u8],
    pub body_crc: i32,
    pub queue_id: i32,
    pub flag: i32,
    pub queue_offset: i64,
    pub physical_offset: i64,
    pub sys_flag: i32,
    /// Milliseconds since the epoch.
    pub born_timestamp: i64,
    pub born_host: SocketAddr,
    /// Milliseconds since the epoch.
    pub store_timestamp: i64,
    pub store_host: SocketAddr,
    pub reconsume_times: i32,
    pub prepared_transaction_offset: i64,
    pub body: &'a [u8],
    pub topic: &'a str,
    /// The property string; see [`properties`].
    pub properties: &'a [u8],
}

/// What stands at a place of the commit log.
#[derive(Debug, Clone, Copy)]
pub enum Scan<'a> {
    Record(RecordView<'a>),
    /// The rest of the file is unused; as long as the field says, which readers need not believe.
    Blank(usize),
    Bad(BadRecord),
}

/// Bytes that are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct BadRecord {
    pub reason: BadReason,
    /// The stated length, when the bytes are a record's but for its lengths or checksum: a running reader may go on
    /// behind it, recovery must stop.
    pub size: Option<usize>,
}

/// What is wrong with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadReason {
    /// Zeros: nothing has been written here yet.
    #[error("nothing is written here")]
    Unwritten,
    #[error("only {0} bytes are left, too few for a record")]
    Short(usize),
    #[error("a record of {stated} bytes is cut off after {have}")]
    CutOff { stated: usize, have: usize },
    #[error("{0:#010x} is no record's mark")]
    Magic(u32),
    #[error("the lengths inside a record of {0} bytes do not fit it")]
    Lengths(usize),
    #[error("a body length, topic length or port is out of range")]
    Range,
    #[error("the topic is not UTF-8")]
    Topic,
    #[error("the body's CRC is {computed}, the record says {stated}")]
    Crc { stated: i32, computed: i32 },
}

/// Looks at the start of `bytes`. With `check_crc` the body's checksum is compared too, as recovery does.
pub fn scan(bytes: &[u8], check_crc: bool) -> Scan<'_> {
    let bad = |reason, size| Scan::Bad(BadRecord { reason, size });
    let Some(head) = bytes.first_chunk::<8>() else {
        return bad(BadReason::Short(bytes.len()), None);
    };
    let stated = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    let magic = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    match magic {
        MAGIC_BLANK => return Scan::Blank(stated as usize),
        MAGIC_V1 | MAGIC_V2 => {}
        0 if stated == 0 => return bad(BadReason::Unwritten, None),
        other => return bad(BadReason::Magic(other), None),
    }
    let stated = stated as usize;
    if stated > i32::MAX as usize {
        return bad(BadReason::Lengths(stated), None);
    }
    let Some(record) = bytes.get(..stated) else {
        return bad(BadReason::CutOff { stated, have: bytes.len() }, None);
    };
    let view = match read(record, magic == MAGIC_V2) {
        Ok(view) => view,
        // The bytes as a whole are there and carry a record's mark.
        Err(reason) => return bad(reason, Some(stated).filter(|size| *size > 8)),
    };
    if check_crc && !view.body.is_empty() {
        let computed = body_crc(view.body);
        if computed != view.body_crc {
            return bad(BadReason::Crc { stated: view.body_crc, computed }, Some(stated));
        }
    }
    Scan::Record(view)
}

impl<'a> RecordView<'a> {
    /// Reads the record at the start of `bytes`, which may go on behind it. Blanks are no records here.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BadRecord> {
        match scan(bytes, false) {
            Scan::Record(view) => Ok(view),
            Scan::Blank(_) => Err(BadRecord { reason: BadReason::Magic(MAGIC_BLANK), size: None }),
            Scan::Bad(bad) => Err(bad),
        }
    }

    /// The record's length in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    pub fn body_crc_matches(&self) -> bool {
        self.body.is_empty() || body_crc(self.body) == self.body_crc
    }

    /// The value of a property; of a repeated key the last one counts.
    pub fn property(&self, key: &str) -> Option<&'a str> {
        properties::get(self.properties, key)
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*chunk)
    }

    fn i32(&mut self) -> Option<i32> {
        self.chunk().map(i32::from_be_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.chunk().map(i64::from_be_bytes)
    }

    fn slice(&mut self, length: usize) -> Option<&'a [u8]> {
        let (part, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(part)
    }

    fn host(&mut self, v6: bool) -> Option<SocketAddr> {
        let ip = if v6 {
            IpAddr::V6(Ipv6Addr::from(self.chunk::<16>()?))
        } else {
            IpAddr::V4(Ipv4Addr::from(self.chunk::<4>()?))
        };
        // Java keeps ports in an int and rejects what is no port when it builds the address.
        Some(SocketAddr::new(ip, u16::try_from(self.i32()?).ok()?))
    }
}

fn read(record: &[u8], wide_topic: bool) -> Result<RecordView<'_>, BadReason> {
    let lengths = BadReason::Lengths(record.len());
    let mut reader = Reader { rest: record.get(8..).ok_or(lengths)? };
    let view = read_fields(record, &mut reader, wide_topic).ok_or(lengths)??;
    if reader.rest.is_empty() { Ok(view) } else { Err(lengths) }
}

/// `None` when the bytes end too early.
fn read_fields<'a>(
    bytes: &'a [u8],
    reader: &mut Reader<'a>,
    wide_topic: bool,
) -> Option<Result<RecordView<'a>, BadReason>> {
    let body_crc = reader.i32()?;
    let queue_id = reader.i32()?;
    let flag = reader.i32()?;
    let queue_offset = reader.i64()?;
    let physical_offset = reader.i64()?;
    let sys_flag = reader.i32()?;
    let born_timestamp = reader.i64()?;
    let born_host = reader.host(sys_flag & sys_flag::BORN_HOST_V6 != 0)?;
    let store_timestamp = reader.i64()?;
    let store_host = reader.host(sys_flag & sys_flag::STORE_HOST_V6 != 0)?;
    let reconsume_times = reader.i32()?;
    let prepared_transaction_offset = reader.i64()?;
    let Ok(body_length) = usize::try_from(reader.i32()?) else { return Some(Err(BadReason::Range)) };
    let body = reader.slice(body_length)?;
    let topic_length = if wide_topic {
        i32::from(reader.chunk().map(i16::from_be_bytes)?)
    } else {
        i32::from(reader.chunk().map(i8::from_be_bytes)?)
    };
    let Ok(topic_length) = usize::try_from(topic_length) else { return Some(Err(BadReason::Range)) };
    let Ok(topic) = std::str::from_utf8(reader.slice(topic_length)?) else { return Some(Err(BadReason::Topic)) };
    let Ok(properties_length) = usize::try_from(reader.chunk().map(i16::from_be_bytes)?) else {
        return Some(Err(BadReason::Range));
    };
    let properties = reader.slice(properties_length)?;
    Some(Ok(RecordView {
        bytes,
        body_crc,
        queue_id,
        flag,
        queue_offset,
        physical_offset,
        sys_flag,
        born_timestamp,
        born_host,
        store_timestamp,
        store_host,
        reconsume_times,
        prepared_transaction_offset,
        body,
        topic,
        properties,
    }))
}

/// The records that stand one behind another, as in the body of a pull answer. Ends at the first that is none.
pub fn records(bytes: &[u8]) -> Records<'_> {
    Records { rest: bytes }
}

/// Iterates over concatenated records.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordView<'a>, BadRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let found = RecordView::parse(self.rest);
        self.rest = match &found {
            Ok(view) => &self.rest[view.size()..],
            Err(_) => &[],
        };
        Some(found)
    }
}
