//! The message as it is stored and as consumers receive it, the wire form of batches, and message properties.
//!
//! ```text
//! | 4 total size | 4 magic | 4 body CRC | 4 queue id | 4 flag | 8 queue offset | 8 physical offset | 4 sysFlag |
//! | 8 born time | 8/20 born host | 8 store time | 8/20 store host | 4 reconsume times | 8 prepared offset |
//! | 4 + n body | 1/2 + n topic | 2 + n properties |
//! ```
//! All numbers are big-endian. Hosts are 4 or 16 address bytes and a port in 4 bytes, told apart by two sysFlag bits.
//! The topic's length takes one byte in version 1 and two in version 2.

mod batch;
mod blank;
mod encode;
mod hash;
mod message_id;
pub mod properties;
pub mod property;
mod property_crc;
pub mod sys_flag;
mod view;

pub use batch::{BatchError, BatchItem, BatchItems, batch_items, encode_batch_item};
pub use blank::{BLANK_HEAD, encode_blank};
pub use encode::{
    NewRecord, RecordError, encode_record, patch_physical_offset, patch_queue_offset, patch_store_timestamp,
    record_length,
};
pub use hash::{body_crc, crc31, java_hash};
pub use message_id::{MessageId, UniqueKey, decode_message_id};
pub use property_crc::{PROPERTY_CRC_LENGTH, PropertyCrc, patch_property_crc, property_crc, property_crc_matches};
pub use view::{BadReason, BadRecord, RecordView, Records, Scan, records, scan};

/// Marks a record whose topic length takes one byte.
pub const MAGIC_V1: u32 = 0xDAA3_20A7;
/// Marks a record whose topic length takes two bytes.
pub const MAGIC_V2: u32 = 0xDAA3_20AB;
/// Marks the unused rest of a commit log file.
pub const MAGIC_BLANK: u32 = 0xCBD4_3194;

/// Where the queue offset stands in a record.
pub const QUEUE_OFFSET_AT: usize = 20;
/// Where the physical offset stands in a record.
pub const PHYSICAL_OFFSET_AT: usize = 28;
/// Where the sysFlag stands in a record.
pub const SYS_FLAG_AT: usize = 36;
/// Where the store time stands in a record whose born host is IPv4; 12 bytes later when it is IPv6.
pub const STORE_TIMESTAMP_AT: usize = 56;

/// A version 1 record with IPv4 hosts, without body, topic and properties.
pub const SMALLEST_RECORD: usize = 91;
/// The longest properties a record can hold: their length is a signed 16-bit number.
pub const LONGEST_PROPERTIES: usize = i16::MAX as usize;
/// The longest topic that version 1 can hold: its length is a signed byte.
pub const LONGEST_V1_TOPIC: usize = i8::MAX as usize;
