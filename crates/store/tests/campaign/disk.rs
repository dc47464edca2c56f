//! A disk that keeps no promise it did not make: what was not synced may be gone, kept or torn when the machine dies, and so
//! may names that were made or removed in a folder that was not synced. It also refuses what it is told to refuse.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use parking_lot::Mutex;
use store::Faults;

/// Bytes a disk writes as a whole, when it does.
const SECTOR: usize = 512;

/// Folders (`None`) and files by path.
type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// What the disk does to calls while the machine lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    None,
    /// Now and then there is no space, often only for the second half of a write.
    Full,
    /// One write fails for good.
    BadWrite,
    /// One sync fails.
    BadSync,
    /// Files cannot be made now and then.
    NoFiles,
}

pub(crate) struct Disk {
    root: PathBuf,
    state: Mutex<State>,
}

struct State {
    random: Rng,
    trouble: Trouble,
    had_trouble: bool,
    /// Calls until the machine dies in one of them.
    calls_left: u64,
    /// What was there when it died.
    died: Option<Tree>,
    /// Content by file as of its last sync.
    synced: BTreeMap<PathBuf, Vec<u8>>,
    /// Names that are on the disk.
    names: BTreeSet<PathBuf>,
    /// Files whose name was removed and taken by another one, in a folder that was not synced since.
    ghosts: HashMap<PathBuf, Vec<u8>>,
    /// Files that were replaced as a whole, in a folder that was not synced since: what they held before, if they were there.
    replaced: HashMap<PathBuf, Option<Vec<u8>>>,
    /// Writes since the last sync, in order.
    writes: HashMap<PathBuf, Vec<(u64, Vec<u8>)>>,
    /// Syncs under way: the content when they began, and how many writes it has.
    syncing: HashMap<PathBuf, (Vec<u8>, usize)>,
}

impl Disk {
    /// Everything that is under `root` now is on the disk. The machine dies in the call after `calls` ones.
    pub(crate) fn new(root: &Path, calls: u64, seed: u64) -> Self {
        let found = tree(root);
        let names = found.keys().cloned().collect();
        let synced = found.into_iter().filter_map(|(path, content)| Some((path, content?))).collect();
        let state = State {
            random: Rng::with_seed(seed),
            trouble: Trouble::None,
            had_trouble: false,
            calls_left: calls,
            died: None,
            synced,
            names,
            ghosts: HashMap::new(),
            replaced: HashMap::new(),
            writes: HashMap::new(),
            syncing: HashMap::new(),
        };
        Disk { root: root.to_path_buf(), state: Mutex::new(state) }
    }

    pub(crate) fn set_trouble(&self, trouble: Trouble) {
        let mut state = self.state.lock();
        state.trouble = trouble;
        state.had_trouble |= trouble != Trouble::None;
    }

    /// Calls may have been refused in this life.
    pub(crate) fn has_trouble(&self) -> bool {
        self.state.lock().had_trouble
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state.lock().died.is_some()
    }

    /// The process is gone, the machine is not: the files are as they were in the moment of death.
    pub(crate) fn kill(&self) {
        if let Some(tree) = self.state.lock().died.take() {
            restore(&self.root, &tree);
        }
    }

    /// The machine is gone.
    pub(crate) fn crash(&self) {
        let mut state = self.state.lock();
        let now = state.died.take().unwrap_or_else(|| tree(&self.root));
        let left = state.survivors(&now);
        restore(&self.root, &left);
    }
}

impl State {
    /// Counts a call; an error when the machine is dead.
    fn call(&mut self, root: &Path) -> io::Result<()> {
        if self.died.is_none() && self.calls_left == 0 {
            self.died = Some(tree(root));
        }
        self.calls_left = self.calls_left.saturating_sub(1);
        if self.died.is_some() { Err(io::Error::other("the machine is dead")) } else { Ok(()) }
    }

    fn refuses(&mut self, trouble: Trouble, one_of: u8) -> bool {
        self.trouble == trouble && self.random.u8(..one_of) == 0
    }

    /// What a crash leaves of `now`.
    fn survivors(&mut self, now: &Tree) -> Tree {
        let kept = [0.0, 0.3, 0.7, 1.0][self.random.usize(..4)];
        let mut left = Tree::new();
        let has_parent = |left: &Tree, path: &Path| path.parent().is_some_and(|p| left.get(p) == Some(&None));
        for (path, content) in now {
            let first = left.is_empty();
            if !first && !has_parent(&left, path) {
                continue;
            }
            let named = self.names.contains(path) || self.random.f64() < kept;
            match (named, content) {
                (true, None) => _ = left.insert(path.clone(), None),
                (true, Some(content)) => {
                    if let Some(before) = self.replaced.get(path).filter(|_| self.random.f64() >= kept) {
                        left.extend(before.clone().map(|before| (path.clone(), Some(before))));
                        continue;
                    }
                    let content = self.mix(path, content, kept);
                    left.insert(path.clone(), Some(content));
                }
                (false, _) => {
                    if let Some(ghost) = self.ghosts.get(path).filter(|_| self.random.bool()) {
                        left.insert(path.clone(), Some(ghost.clone()));
                    }
                }
            }
        }
        // Removals that did not reach the disk.
        for path in &self.names {
            if !now.contains_key(path) && has_parent(&left, path) && self.random.f64() >= kept {
                // A file that was never synced is empty; their names are longer than those of folders of numbers.
                let is_file =
                    path.file_name().is_some_and(|name| name.len() > 16 && name.as_encoded_bytes()[0].is_ascii_digit());
                let content = self.synced.get(path).cloned().or(is_file.then(Vec::new));
                left.insert(path.clone(), content);
            }
        }
        left
    }

    /// The content of a file after the crash.
    fn mix(&mut self, path: &Path, now: &[u8], kept: f64) -> Vec<u8> {
        let old = self.synced.get(path);
        let writes = self.writes.get(path).map_or(&[][..], Vec::as_slice);
        if old.is_some_and(|old| old == now) {
            return now.to_vec();
        }
        let mut content = old.cloned().unwrap_or_default();
        if content.len() != now.len() {
            if self.random.f64() >= kept {
                return content;
            }
            content.resize(now.len(), 0);
        }
        if self.random.bool() {
            for (old, new) in content.chunks_mut(SECTOR).zip(now.chunks(SECTOR)) {
                if self.random.f64() < kept {
                    old.copy_from_slice(new);
                }
            }
            return content;
        }
        if self.random.f64() < kept {
            // What was changed without a write call: cleared ends, mapped pages.
            let mut other = now.to_vec();
            for (at, data) in writes {
                let range = *at as usize..*at as usize + data.len();
                other[range.clone()].copy_from_slice(&content[range]);
            }
            content = other;
        }
        for (at, data) in writes {
            let whole = data.len();
            let len = if self.random.f64() < kept { whole } else { self.random.usize(..=whole) };
            content[*at as usize..*at as usize + len].copy_from_slice(&data[..len]);
        }
        content
    }
}

impl Faults for Disk {
    fn before_write(&self, path: &Path, offset: u64, data: &[u8]) -> io::Result<usize> {
        let mut state = self.state.lock();
        state.call(&self.root)?;
        let mut len = data.len();
        if state.refuses(Trouble::Full, 10) {
            if len < 2 || state.random.bool() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            len = state.random.usize(1..len);
        }
        if state.refuses(Trouble::BadWrite, 20) {
            state.trouble = Trouble::None;
            return Err(io::Error::other("a bad sector"));
        }
        tracing::debug!(path = %path.display(), offset, len, "write");
        state.writes.entry(path.to_path_buf()).or_default().push((offset, data[..len].to_vec()));
        Ok(len)
    }

    fn before_sync(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.call(&self.root)?;
        if state.refuses(Trouble::BadSync, 4) {
            state.trouble = Trouble::None;
            return Err(io::Error::other("a failed sync"));
        }
        tracing::debug!(path = %path.display(), "sync");
        if path.is_file() {
            let writes = state.writes.get(path).map_or(0, Vec::len);
            state.syncing.insert(path.to_path_buf(), (fs::read(path)?, writes));
        }
        Ok(())
    }

    fn after_sync(&self, path: &Path) {
        let mut state = self.state.lock();
        if state.died.is_some() {
            return;
        }
        if let Some((content, writes)) = state.syncing.remove(path) {
            state.synced.insert(path.to_path_buf(), content);
            state.writes.entry(path.to_path_buf()).or_default().drain(..writes);
        } else if let Ok(entries) = fs::read_dir(path) {
            // Folders in it may be new ones of the same name, so what the old ones held is gone as well.
            state.names.retain(|name| !name.starts_with(path) || name.exists());
            state.ghosts.retain(|name, _| !name.starts_with(path));
            state.replaced.retain(|name, _| !name.starts_with(path));
            state.names.extend(entries.flatten().map(|entry| entry.path()));
        }
    }

    fn before_create(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.call(&self.root)?;
        if state.refuses(Trouble::NoFiles, 2) || state.refuses(Trouble::Full, 10) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if !path.exists() {
            let old = state.synced.remove(path);
            if state.names.remove(path) {
                state.ghosts.insert(path.to_path_buf(), old.unwrap_or_default());
            }
            state.writes.remove(path);
        }
        Ok(())
    }

    fn before_change(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.call(&self.root)?;
        let new = path.with_extension("tmp");
        if new.exists() {
            let before = if state.names.contains(path) { state.synced.get(path).cloned() } else { None };
            // Of several in a row the first one is what the disk has.
            state.replaced.entry(path.to_path_buf()).or_insert(before);
            let content = state.synced.remove(&new).unwrap_or_default();
            state.synced.insert(path.to_path_buf(), content);
            state.names.insert(path.to_path_buf());
            state.names.remove(&new);
        }
        Ok(())
    }
}

fn tree(root: &Path) -> Tree {
    let mut found = Tree::from([(root.to_path_buf(), None)]);
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        // A folder or file may be removed by the store meanwhile.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path.clone());
                found.insert(path, None);
            } else if let Ok(content) = fs::read(&path) {
                found.insert(path, Some(content));
            }
        }
    }
    found
}

/// Makes the folder what the tree says. Zeros stay holes, as in files that were never written there.
fn restore(root: &Path, tree: &Tree) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.expect("removed");
    }
    for (path, content) in tree {
        let Some(content) = content else {
            fs::create_dir_all(path).expect("a folder");
            continue;
        };
        let file = fs::File::create(path).expect("a file");
        file.set_len(content.len() as u64).expect("its size");
        for (page, at) in content.chunks(4096).zip((0..).step_by(4096)) {
            if page.iter().any(|byte| *byte != 0) {
                file.write_all_at(page, at).expect("its content");
            }
        }
    }
}
