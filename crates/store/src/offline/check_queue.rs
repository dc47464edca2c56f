//! Checking consume queues against the commit log.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::record::RecordView;

use super::OfflineStore;
use super::check_log::Seen;
use super::findings::{Finding, Findings, Remedy};
use super::units::Folder;
use crate::commit_log::file_name;
use crate::consume_queue::ConsumeQueue;
use crate::ext::{self, EXT_UNIT, is_address, position};
use crate::facts::unit_of;
use crate::multi_dispatch;
use crate::progress::Report;
use crate::{QueueType, SCHEDULE_TOPIC, TopicKinds, Unit};

/// How far a queue has been walked.
struct Walk<'a> {
    folder: &'a Folder,
    queue: ConsumeQueue,
    /// Offset of the next unit.
    next: i64,
    /// End of the last unit's record in the commit log.
    physical_end: u64,
    /// Queue offset of the first unit that is no filler.
    first: Option<i64>,
    /// The units have ended; what follows should be nothing.
    ended: Option<(PathBuf, u64)>,
}

impl OfflineStore {
    pub(super) fn check_queues(&self, seen: &Seen, found: &mut Findings) -> io::Result<()> {
        let mut folders = self.queue_folders(QueueType::Simple)?;
        folders.extend(self.queue_folders(QueueType::Batch)?);
        let mut report = Report::new(self.config.screen.clone());
        for folder in &folders {
            let units = found.totals.units;
            report.tick(|| format!("consume queues: {units} units, now {}/{}", folder.topic, folder.id));
            found.totals.queues += 1;
            if self.topics.queue_type(&folder.topic) != folder.kind && self.topics.knows(&folder.topic) {
                let what = "by config/topics.json the topic's queues are of the other kind";
                found.add(Finding::new("consume queue of another kind", Remedy::ByHand, &folder.path, what));
            } else if let Err(finding) = self.check_queue(folder, seen, found)? {
                found.add(finding);
            }
        }
        self.check_missing(&folders, seen, found);
        Ok(())
    }

    /// Queues that the commit log has messages of and the disk no folder.
    fn check_missing(&self, folders: &[Folder], seen: &Seen, found: &mut Findings) {
        let have: HashSet<(&str, i32)> = folders.iter().map(|f| (f.topic.as_str(), f.id)).collect();
        let all_rebuilt = have.is_empty() || self.progress.is_some_and(|p| have.len() < p.queues as usize);
        for (topic, id, queue) in seen.all() {
            if !self.topics.may_exist(topic) || have.contains(&(topic, id)) {
                continue;
            }
            let redone = all_rebuilt || queue.redone.is_some_and(|redone| redone <= queue.first);
            let remedy = if redone { Remedy::NextStart } else { Remedy::Rebuild };
            let folder = self.queue_folder(topic, id, self.topics.queue_type(topic));
            let what = format!("the commit log has messages {} to {} of it", queue.first, queue.next - 1);
            found.add(Finding::new("missing consume queue", remedy, &folder.path, what));
        }
    }

    fn check_queue(&self, folder: &Folder, seen: &Seen, found: &mut Findings) -> io::Result<Result<(), Finding>> {
        let files = match self.queue_files(folder)? {
            Ok(files) => files,
            Err(finding) => return Ok(Err(finding)),
        };
        let queue = ConsumeQueue::new(0, Arc::from(folder.topic.as_str()), folder.id, folder.kind);
        let mut walk = Walk { folder, queue, next: files.first(), physical_end: 0, first: None, ended: None };
        files.each(0, &mut |path, position, unit| {
            self.check_unit(&mut walk, path, position, unit, seen, found);
            ControlFlow::Continue(())
        })?;
        Ok(self.check_queue_end(&walk, seen))
    }

    fn check_unit(
        &self,
        walk: &mut Walk<'_>,
        path: &Path,
        position: u64,
        unit: Unit,
        seen: &Seen,
        found: &mut Findings,
    ) {
        let follows = unit.is_valid() && (unit.is_filler() || unit.physical_offset >= walk.physical_end);
        if let Some((_, hole)) = &walk.ended {
            // Units of an earlier life, which Java leaves behind the end, go back in the commit log.
            if follows && !unit.is_filler() {
                let what = format!("units end at byte {hole}, but here is one more");
                found.add(in_queue("hole in a consume queue", Remedy::Rebuild, path, position, &unit, what));
                walk.ended = None;
            } else {
                return;
            }
        } else if !follows {
            walk.ended = Some((path.to_path_buf(), position));
            return;
        }
        walk.next = unit.end();
        if unit.is_filler() {
            return;
        }
        found.totals.units += 1;
        walk.first.get_or_insert(unit.queue_offset);
        walk.physical_end = unit.physical_end();
        if unit.physical_offset < found.totals.log_start {
            return;
        }
        if let Some((kind, remedy, what)) = self.judge_unit(walk, &unit, seen, found.totals.log_end) {
            found.add(in_queue(kind, remedy, path, position, &unit, what));
        }
    }

    fn judge_unit(
        &self,
        walk: &Walk<'_>,
        unit: &Unit,
        seen: &Seen,
        log_end: u64,
    ) -> Option<(&'static str, Remedy, String)> {
        let at = unit.physical_offset;
        if seen.is_damaged(at) {
            return Some((
                "unit of a damaged record",
                Remedy::Lost,
                format!("its record at {at} is damaged or missing"),
            ));
        }
        if unit.physical_end() > log_end {
            let remedy = if self.abort { Remedy::NextStart } else { Remedy::Lost };
            let what = format!("its record ends at {}, the commit log at {log_end}", unit.physical_end());
            return Some(("unit behind the end of the commit log", remedy, what));
        }
        match self.record(at, |record| self.compare(walk, unit, record)) {
            Ok(result) => result,
            Err(reason) => {
                Some(("unit that points to no record", Remedy::Rebuild, format!("at {at} in the commit log: {reason}")))
            }
        }
    }

    fn compare(&self, walk: &Walk<'_>, unit: &Unit, record: &RecordView<'_>) -> Option<(&'static str, Remedy, String)> {
        let Folder { topic, id, .. } = walk.folder;
        let at = unit.physical_offset;
        let own = record.topic == topic && record.queue_id == *id;
        let expected = unit_of(&self.config, &walk.queue, at, record);
        let in_light = || multi_dispatch::places(record).find(|(name, _)| name == topic).map(|(_, place)| place);
        let place = if own { Some(expected.base) } else { in_light() };
        let Some(place) = place else {
            let what = format!("the record at {at} belongs to queue {} of {}", record.queue_id, record.topic);
            return Some(("unit of another queue's record", Remedy::Rebuild, what));
        };
        if record.size() != unit.size as usize {
            let what = format!("it says {} bytes, the record at {at} has {}", unit.size, record.size());
            return Some(("unit with a wrong size", Remedy::Rebuild, what));
        }
        if place != unit.queue_offset {
            let what = format!("the record at {at} says it is number {place} of its queue");
            return Some(("unit at another queue offset", Remedy::Lost, what));
        }
        if unit.count != expected.count {
            let what = format!("it says {} messages, the record at {at} has {}", unit.count, expected.count);
            return Some(("unit with a wrong number of messages", Remedy::Rebuild, what));
        }
        if is_address(unit.tags_code) {
            let found = self.ext_tags_code(walk.folder, position(unit.tags_code));
            let what = format!("its tags code is in the extension at {}, there is {found:?}", position(unit.tags_code));
            let wrong = ("unit without its extension", Remedy::Rebuild, what);
            return (found != Some(expected.tags_code)).then_some(wrong);
        }
        // The levels may have been others when it was stored.
        let other_levels = topic == SCHEDULE_TOPIC && unit.tags_code >= record.store_timestamp;
        if unit.tags_code != expected.tags_code && !other_levels {
            let what = format!("its tags code is {}, the record's at {at} is {}", unit.tags_code, expected.tags_code);
            return Some(("unit with a wrong tags code", Remedy::Rebuild, what));
        }
        None
    }

    /// The tags code at a byte of a queue's extension.
    fn ext_tags_code(&self, folder: &Folder, at: u64) -> Option<i64> {
        let (root, size) = self.config.ext_folder();
        let dir = root.join(&folder.topic).join(folder.id.to_string());
        let mut raw = [0; EXT_UNIT];
        File::open(dir.join(file_name(at - at % size))).ok()?.read_exact_at(&mut raw, at % size).ok()?;
        ext::decode(&raw).map(|(_, tags_code)| tags_code)
    }

    /// Whether the queue has the first and the last of what the log has of it.
    fn check_queue_end(&self, walk: &Walk<'_>, seen: &Seen) -> Result<(), Finding> {
        let Folder { topic, id, path, .. } = walk.folder;
        let first = walk.first.zip(seen.queue(topic, *id)).filter(|(first, queue)| queue.first < *first);
        if let Some((first, queue)) = first {
            let what = format!("the queue begins at {first}, the commit log has it from {} on", queue.first);
            let kind = "units missing at the beginning of a consume queue";
            return Err(Finding::new(kind, Remedy::Rebuild, path, what).offset(queue.first as u64));
        }
        let Some(queue) = seen.queue(topic, *id).filter(|queue| queue.next > walk.next) else { return Ok(()) };
        let redone = queue.redone.is_some_and(|redone| redone <= walk.next.max(queue.first));
        let remedy = if redone { Remedy::NextStart } else { Remedy::Rebuild };
        let what = format!("the queue ends at {}, the commit log has it up to {}", walk.next, queue.next);
        let (path, position) = walk.ended.clone().unwrap_or_else(|| (path.clone(), 0));
        Err(Finding::new("units missing at the end of a consume queue", remedy, &path, what)
            .at(position)
            .offset(walk.next as u64))
    }
}

fn in_queue(kind: &'static str, remedy: Remedy, path: &Path, position: u64, unit: &Unit, what: String) -> Finding {
    Finding::new(kind, remedy, path, what).at(position).offset(unit.queue_offset as u64)
}
