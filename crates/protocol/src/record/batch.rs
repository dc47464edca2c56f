//! The body of a batch send: messages of one topic and queue in a short form.
//!
//! ```text
//! ( 4 size | 4 magic 0 | 4 CRC 0 | 4 flag | 4 + n body | 2 + n properties )*
//! ```

use bytes::BufMut;

use super::{LONGEST_PROPERTIES, RecordError};

/// One message of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchItem<'a> {
    /// The application's own flag.
    pub flag: i32,
    pub body: &'a [u8],
    /// A property string.
    pub properties: &'a [u8],
}

/// A batch whose bytes do not hold what their lengths say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("message {index} of the batch is cut off or has a negative length")]
pub struct BatchError {
    pub index: usize,
}

/// The messages of a batch. Sizes, marks and checksums of the items are not looked at, as in Java: the lengths of body
/// and properties alone lead from one to the next.
pub fn batch_items(body: &[u8]) -> BatchItems<'_> {
    BatchItems { rest: body, index: 0 }
}

/// Iterates over the messages of a batch; ends behind the first error.
#[derive(Debug, Clone)]
pub struct BatchItems<'a> {
    rest: &'a [u8],
    index: usize,
}

impl<'a> Iterator for BatchItems<'a> {
    type Item = Result<BatchItem<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let index = self.index;
        self.index += 1;
        Some(match take_item(&mut self.rest) {
            Some(item) => Ok(item),
            None => {
                self.rest = &[];
                Err(BatchError { index })
            }
        })
    }
}

fn take_item<'a>(rest: &mut &'a [u8]) -> Option<BatchItem<'a>> {
    let (_, after) = rest.split_at_checked(12)?;
    let (flag, after) = after.split_first_chunk::<4>()?;
    let (length, after) = after.split_first_chunk::<4>()?;
    let (body, after) = after.split_at_checked(usize::try_from(i32::from_be_bytes(*length)).ok()?)?;
    let (length, after) = after.split_first_chunk::<2>()?;
    let (properties, after) = after.split_at_checked(usize::try_from(i16::from_be_bytes(*length)).ok()?)?;
    *rest = after;
    Some(BatchItem { flag: i32::from_be_bytes(*flag), body, properties })
}

/// Appends one message to a batch. Nothing is written when it fails.
pub fn encode_batch_item(out: &mut impl BufMut, item: &BatchItem<'_>) -> Result<(), RecordError> {
    if item.properties.len() > LONGEST_PROPERTIES {
        return Err(RecordError::PropertiesTooLong(item.properties.len()));
    }
    let size = 22 + item.body.len() + item.properties.len();
    if size > i32::MAX as usize {
        return Err(RecordError::TooLong(size));
    }
    out.put_u32(size as u32);
    out.put_u32(0);
    out.put_u32(0);
    out.put_i32(item.flag);
    out.put_u32(item.body.len() as u32);
    out.put_slice(item.body);
    out.put_u16(item.properties.len() as u16);
    out.put_slice(item.properties);
    Ok(())
}
