//! Log lines to standard error, or to a file that is rotated by size.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::keys::ServiceConfig;

/// Starts logging for the process; `program` names the file. A second call changes nothing, so that several servers can
/// live in one process.
pub fn start(program: &str, config: &ServiceConfig) -> io::Result<()> {
    let level = crate::home::env("ROCKETMQ_LOG").unwrap_or_else(|| config.log_level.clone());
    let filter = EnvFilter::try_new(&level)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, format!("log level {level}: {error}")))?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter);
    // an error means that logging was started before
    let _ = match &config.log_folder {
        Some(folder) => {
            let path = Path::new(folder).join(format!("{program}.log"));
            let file = RotatedFile::open(path, config.log_file_size, config.log_file_count)?;
            tracing::subscriber::set_global_default(lines.with_ansi(false).with_writer(file).finish())
        }
        None => {
            let colours = io::stderr().is_terminal();
            tracing::subscriber::set_global_default(lines.with_ansi(colours).with_writer(io::stderr).finish())
        }
    };
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!("panic: {panic}");
        before(panic);
    }));
    Ok(())
}

/// A log file that is renamed to `<name>.1` when it is full, `.1` to `.2`, and so on.
#[derive(Debug, Clone)]
struct RotatedFile {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    path: PathBuf,
    file: File,
    written: u64,
    max_size: u64,
    kept: u32,
}

impl RotatedFile {
    fn open(path: PathBuf, max_size: u64, kept: u32) -> io::Result<RotatedFile> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = append_to(&path)?;
        let written = file.metadata()?.len();
        Ok(RotatedFile { state: Arc::new(Mutex::new(State { path, file, written, max_size, kept })) })
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

impl State {
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.written > 0 && self.written + line.len() as u64 > self.max_size {
            // a log that cannot be rotated goes on in the same file
            let _ = self.rotate();
            self.written = 0;
        }
        self.file.write_all(line)?;
        self.written += line.len() as u64;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let numbered = |number: u32| PathBuf::from(format!("{}.{number}", self.path.display()));
        for number in (1..self.kept).rev() {
            let _ = fs::rename(numbered(number), numbered(number + 1));
        }
        match self.kept {
            0 => fs::remove_file(&self.path)?,
            _ => fs::rename(&self.path, numbered(1))?,
        }
        self.file = append_to(&self.path)?;
        Ok(())
    }
}

/// One line on its way; tracing writes each line with one call.
struct Line(Arc<Mutex<State>>);

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().write(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for RotatedFile {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line(self.state.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_files_are_rotated_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/x.log");
        let file = RotatedFile::open(path.clone(), 10, 2).unwrap();
        for line in ["one one\n", "two two\n", "three three three\n", "four\n", "five\n"] {
            file.make_writer().write_all(line.as_bytes()).unwrap();
        }
        let read = |suffix: &str| fs::read_to_string(format!("{}{suffix}", path.display())).ok();
        assert_eq!(read("").as_deref(), Some("four\nfive\n"));
        assert_eq!(read(".1").as_deref(), Some("three three three\n"));
        assert_eq!(read(".2").as_deref(), Some("two two\n"));
        assert_eq!(read(".3"), None);
        // a restart appends
        let file = RotatedFile::open(path.clone(), 100, 2).unwrap();
        file.make_writer().write_all(b"six\n").unwrap();
        assert_eq!(read("").as_deref(), Some("four\nfive\nsix\n"));
    }

    #[test]
    fn a_bad_level_is_an_error() {
        let config = ServiceConfig { log_level: "loud=what=x".into(), ..Default::default() };
        if crate::home::env("ROCKETMQ_LOG").is_none() {
            assert!(start("x", &config).unwrap_err().to_string().contains("loud=what=x"));
        }
    }
}
