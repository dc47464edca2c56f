//! Keeping what recovery cuts off the commit log.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::commit_log::{CommitLog, file_name};
use crate::file::sync_dir;
use crate::walk::next_data;

/// Where it is kept, under the root.
pub(crate) const FOLDER: &str = "commitlog.cut";
/// Bytes copied at once.
const CHUNK: usize = 1 << 20;

/// Copies everything the log holds from `from` on into a new folder `commitlog.cut/<time>` under `root`: one file per commit
/// log file, named after the offset of its first byte. Returns the folder.
pub(crate) fn keep(log: &CommitLog, root: &std::path::Path, from: u64) -> io::Result<PathBuf> {
    let parent = root.join(FOLDER);
    let dir = parent.join(chrono::Local::now().format("%Y%m%d%H%M%S%3f").to_string());
    fs::create_dir_all(&dir)?;
    let mut buffer = vec![0; CHUNK];
    for segment in log.segments().iter().filter(|s| s.end() > from) {
        let begin = from.max(segment.start);
        let mut at = begin;
        let mut copy = None;
        while let Some((data, end)) = next_data(segment, at)? {
            let file = match &copy {
                Some(file) => file,
                None => copy.insert(File::create_new(dir.join(file_name(begin)))?),
            };
            at = data;
            while at < end {
                let want = CHUNK.min((end - at) as usize);
                let Some(part) = buffer.get_mut(..want) else { break };
                let got = segment.file.read_at(part, at - segment.start)?;
                file.write_all_at(part.get(..got).unwrap_or_default(), at - begin)?;
                at += want as u64;
            }
        }
        if let Some(file) = copy {
            file.sync_all()?;
        }
    }
    sync_dir(&dir)?;
    sync_dir(&parent)?;
    sync_dir(root)?;
    Ok(dir)
}
