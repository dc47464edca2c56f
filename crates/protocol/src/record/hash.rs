//! The two hashes of the disk format.

/// Java's `String.hashCode`: over UTF-16 units, so that tag and key hashes agree for every alphabet.
pub fn java_hash(text: &str) -> i32 {
    let step = |hash: i32, unit: u16| hash.wrapping_mul(31).wrapping_add(i32::from(unit));
    if text.is_ascii() {
        return text.bytes().fold(0, |hash, byte| step(hash, u16::from(byte)));
    }
    text.encode_utf16().fold(0, step)
}

/// CRC-32 with the top bit cleared, as records and registrations hold it.
pub fn crc31(bytes: &[u8]) -> i32 {
    (crc32fast::hash(bytes) & 0x7FFF_FFFF) as i32
}

/// The CRC a record holds of its body.
pub fn body_crc(body: &[u8]) -> i32 {
    crc31(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_agree_with_java() {
        for (text, hash) in [
            ("TagA", 2_598_919),
            ("TagA || TagB", 1_359_775_119),
            ("标签", 857_175),
            ("😀", 1_772_899),
            ("polygenelubricants", i32::MIN),
            ("TopicTest#KEY1", -1_656_969_516),
            ("", 0),
        ] {
            assert_eq!(java_hash(text), hash, "{text}");
        }
    }

    #[test]
    fn crc_has_31_bits() {
        assert_eq!(crc31(b"Hello RocketMQ"), 1_774_740_973);
        assert_eq!(crc31(b"123456789"), 1_274_296_614);
        assert_eq!(crc31(b""), 0);
    }
}
