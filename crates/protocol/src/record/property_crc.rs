//! The property that holds a checksum of the whole record (`enabledAppendPropCRC`).
//!
//! It is the last property and 20 bytes long: `__CRC32#`, the key's end, ten digits, the pair's end. The digits are the
//! decimal CRC with the least significant digit first, padded with zeros behind.

use super::{crc31, properties, property};

/// The bytes the property takes.
pub const PROPERTY_CRC_LENGTH: usize = 20;

const DIGITS: usize = 10;

/// The property before its digits are known.
pub(super) const EMPTY: [u8; PROPERTY_CRC_LENGTH] = *b"__CRC32#\x010000000000\x02";

/// Computes the checksum of a record that ends with the property and writes its digits. Must come after all other
/// patches. Bytes too short to hold the property stay as they are.
pub fn patch_property_crc(record: &mut [u8]) {
    let Some(covered) = record.len().checked_sub(PROPERTY_CRC_LENGTH) else { return };
    let digits = digits(crc31(&record[..covered]));
    let start = covered + property::CRC32.len() + 1;
    record[start..start + DIGITS].copy_from_slice(&digits);
}

/// Whether a record ends with the property and its digits are right.
pub fn property_crc_matches(record: &[u8]) -> bool {
    let Some(covered) = record.len().checked_sub(PROPERTY_CRC_LENGTH) else { return false };
    let (covered, tail) = record.split_at(covered);
    let Some(rest) = tail.strip_prefix(property::CRC32.as_bytes()) else { return false };
    let Some((&properties::KEY_END, rest)) = rest.split_first() else { return false };
    rest.strip_suffix(&[properties::PAIR_END]) == Some(&digits(crc31(covered)))
}

fn digits(crc: i32) -> [u8; DIGITS] {
    let mut rest = crc.unsigned_abs();
    let mut out = [b'0'; DIGITS];
    for digit in &mut out {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_backwards() {
        assert_eq!(&digits(1_028_153_511), b"1153518201");
        assert_eq!(&digits(7), b"7000000000");
    }
}
