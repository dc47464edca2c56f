//! The new files of a round take the place of the old ones.
//!
//! The round's files lie complete in `compacting`. Writing the file `swap` decides: from then on the new files count, and
//! whoever finds `swap` moves them into place, which can be done again after any crash.

use std::fs;
use std::io;

use super::files::{Folder, Pair, Sizes};
use super::log::{CompactionLog, State};
use crate::commit_log::file_name;
use crate::folders::{entries, if_there};

const SWAP: &str = "swap";
/// What Java appends to names of files it is about to remove.
const DELETE: &str = ".delete";

/// New files begin at 0 and end before `new_end`; old ones below `old_end` go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Swap {
    new_end: u64,
    old_end: u64,
}

impl CompactionLog {
    /// Replaces the first pairs, `old`, by `new`, which lie in `compacting` and on the disk.
    pub(super) fn swap(&self, old: &[Pair], new: Vec<Pair>) -> io::Result<()> {
        let _writing = self.writing.lock();
        let rest = {
            let state = self.state.read();
            let known = state.as_ref().filter(|state| !self.is_dead() && state.pairs.starts_with(old));
            let known = known.ok_or_else(|| io::Error::other("the files changed during the round"))?;
            known.pairs.get(old.len()..).unwrap_or_default().to_vec()
        };
        let swap =
            Swap { new_end: new.len() as u64 * self.sizes.log, old_end: rest.first().map_or(0, |pair| pair.start) };
        // Fewer records never need more files.
        if swap.new_end > swap.old_end {
            return Err(io::Error::other("the new files need more room than the old ones"));
        }
        let pairs = new.into_iter().chain(rest).collect();
        // On an error the state becomes unknown, and loading it again finishes the swap if it had been decided.
        self.replace(swap, pairs).inspect_err(|_| *self.state.write() = None)
    }

    fn replace(&self, swap: Swap, pairs: Vec<Pair>) -> io::Result<()> {
        self.folder.compacting().create()?;
        self.folder.compacting().sync()?;
        let text = format!("{} {}", swap.new_end, swap.old_end);
        self.folder.replace(&self.folder.log.join(SWAP), text.as_bytes())?;
        {
            // Readers wait for this alone, not for the disk.
            let mut state = self.state.write();
            let known = state.take();
            move_files(&self.folder, self.sizes, swap)?;
            *state = known.map(|known| State { pairs, ..known });
        }
        settle(&self.folder)
    }
}

/// Brings the folders into order after a crash during a round, ours or Java's.
pub(super) fn recover(folder: &Folder, sizes: Sizes) -> io::Result<()> {
    let path = folder.log.join(SWAP);
    match if_there(fs::read_to_string(&path))? {
        Some(text) => {
            let swap = parse(&text).ok_or_else(|| io::Error::other(format!("{}: not understood", path.display())))?;
            finish(folder, sizes, swap)?;
        }
        None => undo_java(folder)?,
    }
    folder.remove_file(&path.with_extension("tmp"))?;
    folder.compacting().remove()
}

fn parse(text: &str) -> Option<Swap> {
    let (new_end, old_end) = text.split_once(' ')?;
    Some(Swap { new_end: new_end.parse().ok()?, old_end: old_end.parse().ok()? })
}

fn finish(folder: &Folder, sizes: Sizes, swap: Swap) -> io::Result<()> {
    move_files(folder, sizes, swap)?;
    settle(folder)
}

fn move_files(folder: &Folder, sizes: Sizes, swap: Swap) -> io::Result<()> {
    let built = folder.compacting();
    for (from, to, size) in [(&built.log, &folder.log, sizes.log), (&built.queue, &folder.queue, sizes.queue)] {
        for start in Folder::starts(from, size)? {
            let name = file_name(start);
            folder.rename(&from.join(&name), &to.join(name))?;
        }
        for start in Folder::starts(to, size)? {
            if (swap.new_end..swap.old_end).contains(&start) {
                folder.remove_file(&to.join(file_name(start)))?;
            }
        }
    }
    Ok(())
}

/// All files are where they belong: puts that onto the disk, and ends the swap.
fn settle(folder: &Folder) -> io::Result<()> {
    folder.sync()?;
    folder.compacting().remove()?;
    folder.remove_file(&folder.log.join(SWAP))?;
    folder.sync()
}

/// Java renames the old files, moves the new ones up, then removes the old ones; first all of the log, then of the queue. As
/// long as new files of the log are still to be moved the old ones count. Units can be made again from the log.
fn undo_java(folder: &Folder) -> io::Result<()> {
    let renamed = renamed_by_java(&folder.log)?;
    let unfinished = fs::read_dir(folder.compacting().log).is_ok_and(|mut entries| entries.next().is_some());
    if unfinished && let Some((last, _)) = renamed.last() {
        for start in fs::read_dir(&folder.log)?.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u64>().ok()) {
            if start < *last {
                folder.remove_file(&folder.log_file(start))?;
            }
        }
        for (start, name) in &renamed {
            folder.rename(&folder.log.join(name), &folder.log_file(*start))?;
        }
    }
    for dir in [&folder.log, &folder.queue] {
        for (_, name) in renamed_by_java(dir)? {
            folder.remove_file(&dir.join(name))?;
        }
    }
    Ok(())
}

fn renamed_by_java(dir: &std::path::Path) -> io::Result<Vec<(u64, String)>> {
    let mut found = Vec::new();
    for entry in entries(dir)? {
        let Ok(name) = entry?.file_name().into_string() else { continue };
        if let Some(start) = name.strip_suffix(DELETE).and_then(|start| start.parse().ok()) {
            found.push((start, name));
        }
    }
    found.sort_unstable();
    Ok(found)
}
