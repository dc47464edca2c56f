//! When changed TLS files are to be loaded.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use super::TlsFiles;

/// The contents seen in one look; `None` is a file that is not there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FileHashes {
    pub(super) cert: Option<u64>,
    pub(super) key: Option<u64>,
    pub(super) trust: Option<u64>,
}

impl FileHashes {
    pub(super) fn of(files: &TlsFiles) -> Self {
        let hash = |path: Option<&Path>| {
            let content = std::fs::read(path?).ok()?;
            let mut hasher = DefaultHasher::new();
            content.hash(&mut hasher);
            Some(hasher.finish())
        };
        Self { cert: hash(files.cert.as_deref()), key: hash(files.key.as_deref()), trust: hash(files.trust.as_deref()) }
    }
}

/// Decides from one look to the next. Certificate and key belong together, so both must have changed; the trusted
/// certificates stand alone.
#[derive(Debug)]
pub(super) struct Watch {
    seen: FileHashes,
    cert_changed: bool,
    key_changed: bool,
    trust_changed: bool,
}

impl Watch {
    pub(super) fn new(seen: FileHashes) -> Self {
        Self { seen, cert_changed: false, key_changed: false, trust_changed: false }
    }

    /// Whether to try to load after this look. What changed stays changed until [`Watch::reloaded`], so that a load
    /// that came in the middle of a write is made up for by the next change.
    pub(super) fn should_reload(&mut self, now: FileHashes) -> bool {
        let cert = changed(&mut self.seen.cert, now.cert);
        let key = changed(&mut self.seen.key, now.key);
        let trust = changed(&mut self.seen.trust, now.trust);
        self.cert_changed |= cert;
        self.key_changed |= key;
        self.trust_changed |= trust;
        let pair = self.cert_changed && self.key_changed && (cert || key);
        // Trust alone must not pair a new certificate with an old key.
        let alone = self.trust_changed && (trust || cert || key) && self.cert_changed == self.key_changed;
        pair || alone
    }

    pub(super) fn reloaded(&mut self) {
        self.cert_changed = false;
        self.key_changed = false;
        self.trust_changed = false;
    }
}

/// A file that is gone keeps its last content; one that was never there is not watched.
fn changed(seen: &mut Option<u64>, now: Option<u64>) -> bool {
    match (&seen, now) {
        (Some(old), Some(new)) if *old != new => {
            *seen = now;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(cert: u64, key: u64, trust: u64) -> FileHashes {
        let some = |hash| (hash != 0).then_some(hash);
        FileHashes { cert: some(cert), key: some(key), trust: some(trust) }
    }

    #[test]
    fn certificate_and_key_must_both_change() {
        let mut watch = Watch::new(look(1, 1, 1));
        assert!(!watch.should_reload(look(1, 1, 1)));
        assert!(!watch.should_reload(look(2, 1, 1)));
        assert!(!watch.should_reload(look(3, 1, 1)));
        assert!(watch.should_reload(look(3, 2, 1)));
        watch.reloaded();
        assert!(!watch.should_reload(look(3, 3, 1)));
        assert!(watch.should_reload(look(4, 3, 1)));
    }

    #[test]
    fn a_failed_load_is_tried_again_at_the_next_change_of_either() {
        let mut watch = Watch::new(look(1, 1, 0));
        assert!(watch.should_reload(look(2, 2, 0)), "half of the key was there");
        assert!(!watch.should_reload(look(2, 2, 0)), "nothing new to try");
        assert!(watch.should_reload(look(2, 3, 0)), "the rest of the key came");
    }

    #[test]
    fn deleted_and_absent_files_are_let_be() {
        let mut watch = Watch::new(look(1, 1, 0));
        assert!(!watch.should_reload(look(0, 0, 5)));
        assert!(!watch.should_reload(look(1, 1, 6)));
        assert!(watch.should_reload(look(2, 2, 0)));
    }

    #[test]
    fn trusted_certificates_change_alone() {
        let mut watch = Watch::new(look(1, 1, 1));
        assert!(watch.should_reload(look(1, 1, 2)));
        watch.reloaded();
        assert!(!watch.should_reload(look(2, 1, 3)), "the certificate's key is not there yet");
        assert!(watch.should_reload(look(2, 2, 3)));
    }
}
