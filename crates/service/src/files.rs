//! Small files that are rewritten as a whole: JSON tables, `brokerIdentity`, the `-c` file.
//!
//! Java moves the current file to `.bak` and then writes the new one, so a crash can leave only the `.bak`. Here the new
//! content is complete under its name, or the old one still is; the `.bak` holds the content before.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::clock::now_ms;

/// Replaces the content of `path` so that a crash at any moment leaves the old or the new content, never a part.
///
/// Creates the folders above. The content before is kept in `<path>.bak`. On return the new content is on the disk.
/// Blocks for some milliseconds.
pub fn persist(path: &Path, content: &[u8]) -> io::Result<()> {
    persist_in_steps(path, content, &mut |_| Ok(()))
}

/// One at a time in the process: two writers of one path would share the temporary file.
static PERSISTING: Mutex<()> = Mutex::new(());

/// `before` is called with the name of each step; tests let it fail to see what a crash there leaves behind.
fn persist_in_steps(path: &Path, content: &[u8], before: &mut dyn FnMut(&str) -> io::Result<()>) -> io::Result<()> {
    let _guard = PERSISTING.lock();
    // a symbolic link (a mounted configuration) keeps pointing to the file
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder)?;
    let (temporary, backup) = (beside(path, ".tmp"), beside(path, ".bak"));

    before("create")?;
    let mut file = File::create(&temporary)?;
    let current = fs::metadata(path).ok();
    if let Some(current) = &current {
        file.set_permissions(current.permissions())?;
    }
    before("write")?;
    file.write_all(content)?;
    before("sync")?;
    file.sync_all()?;
    drop(file);

    // an empty file holds nothing worth pushing a good .bak out
    if current.is_some() && !is_blank(path)? {
        keep_backup(path, &backup, before)?;
    }
    before("rename")?;
    fs::rename(&temporary, path)?;
    before("sync folder")?;
    File::open(folder)?.sync_all()
}

fn is_blank(path: &Path) -> io::Result<bool> {
    Ok(fs::read(path)?.trim_ascii().is_empty())
}

fn keep_backup(path: &Path, backup: &Path, before: &mut dyn FnMut(&str) -> io::Result<()>) -> io::Result<()> {
    let link = beside(backup, ".tmp");
    before("link")?;
    remove_if_there(&link)?;
    if fs::hard_link(path, &link).is_err() {
        // a file system without hard links
        fs::copy(path, &link)?;
        File::open(&link)?.sync_all()?;
    }
    before("rename backup")?;
    fs::rename(&link, backup)?;
    // renaming one of two links of a file onto the other leaves both
    remove_if_there(&link)
}

/// Why [`load`] found no usable content although there was some.
#[derive(Debug, thiserror::Error)]
pub enum LoadError<E: std::fmt::Display> {
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    /// Neither the file nor its `.bak` could be decoded. Both are still there.
    #[error("{} cannot be decoded: {error}; repair or remove it to start", path.display())]
    Decode { path: PathBuf, error: E },
}

/// Reads a file written by [`persist`] or by Java, by Java's rules: if it is missing, empty or cannot be decoded, its
/// `.bak` counts; if that is missing or empty too there is no content (`None`); if it cannot be decoded that is an error.
///
/// A file that cannot be decoded is moved aside, never deleted.
pub fn load<T, E: std::fmt::Display>(
    path: &Path,
    decode: impl Fn(&[u8]) -> Result<T, E>,
) -> Result<Option<T>, LoadError<E>> {
    let backup = beside(path, ".bak");
    let broken = match read(path)? {
        None => None,
        Some(content) => match decode(&content) {
            Ok(value) => return Ok(Some(value)),
            Err(error) => Some(error),
        },
    };
    let from_backup = match read(&backup)? {
        None => None,
        Some(content) => Some(decode(&content).map_err(|error| LoadError::Decode { path: backup.clone(), error })?),
    };
    if let Some(error) = broken {
        let aside = move_aside(path).map_err(|error| LoadError::Read { path: path.to_path_buf(), error })?;
        let instead = if from_backup.is_some() { "its .bak is used" } else { "there is no .bak; starting empty" };
        tracing::error!("{} cannot be decoded ({error}); moved to {}; {instead}", path.display(), aside.display());
    } else if from_backup.is_none() && path.exists() {
        tracing::warn!("{} is empty and there is no .bak; starting empty", path.display());
    } else if from_backup.is_some() {
        tracing::warn!("{} is missing or empty; {} is used", path.display(), backup.display());
    }
    Ok(from_backup)
}

/// The content, or nothing if the file is missing or empty.
fn read<E: std::fmt::Display>(path: &Path) -> Result<Option<Vec<u8>>, LoadError<E>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content).filter(|content| !content.trim_ascii().is_empty())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LoadError::Read { path: path.to_path_buf(), error }),
    }
}

fn move_aside(path: &Path) -> io::Result<PathBuf> {
    let mut aside = beside(path, &format!(".broken.{}", now_ms()));
    while aside.exists() {
        aside.as_mut_os_string().push("x");
    }
    fs::rename(path, &aside)?;
    Ok(aside)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(suffix);
    PathBuf::from(name)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: &[u8]) -> Result<String, String> {
        match std::str::from_utf8(content) {
            Ok(text) if !text.starts_with("broken") => Ok(text.to_string()),
            _ => Err("not a text".to_string()),
        }
    }

    fn loaded(path: &Path) -> Option<String> {
        load(path, text).unwrap()
    }

    #[test]
    fn the_content_before_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/topics.json");
        assert_eq!(loaded(&path), None);
        for content in ["one", "two", "three"] {
            persist(&path, content.as_bytes()).unwrap();
            assert_eq!(loaded(&path).as_deref(), Some(content));
        }
        assert_eq!(fs::read_to_string(beside(&path, ".bak")).unwrap(), "two");
        let names = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(names, 2, "no temporary file stays");
    }

    #[test]
    fn a_crash_at_any_step_leaves_the_old_or_the_new_content() {
        for crash_at in 0.. {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("offsets.json");
            persist(&path, b"oldest").unwrap();
            persist(&path, b"old").unwrap();
            let mut step = 0;
            let result = persist_in_steps(&path, b"new", &mut |_| {
                step += 1;
                if step > crash_at { Err(io::Error::other("crash")) } else { Ok(()) }
            });
            let seen = loaded(&path).unwrap();
            let backup = fs::read_to_string(beside(&path, ".bak")).unwrap();
            match seen.as_str() {
                "old" => assert!(["oldest", "old"].contains(&backup.as_str()), "{crash_at}: {backup}"),
                "new" => assert_eq!(backup, "old"),
                other => panic!("{crash_at}: {other}"),
            }
            // whatever is left over does not hinder the next one
            persist(&path, b"newer").unwrap();
            persist(&path, b"newest").unwrap();
            assert_eq!(loaded(&path).as_deref(), Some("newest"));
            assert_eq!(fs::read_to_string(beside(&path, ".bak")).unwrap(), "newer");
            if result.is_ok() {
                assert_eq!(seen, "new");
                assert!(crash_at > 5, "every step was tried");
                return;
            }
        }
    }

    #[test]
    fn javas_crash_leaves_only_the_backup() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("topics.json");
        fs::write(beside(&path, ".bak"), "kept").unwrap();
        assert_eq!(loaded(&path).as_deref(), Some("kept"));
        fs::write(&path, " \n").unwrap();
        assert_eq!(loaded(&path).as_deref(), Some("kept"), "an empty file counts as missing");
        persist(&path, b"new").unwrap();
        assert_eq!(fs::read_to_string(beside(&path, ".bak")).unwrap(), "kept");
    }

    #[test]
    fn broken_files_are_moved_aside_and_never_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("groups.json");
        fs::write(&path, "broken 1").unwrap();
        assert_eq!(loaded(&path), None);
        fs::write(&path, "broken 2").unwrap();
        fs::write(beside(&path, ".bak"), "good").unwrap();
        assert_eq!(loaded(&path).as_deref(), Some("good"));
        fs::write(&path, "broken 3").unwrap();
        fs::write(beside(&path, ".bak"), "broken 4").unwrap();
        let error = load(&path, text).unwrap_err().to_string();
        assert!(error.contains("groups.json.bak") && error.contains("not a text"), "{error}");
        let mut contents: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
            .collect();
        contents.sort();
        // the first good .bak was overwritten by this test itself
        assert_eq!(contents, ["broken 1", "broken 2", "broken 3", "broken 4"]);
    }

    #[test]
    fn links_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.conf"), folder.path().join("link.conf"));
        fs::write(&real, "a=1").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&real, &link).unwrap();
        persist(&link, b"a=2").unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "a=2");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
