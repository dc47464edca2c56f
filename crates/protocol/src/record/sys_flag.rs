//! The bits of a message's sysFlag.

pub const COMPRESSED: i32 = 0x1;
pub const MULTI_TAGS: i32 = 0x2;
pub const TRANSACTION_NOT: i32 = 0;
pub const TRANSACTION_PREPARED: i32 = 0x4;
pub const TRANSACTION_COMMIT: i32 = 0x8;
pub const TRANSACTION_ROLLBACK: i32 = 0xC;
/// The two bits that hold one of the four transaction values.
pub const TRANSACTION_MASK: i32 = 0xC;
pub const BORN_HOST_V6: i32 = 0x10;
pub const STORE_HOST_V6: i32 = 0x20;
/// The consumer must unpack an inner batch.
pub const NEED_UNWRAP: i32 = 0x40;
/// The record is an inner batch: one record that holds many messages.
pub const INNER_BATCH: i32 = 0x80;
pub const COMPRESSION_LZ4: i32 = 0x100;
pub const COMPRESSION_ZSTD: i32 = 0x200;
pub const COMPRESSION_ZLIB: i32 = 0x300;
/// The bits that hold the compression; none of them with [`COMPRESSED`] set means zlib.
pub const COMPRESSION_MASK: i32 = 0x700;

/// The transaction bits alone.
pub fn transaction(sys_flag: i32) -> i32 {
    sys_flag & TRANSACTION_MASK
}

/// Replaces the transaction bits.
pub fn with_transaction(sys_flag: i32, value: i32) -> i32 {
    (sys_flag & !TRANSACTION_MASK) | (value & TRANSACTION_MASK)
}

/// Whether a record takes a place in its queue: prepared and rolled back ones do not.
pub fn takes_queue_place(sys_flag: i32) -> bool {
    !matches!(transaction(sys_flag), TRANSACTION_PREPARED | TRANSACTION_ROLLBACK)
}

pub(crate) fn born_host_length(sys_flag: i32) -> usize {
    if sys_flag & BORN_HOST_V6 == 0 { 8 } else { 20 }
}

pub(crate) fn store_host_length(sys_flag: i32) -> usize {
    if sys_flag & STORE_HOST_V6 == 0 { 8 } else { 20 }
}
