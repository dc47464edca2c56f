//! What a check found.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What helps against a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// The next start of the broker puts it right.
    NextStart,
    /// `store rebuild` puts it right.
    Rebuild,
    /// The broker does not start until somebody acts.
    ByHand,
    /// Nothing here: messages or settings are gone.
    Lost,
}

impl Remedy {
    /// As it is shown.
    pub fn words(self) -> &'static str {
        match self {
            Remedy::NextStart => "repaired at the next start",
            Remedy::Rebuild => "repaired by `store rebuild`",
            Remedy::ByHand => "stops the broker from starting",
            Remedy::Lost => "data is lost",
        }
    }
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What kind of fault; faults of one kind are counted together.
    pub kind: &'static str,
    pub remedy: Remedy,
    pub path: PathBuf,
    /// Byte in that file.
    pub position: u64,
    /// Commit log offset or queue offset, where the fault has one.
    pub offset: Option<u64>,
    pub what: String,
}

impl Finding {
    pub(super) fn new(kind: &'static str, remedy: Remedy, path: &Path, what: impl Into<String>) -> Self {
        Finding { kind, remedy, path: path.to_path_buf(), position: 0, offset: None, what: what.into() }
    }

    pub(super) fn at(mut self, position: u64) -> Self {
        self.position = position;
        self
    }

    pub(super) fn offset(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }
}

/// What was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub commit_log_files: u64,
    pub records: u64,
    /// Begin of the commit log.
    pub log_start: u64,
    /// End of the last good record.
    pub log_end: u64,
    pub queues: u64,
    pub units: u64,
    /// Messages in compacted logs.
    pub compacted: u64,
    pub index_files: u64,
    pub index_entries: u64,
    pub config_files: u64,
}

/// Everything a check found: the first fault of each kind, and how many there were.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    kinds: BTreeMap<(&'static str, Remedy), (Finding, u64)>,
    pub totals: Totals,
}

impl Findings {
    pub(super) fn add(&mut self, finding: Finding) {
        self.kinds.entry((finding.kind, finding.remedy)).or_insert_with(|| (finding, 0)).1 += 1;
    }

    /// The first fault of each kind with the number of that kind.
    pub fn first_of_each_kind(&self) -> impl Iterator<Item = (&Finding, u64)> {
        self.kinds.values().map(|(finding, count)| (finding, *count))
    }

    pub fn is_clean(&self) -> bool {
        self.kinds.is_empty()
    }

    /// How many faults have this remedy.
    pub fn count(&self, remedy: Remedy) -> u64 {
        self.kinds.iter().filter(|((_, r), _)| *r == remedy).map(|(_, (_, count))| count).sum()
    }
}
