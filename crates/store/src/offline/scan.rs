//! Everything that stands in a commit log, in order.

use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use protocol::record::RecordView;

use super::OfflineStore;
use crate::walk::{Careful, Checksums, Fault, look, next_record};

/// What stands at a place.
pub(super) enum Place<'a> {
    Record(&'a RecordView<'a>),
    /// The end of a file that no record fitted into.
    Blank {
        /// Bytes that it says it covers.
        stated: u64,
        /// Bytes to the end of the file.
        room: u64,
    },
    /// No record, though good ones follow from `next` on.
    Damage {
        fault: Fault,
        next: u64,
    },
    /// A file is missing up to this offset.
    Missing {
        next: u64,
    },
    /// The end of the log: nothing good follows.
    End(Option<Fault>),
}

impl OfflineStore {
    /// Tells `on` everything from `from` on, until it breaks. `from` need not be the start of a record: then damage comes
    /// first.
    pub(super) fn scan(&self, from: u64, on: &mut dyn FnMut(u64, Place<'_>) -> ControlFlow<()>) -> io::Result<()> {
        let log = &self.log;
        let mut at = from.max(log.min_offset());
        let mut last_time = 0;
        loop {
            let Some(segment) = log.segment_at(at) else {
                let next = log.segments().iter().map(|s| s.start).find(|start| *start > at);
                let place = next.map_or(Place::End(None), |next| Place::Missing { next });
                let (ControlFlow::Continue(()), Some(next)) = (on(at, place), next) else { return Ok(()) };
                at = next;
                continue;
            };
            let mut bytes = Careful::new(&segment)?;
            while at < segment.end() {
                let here = bytes.record(at)?;
                let (place, next) = match look(&here, at, Checksums::Record) {
                    Ok(Some(view)) => {
                        last_time = view.store_timestamp;
                        if on(at, Place::Record(&view)).is_break() {
                            return Ok(());
                        }
                        at += view.size() as u64;
                        continue;
                    }
                    Ok(None) => {
                        let stated = here.first_chunk().map_or(0, |size| u64::from(u32::from_be_bytes(*size)));
                        (Place::Blank { stated, room: segment.end() - at }, Some(segment.end()))
                    }
                    Err(fault) => match self.next_real(at + 1, last_time)? {
                        Some(next) => (Place::Damage { fault, next }, Some(next)),
                        None => (Place::End(Some(fault)), None),
                    },
                };
                let (ControlFlow::Continue(()), Some(next)) = (on(at, place), next) else { return Ok(()) };
                at = next;
            }
        }
    }

    /// The next record that is not the leftover of an older end, which is older than what was written over its beginning.
    fn next_real(&self, from: u64, last_time: i64) -> io::Result<Option<u64>> {
        let flushed = self.progress.map_or(0, |p| p.flushed);
        let real = |at: u64| at < flushed || self.record(at, |view| view.store_timestamp >= last_time).unwrap_or(false);
        Ok(next_record(&self.log, from)?.filter(|at| real(*at)))
    }

    /// Shows the record at `at`, whose checksums are not compared. The error says what stands there instead.
    pub(super) fn record<T>(&self, at: u64, show: impl FnOnce(&RecordView<'_>) -> T) -> Result<T, String> {
        let segment = self.log.segment_at(at).ok_or("the commit log has no such offset")?;
        let mut bytes = Careful::new(&segment).map_err(|e| e.to_string())?;
        let here = bytes.record(at).map_err(|e| e.to_string())?;
        match look(&here, at, Checksums::None) {
            Ok(Some(view)) => Ok(show(&view)),
            Ok(None) => Err("the rest of a file that is not used".into()),
            Err(fault) => Err(fault.reason),
        }
    }

    /// File and byte of a commit log offset.
    pub(super) fn place(&self, offset: u64) -> (PathBuf, u64) {
        match self.log.segment_at(offset) {
            Some(segment) => (segment.file.path().to_path_buf(), offset - segment.start),
            None => (self.config.commit_log_dirs().first().cloned().unwrap_or_default(), 0),
        }
    }
}
