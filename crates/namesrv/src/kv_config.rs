//! The KV configuration: namespaces of keys and values, kept in one file. The server itself reads one namespace, the
//! order of topics' queues.

use std::collections::BTreeMap;
use std::path::PathBuf;

use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};

type Table = BTreeMap<String, BTreeMap<String, String>>;

#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct File {
    config_table: Table,
}

#[derive(Serialize)]
struct KvTable<'a> {
    table: &'a BTreeMap<String, String>,
}

#[derive(Debug)]
pub(crate) struct KvConfig {
    table: RwLock<Table>,
    path: PathBuf,
    /// Held while the file is written, so that an older table never overwrites a newer one.
    writing: Mutex<()>,
}

impl KvConfig {
    /// Reads the file. One that cannot be read is named in the log, and the table starts empty, as in Java.
    pub(crate) fn load(path: PathBuf) -> Self {
        let table = match std::fs::read(&path) {
            Ok(text) if text.iter().all(u8::is_ascii_whitespace) => Table::new(),
            Ok(text) => match protocol::json::from_slice::<File>(&text) {
                Ok(file) => file.config_table,
                Err(error) => {
                    tracing::error!(path = %path.display(), %error,
                        "the KV configuration cannot be read; starting without. The file is kept as .bak on the next change");
                    Table::new()
                }
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Table::new(),
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "the KV configuration cannot be read; starting without");
                Table::new()
            }
        };
        Self { table: RwLock::new(table), path, writing: Mutex::new(()) }
    }

    pub(crate) fn get(&self, namespace: &str, key: &str) -> Option<String> {
        self.table.read().get(namespace)?.get(key).cloned()
    }

    /// The body that lists one namespace.
    pub(crate) fn list(&self, namespace: &str) -> Option<Vec<u8>> {
        let table = self.table.read().get(namespace)?.clone();
        Some(protocol::json::to_legacy(&KvTable { table: &table }))
    }

    pub(crate) fn put(&self, namespace: String, key: String, value: String) {
        tracing::info!(namespace, key, value, "KV configuration put");
        self.table.write().entry(namespace).or_default().insert(key, value);
        self.persist();
    }

    /// A namespace stays, even empty, as in Java.
    pub(crate) fn delete(&self, namespace: &str, key: &str) {
        tracing::info!(namespace, key, "KV configuration deleted");
        if let Some(known) = self.table.write().get_mut(namespace) {
            known.remove(key);
        }
        self.persist();
    }

    /// A failure is logged and the change stays in memory, as in Java.
    fn persist(&self) {
        let _writing = self.writing.lock();
        let file = File { config_table: self.table.read().clone() };
        if let Err(error) = service::files::persist(&self.path, &protocol::json::to_legacy(&file)) {
            tracing::error!(path = %self.path.display(), %error, "the KV configuration cannot be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_survive_and_javas_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/kvConfig.json");
        let kv = KvConfig::load(path.clone());
        kv.put("ORDER_TOPIC_CONFIG".into(), "T".into(), "a:4;b:4".into());
        kv.put("n".into(), "k".into(), "v".into());
        kv.delete("n", "k");
        assert_eq!(kv.list("n").unwrap(), br#"{"table":{}}"#);
        let text = std::fs::read(&path).unwrap();
        assert_eq!(text, br#"{"configTable":{"ORDER_TOPIC_CONFIG":{"T":"a:4;b:4"},"n":{}}}"#);
        let again = KvConfig::load(path.clone());
        assert_eq!(again.get("ORDER_TOPIC_CONFIG", "T").as_deref(), Some("a:4;b:4"));
        assert_eq!(again.list("ORDER_TOPIC_CONFIG").unwrap(), br#"{"table":{"T":"a:4;b:4"}}"#);
        std::fs::write(&path, b"{broken").unwrap();
        assert!(KvConfig::load(path).get("n", "k").is_none());
    }
}
