//! The unit of 46 bytes of batch consume queues and of the queues of compacted logs.
//!
//! `8 physical offset | 4 size | 8 tags code | 8 store time | 8 base queue offset | 2 messages | 4 compacted offset | 4 zero`

/// Bytes of a unit.
pub(crate) const BATCH_UNIT: usize = 46;
/// What Java writes where a batch consume queue has no compacted offset.
const NO_COMPACTED_OFFSET: i32 = -1;

/// One record that holds one or more messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchUnit {
    pub(crate) physical_offset: u64,
    pub(crate) size: u32,
    pub(crate) tags_code: i64,
    /// Milliseconds since 1970.
    pub(crate) store_time: i64,
    /// Queue offset of the first message.
    pub(crate) base: i64,
    /// Messages in the record.
    pub(crate) count: i16,
}

impl BatchUnit {
    pub(crate) fn encode(&self) -> [u8; BATCH_UNIT] {
        let mut out = [0; BATCH_UNIT];
        out[..8].copy_from_slice(&self.physical_offset.to_be_bytes());
        out[8..12].copy_from_slice(&self.size.to_be_bytes());
        out[12..20].copy_from_slice(&self.tags_code.to_be_bytes());
        out[20..28].copy_from_slice(&self.store_time.to_be_bytes());
        out[28..36].copy_from_slice(&self.base.to_be_bytes());
        out[36..38].copy_from_slice(&self.count.to_be_bytes());
        out[38..42].copy_from_slice(&NO_COMPACTED_OFFSET.to_be_bytes());
        out
    }

    /// Reads a unit; `None` when the bytes are none, which is how a file's unwritten rest looks.
    pub(crate) fn decode(bytes: &[u8]) -> Option<BatchUnit> {
        let (physical, rest) = bytes.split_first_chunk()?;
        let (size, rest) = rest.split_first_chunk()?;
        let (tags_code, rest) = rest.split_first_chunk()?;
        let (store_time, rest) = rest.split_first_chunk()?;
        let (base, rest) = rest.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        rest.get(..8)?;
        let unit = BatchUnit {
            physical_offset: u64::from_be_bytes(*physical),
            size: u32::from_be_bytes(*size),
            tags_code: i64::from_be_bytes(*tags_code),
            store_time: i64::from_be_bytes(*store_time),
            base: i64::from_be_bytes(*base),
            count: i16::from_be_bytes(*count),
        };
        let positive = unit.size > 0 && unit.size <= i32::MAX as u32 && unit.count > 0;
        (positive && unit.physical_offset <= i64::MAX as u64 && unit.base >= 0).then_some(unit)
    }

    /// Queue offset after the last message.
    pub(crate) fn end(&self) -> i64 {
        self.base + i64::from(self.count)
    }

    /// End of the record in its log.
    pub(crate) fn physical_end(&self) -> u64 {
        self.physical_offset + u64::from(self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_its_fields_where_java_has_them() {
        let unit = BatchUnit {
            physical_offset: 0x0102_0304_0506_0708,
            size: 0x090A_0B0C,
            tags_code: -2,
            store_time: 0x0000_018B_CFE5_6800,
            base: 300,
            count: 10,
        };
        let raw = unit.encode();
        assert_eq!(raw[..12], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(raw[12..20], [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE]);
        assert_eq!(raw[20..28], [0, 0, 1, 0x8B, 0xCF, 0xE5, 0x68, 0]);
        assert_eq!(raw[28..], [0, 0, 0, 0, 0, 0, 1, 0x2C, 0, 10, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0]);
        assert_eq!(BatchUnit::decode(&raw), Some(unit));
        assert_eq!(unit.end(), 310);
    }

    #[test]
    fn unwritten_and_short_bytes_are_no_unit() {
        assert_eq!(BatchUnit::decode(&[0; BATCH_UNIT]), None);
        assert_eq!(BatchUnit::decode(&[1; BATCH_UNIT - 1]), None);
    }
}
