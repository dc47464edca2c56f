//! The files of the queues' extensions. A queue is written after its extension, so a unit whose address leads nowhere is what
//! a crash of the machine left; its reader then asks the record.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::load::{WALK_UNITS, data_end, list};
use super::open_files::read_resident;
use super::save::Unsynced;
use super::{Queues, UnitRead};
use crate::commit_log::file_name;
use crate::consume_queue::ConsumeQueue;
use crate::ext::{EXT_UNIT, Ext, decode, is_address, position};
use crate::file::StoreFile;
use crate::read::{QueueType, Unit};

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

    /// Whether new units of a queue get one in the extension.
    pub(super) fn extends(&self, queue: &ConsumeQueue) -> bool {
        self.ext_enabled && queue.kind == QueueType::Simple && !queue.is_light
    }

    /// Looks at a queue's extension, whether or not it is still switched on.
    pub(super) fn load_ext(&self, queue: &ConsumeQueue, last: Option<&Unit>) -> Result<(), String> {
        let dir = self.ext_dir(queue);
        let files = match dir.is_dir() {
            true => list(&dir, self.ext_file_size).map_err(|what| format!("its extension: {what}"))?,
            false => Vec::new(),
        };
        if files.is_empty() && !self.extends(queue) {
            return Ok(());
        }
        // While nothing is added, everything is in the files.
        let end = files.last().map_or(0, |start| start + self.ext_file_size);
        let first = files.first().copied().unwrap_or(0);
        queue.state().ext = Some(Box::new(Ext::new(self.ext_file_size, files, end)));
        if self.extends(queue) {
            let last = match last {
                Some(unit) if !is_address(unit.tags_code) => self.last_extended(queue).map_err(|e| e.to_string())?,
                other => other.copied(),
            };
            self.cut_ext(queue, self.end_by_last(queue, last.as_ref()).unwrap_or(first));
        }
        Ok(())
    }

    /// The last unit that points to the extension. Its files do not say where that is, somebody may have removed them. Behind it are
    /// units from a time without extension; once a unit with one follows, no start goes over them again.
    fn last_extended(&self, queue: &ConsumeQueue) -> io::Result<Option<Unit>> {
        let files = queue.state().files.clone();
        let unit_len = queue.kind.unit_len() as u64;
        let mut chunk = vec![0; WALK_UNITS * unit_len as usize];
        for start in files.into_iter().rev() {
            let file = self.open(queue, start)?;
            let mut to = data_end(&file, self.folder(queue.kind).file_size).next_multiple_of(unit_len);
            while to > 0 {
                let from = to.saturating_sub(chunk.len() as u64);
                let part = chunk.get_mut(..(to - from) as usize).unwrap_or_default();
                file.read_at(part, from)?;
                let first = ((start + from) / unit_len) as i64;
                let units =
                    part.chunks_exact(unit_len as usize).zip(first..).map(|(raw, at)| queue.kind.decode(at, raw));
                if let Some(last) = units.filter(|unit| unit.is_valid() && is_address(unit.tags_code)).last() {
                    return Ok(Some(last));
                }
                to = from;
            }
        }
        Ok(None)
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
