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

/// What the end of a record says about the checksum of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PropertyCrc {
    Matches,
    /// The digits are wrong, or the property itself is damaged.
    Wrong,
    /// The record was stored without the property.
    Absent,
}

/// Compares the checksum at the end of a record with the record.
///
/// The property counts as present as long as its key, or its form and most of its key are intact: a few damaged bytes do not
/// make it vanish.
pub fn property_crc(record: &[u8]) -> PropertyCrc {
    let Some(covered) = record.len().checked_sub(PROPERTY_CRC_LENGTH) else { return PropertyCrc::Absent };
    let (covered, tail) = record.split_at(covered);
    let (key, value) = tail.split_at(property::CRC32.len());
    let damaged = key.iter().zip(property::CRC32.bytes()).filter(|(found, byte)| *found != byte).count();
    let [properties::KEY_END, digits_found @ .., properties::PAIR_END] = value else {
        return if damaged == 0 { PropertyCrc::Wrong } else { PropertyCrc::Absent };
    };
    match damaged {
        0 if *digits_found == digits(crc31(covered)) => PropertyCrc::Matches,
        0..=2 => PropertyCrc::Wrong,
        _ => PropertyCrc::Absent,
    }
}

/// Whether a record ends with the property and its digits are right.
pub fn property_crc_matches(record: &[u8]) -> bool {
    property_crc(record) == PropertyCrc::Matches
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

    #[test]
    fn a_damaged_property_is_not_taken_for_an_absent_one() {
        let mut record = b"some record".to_vec();
        assert_eq!(property_crc(&record), PropertyCrc::Absent);
        record.extend_from_slice(&EMPTY);
        patch_property_crc(&mut record);
        assert_eq!(property_crc(&record), PropertyCrc::Matches);
        for at in 0..record.len() {
            let mut damaged = record.clone();
            damaged[at] ^= 0x20;
            assert_eq!(property_crc(&damaged), PropertyCrc::Wrong, "byte {at}");
        }
        assert_eq!(property_crc(b"\x02a property of the user\x011700000000\x02"), PropertyCrc::Absent);
    }
}
