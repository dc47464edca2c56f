//! The files of the queues' extensions. A queue is written after its extension, so a unit whose address leads nowhere is what
//! a crash of the machine left; its reader then asks the record.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::load::list;
use super::open_files::read_resident;
use super::save::Unsynced;
use super::{Queues, UnitRead};
use crate::commit_log::file_name;
use crate::consume_queue::ConsumeQueue;
use crate::ext::{EXT_UNIT, Ext, decode, is_address, position};
use crate::file::StoreFile;
use crate::read::Unit;

/// Bytes read at once when units are walked over.
const CHUNK: usize = 64 << 10;

impl Queues {
    pub(super) fn ext_dir(&self, queue: &ConsumeQueue) -> PathBuf {
        self.ext_root.join(&*queue.topic).join(queue.id.to_string())
    }

    pub(super) fn open_ext(&self, queue: &ConsumeQueue, start: u64) -> io::Result<Arc<StoreFile>> {
        self.open_file((queue.ext_uid(), start), || self.ext_dir(queue).join(file_name(start)))
    }

    /// Puts tags codes in the place of addresses, where they are found.
    pub(super) fn resolve(&self, queue: &ConsumeQueue, units: &mut [Unit], may_block: bool) -> UnitRead {
        for unit in units.iter_mut().filter(|unit| is_address(unit.tags_code)) {
            match self.ext_unit(queue, position(unit.tags_code), may_block) {
                Ok(Some(Some((_, tags_code)))) => unit.tags_code = tags_code,
                Ok(Some(None)) => {}
                Ok(None) => return UnitRead::Cold,
                Err(error) => {
                    tracing::error!(topic = %queue.topic, queue = queue.id, %error, "reading a consume queue's extension failed");
                }
            }
        }
        UnitRead::Found
    }

    /// Size and tags code of the unit at a byte, if there is one; `None` when the caller may not wait for it.
    fn ext_unit(&self, queue: &ConsumeQueue, at: u64, may_block: bool) -> io::Result<Option<Option<(u64, i64)>>> {
        let start = at - at % self.ext_file_size;
        {
            let state = queue.state();
            let Some(ext) = &state.ext else { return Ok(Some(None)) };
            if let Some(tail) = ext.in_tail(at) {
                return Ok(Some(decode(tail)));
            }
            if !ext.files.contains(&start) || at - start + EXT_UNIT as u64 > self.ext_file_size {
                return Ok(Some(None));
            }
        }
        let file = self.open_ext(queue, start)?;
        let mut raw = [0; EXT_UNIT];
        let read = read_resident(&file, &mut raw, at - start, may_block)?;
        Ok(read.then(|| decode(&raw)))
    }

    /// Writes what is only in memory.
    pub(super) fn save_ext(&self, queue: &Arc<ConsumeQueue>, io: &mut Unsynced) -> io::Result<()> {
        let Some((mut at, bytes)) = queue.state().ext.as_ref().map(|ext| ext.unsaved()) else { return Ok(()) };
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let in_file = at % self.ext_file_size;
            let start = at - in_file;
            let (now, later) = rest.split_at(((self.ext_file_size - in_file) as usize).min(rest.len()));
            let file = self.ext_file_for_write(queue, start, io)?;
            file.write_all_at(now, in_file)?;
            io.wrote(queue, (queue.ext_uid(), start), now.len() as u64);
            at += now.len() as u64;
            rest = later;
            if let Some(ext) = &mut queue.state().ext {
                ext.set_saved(at);
            }
        }
        Ok(())
    }

    fn ext_file_for_write(&self, queue: &ConsumeQueue, start: u64, io: &mut Unsynced) -> io::Result<Arc<StoreFile>> {
        if queue.state().ext.as_ref().is_some_and(|ext| ext.files.contains(&start)) {
            return self.open_ext(queue, start);
        }
        let file = self.create_file(&self.ext_root, queue, (queue.ext_uid(), start), self.ext_file_size, io)?;
        if let Some(ext) = &mut queue.state().ext {
            let at = ext.files.partition_point(|s| *s < start);
            ext.files.insert(at, start);
        }
        Ok(file)
    }

    /// Looks at a queue's extension, whether or not it is still switched on.
    pub(super) fn load_ext(&self, queue: &ConsumeQueue, last: Option<&Unit>) -> Result<(), String> {
        let dir = self.ext_dir(queue);
        let files = match dir.is_dir() {
            true => list(&dir, self.ext_file_size).map_err(|what| format!("its extension: {what}"))?,
            false if last.is_none_or(|unit| !is_address(unit.tags_code)) => return Ok(()),
            false => Vec::new(),
        };
        queue.state().ext = Some(Box::new(Ext::new(self.ext_file_size, files, 0)));
        let end = match self.end_by_last(queue, last) {
            Some(end) => end,
            None => self.end_by_walk(queue).map_err(|e| e.to_string())?,
        };
        self.cut_ext(queue, end);
        Ok(())
    }

    /// After a queue was cut behind `last`: its extension is cut behind what that points to.
    pub(super) fn follow_cut(&self, queue: &ConsumeQueue, last: Option<&Unit>) {
        if let Some(end) = self.end_by_last(queue, last) {
            self.cut_ext(queue, end);
        }
    }

    fn cut_ext(&self, queue: &ConsumeQueue, end: u64) {
        if let Some(ext) = &mut queue.state().ext {
            ext.cut(end);
        }
    }

    /// Where the extension goes on, as the queue's last unit says. An address that leads nowhere must not be given again.
    fn end_by_last(&self, queue: &ConsumeQueue, last: Option<&Unit>) -> Option<u64> {
        let at = last.map(|unit| unit.tags_code).filter(|code| is_address(*code)).map(position)?;
        let unit = self.ext_unit(queue, at, true).ok().flatten().flatten();
        Some(unit.map_or_else(|| (at + 1).next_multiple_of(self.ext_file_size), |(size, _)| at + size))
    }

    fn end_by_walk(&self, queue: &ConsumeQueue) -> io::Result<u64> {
        let last = queue.state().ext.as_ref().and_then(|ext| ext.files.last().copied());
        let Some(start) = last else { return Ok(0) };
        let file = self.open_ext(queue, start)?;
        let mut chunk = vec![0; CHUNK];
        let mut at = 0;
        while at < self.ext_file_size {
            let want = chunk.len().min((self.ext_file_size - at) as usize);
            let part = chunk.get_mut(..want).unwrap_or_default();
            file.read_at(part, at)?;
            let mut in_part = 0;
            while let Some((size, _)) = part.get(in_part..).and_then(decode) {
                in_part += size as usize;
            }
            at += in_part as u64;
            // At the end of a part its last unit may be cut off; a part that begins with none is the end.
            if in_part == 0 || in_part + EXT_UNIT <= want {
                break;
            }
        }
        Ok(start + at)
    }

    /// Removes files that are all before what the queue's first unit points to, never the last.
    pub(super) fn clean_ext(&self, queue: &ConsumeQueue, first: Option<&Unit>) -> io::Result<()> {
        let Some(at) = first.map(|unit| unit.tags_code).filter(|code| is_address(*code)).map(position) else {
            return Ok(());
        };
        loop {
            let start = match queue.state().ext.as_ref().map(|ext| ext.files.as_slice()) {
                Some([start, _, ..]) if start + self.ext_file_size <= at => *start,
                _ => return Ok(()),
            };
            fs::remove_file(self.ext_dir(queue).join(file_name(start)))?;
            if let Some(ext) = &mut queue.state().ext {
                ext.files.retain(|s| *s != start);
            }
            self.open.lock().close((queue.ext_uid(), start));
        }
    }
}
