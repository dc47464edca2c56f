//! The blank record that fills the end of a commit log file.

use bytes::BufMut;

use super::MAGIC_BLANK;

/// Bytes of a blank that are written; the rest of the file behind them is undefined.
pub const BLANK_HEAD: usize = 8;

/// Writes the head of a blank that covers `room` bytes, itself included. Since a record is only put where 8 bytes stay
/// free behind it, `room` is never less than 8.
pub fn encode_blank(out: &mut impl BufMut, room: u32) {
    out.put_u32(room);
    out.put_u32(MAGIC_BLANK);
}
