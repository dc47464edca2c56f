//! A machine that dies.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use store::Faults;

/// Where a write went and what was there before.
type Overwritten = (u64, Vec<u8>);

/// Remembers what each unsynced write covered, so that a crash can take it back.
#[derive(Default)]
pub struct PageCache {
    unsynced: Mutex<HashMap<PathBuf, Vec<Overwritten>>>,
}

/// Bytes a disk writes as a whole.
const SECTOR: usize = 512;

impl Faults for PageCache {
    fn before_write(&self, path: &Path, offset: u64, data: &[u8]) -> io::Result<usize> {
        let mut old = vec![0; data.len()];
        File::open(path)?.read_exact_at(&mut old, offset)?;
        self.unsynced.lock().unwrap().entry(path.to_path_buf()).or_default().push((offset, old));
        Ok(data.len())
    }

    fn before_sync(&self, path: &Path) -> io::Result<()> {
        // Writes that come while the disk works may or may not be in; here they are not lost, as the next crash decides.
        self.unsynced.lock().unwrap().remove(path);
        Ok(())
    }
}

impl PageCache {
    /// The machine dies: of each unsynced write every sector is kept or lost on its own.
    pub fn crash(&self, random: &mut fastrand::Rng) {
        let keep = [0.0, 0.5, 0.9, 1.0][random.usize(..4)];
        for (path, writes) in self.unsynced.lock().unwrap().drain() {
            let Ok(file) = File::options().write(true).open(&path) else { continue };
            for (offset, old) in writes.into_iter().rev() {
                let mut at = 0;
                while at < old.len() {
                    let len = (SECTOR - (offset as usize + at) % SECTOR).min(old.len() - at);
                    if random.f64() >= keep {
                        file.write_all_at(&old[at..at + len], offset + at as u64).unwrap();
                    }
                    at += len;
                }
            }
        }
    }
}
