//! The extension of a plain queue (`enableConsumeQueueExt`): one unit for each message, to which the tags code of the queue's
//! unit then points.
//!
//! `2 size of the unit | 8 tags code | 8 store time | 2 bytes of bit map | bit map`; a size of −1 ends a file. We write no bit
//! maps; Java does when SQL filters are computed ahead.

/// Bytes of a unit without a bit map.
pub(crate) const EXT_UNIT: usize = 20;
/// Bytes that stay free at the end of a file, for its mark.
const END_ROOM: u64 = 4;

/// Whether a tags code is the address of an extension unit. The hashes of tags are all above.
pub(crate) fn is_address(tags_code: i64) -> bool {
    tags_code < i64::from(i32::MIN)
}

/// The byte an address stands for.
pub(crate) fn position(address: i64) -> u64 {
    address.wrapping_sub(i64::MIN) as u64
}

fn address(position: u64) -> i64 {
    (position as i64).wrapping_add(i64::MIN)
}

/// Size and tags code of the unit that begins here; `None` where there is none.
pub(crate) fn decode(bytes: &[u8]) -> Option<(u64, i64)> {
    let (size, rest) = bytes.split_first_chunk()?;
    let tags_code = rest.first_chunk()?;
    let size = u64::try_from(i16::from_be_bytes(*size)).ok()?;
    (size >= EXT_UNIT as u64).then_some((size, i64::from_be_bytes(*tags_code)))
}

/// What a queue knows of its extension.
pub(crate) struct Ext {
    file_size: u64,
    /// First byte of each file, ascending.
    pub(crate) files: Vec<u64>,
    /// What is not in the files yet.
    tail: Vec<u8>,
    /// Byte at which the tail begins.
    tail_start: u64,
}

impl Ext {
    /// An extension whose files hold everything up to `end`.
    pub(crate) fn new(file_size: u64, files: Vec<u64>, end: u64) -> Self {
        Ext { file_size, files, tail: Vec::new(), tail_start: end }
    }

    /// Adds a unit and returns its address.
    pub(crate) fn put(&mut self, tags_code: i64, store_time: i64) -> i64 {
        let end = self.tail_start + self.tail.len() as u64;
        let room = self.file_size - end % self.file_size;
        if room < EXT_UNIT as u64 + END_ROOM {
            let filled = self.tail.len() + room as usize;
            self.tail.extend_from_slice(&(-1_i16).to_be_bytes());
            self.tail.resize(filled, 0);
        }
        let at = self.tail_start + self.tail.len() as u64;
        self.tail.extend_from_slice(&(EXT_UNIT as i16).to_be_bytes());
        self.tail.extend_from_slice(&tags_code.to_be_bytes());
        self.tail.extend_from_slice(&store_time.to_be_bytes());
        self.tail.extend_from_slice(&[0; 2]);
        address(at)
    }

    /// The tail from a byte on; `None` when it is before the tail.
    pub(crate) fn in_tail(&self, position: u64) -> Option<&[u8]> {
        self.tail.get(usize::try_from(position.checked_sub(self.tail_start)?).ok()?..)
    }

    /// What is not in the files yet: first byte and bytes.
    pub(crate) fn unsaved(&self) -> (u64, Vec<u8>) {
        (self.tail_start, self.tail.clone())
    }

    /// Everything below `to` is in the files now.
    pub(crate) fn set_saved(&mut self, to: u64) {
        let written = (to.saturating_sub(self.tail_start) as usize).min(self.tail.len());
        self.tail.drain(..written);
        self.tail.shrink_to(64 << 10);
        self.tail_start += written as u64;
    }

    /// Goes on at `end`; the tail is saved.
    pub(crate) fn cut(&mut self, end: u64) {
        self.tail.clear();
        self.tail_start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_the_mark_of_a_files_end_are_where_java_has_them() {
        let mut ext = Ext::new(64, Vec::new(), 0);
        assert_eq!(ext.put(-2, 0x0102), i64::MIN);
        assert_eq!(ext.put(7, 0), i64::MIN + 20);
        assert_eq!(ext.put(8, 0), i64::MIN + 40, "4 bytes stay free");
        assert_eq!(ext.put(9, 0), i64::MIN + 64);
        let (start, bytes) = ext.unsaved();
        assert_eq!((start, bytes.len()), (0, 84));
        assert_eq!(bytes[..20], [0, 20, 255, 255, 255, 255, 255, 255, 255, 254, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0]);
        assert_eq!(bytes[60..64], [255, 255, 0, 0]);
        assert_eq!(decode(&bytes[64..]), Some((20, 9)));
        assert_eq!(decode(&bytes[60..]), None);
        ext.set_saved(64);
        assert_eq!(ext.in_tail(40), None);
        assert_eq!(ext.in_tail(64).and_then(decode), Some((20, 9)));
    }

    #[test]
    fn only_what_no_tag_can_have_is_an_address() {
        assert!(!is_address(0) && !is_address(i64::from(i32::MIN)) && !is_address(1_700_000_000_000));
        assert!(is_address(i64::from(i32::MIN) - 1) && is_address(i64::MIN));
        assert_eq!(position(i64::MIN + 20), 20);
    }
}
