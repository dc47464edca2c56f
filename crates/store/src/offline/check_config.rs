//! Checking the tables under `config`.

use std::fs;
use std::io;
use std::path::Path;

use super::OfflineStore;
use super::findings::{Finding, Findings, Remedy};
use crate::folders::entries;

impl OfflineStore {
    pub(super) fn check_config(&self, found: &mut Findings) -> io::Result<()> {
        let dir = self.config.root.join("config");
        let mut names = Vec::new();
        for entry in entries(&dir)? {
            let name = entry?.file_name();
            names.extend(
                name.to_str().and_then(|n| Some(n.strip_suffix(".bak").unwrap_or(n).strip_suffix(".json")?.to_owned())),
            );
        }
        names.sort();
        names.dedup();
        for name in names {
            check_table(&dir.join(format!("{name}.json")), &dir.join(format!("{name}.json.bak")), found);
        }
        Ok(())
    }
}

/// A table that cannot be read is taken from its backup.
fn check_table(file: &Path, backup: &Path, found: &mut Findings) {
    found.totals.config_files += 1;
    let (main, kept) = (read(file), read(backup));
    let kind = "table that cannot be read";
    match (&main, &kept) {
        (Table::Broken(what), Table::Broken(_)) => {
            found.add(Finding::new(kind, Remedy::ByHand, file, format!("{what}; nor can its .bak")));
        }
        (Table::Broken(what), Table::Good) => {
            found.add(Finding::new(kind, Remedy::NextStart, file, format!("{what}; its .bak is taken")));
        }
        (Table::Broken(what), Table::Missing) => {
            found.add(Finding::new(kind, Remedy::Lost, file, format!("{what}; there is no .bak")));
        }
        (Table::Missing, Table::Broken(what)) => {
            found.add(Finding::new(kind, Remedy::ByHand, backup, format!("{what}; it is all that is left")));
        }
        (Table::Good, Table::Broken(what)) => {
            found.add(Finding::new("backup that cannot be read", Remedy::NextStart, backup, what.clone()));
        }
        _ => {}
    }
}

enum Table {
    Good,
    /// Or empty, which counts as missing.
    Missing,
    Broken(String),
}

fn read(path: &Path) -> Table {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Table::Missing,
        Err(error) => return Table::Broken(error.to_string()),
    };
    if text.trim_ascii().is_empty() {
        return Table::Missing;
    }
    match protocol::json::parse(&text) {
        Ok(serde_json::Value::Object(_)) => Table::Good,
        Ok(_) => Table::Broken("is no object".into()),
        Err(error) => Table::Broken(error.to_string()),
    }
}
