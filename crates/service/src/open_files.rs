//! The process' limit of open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files to what the operator allows: each connection takes one, and the usual 1,024 are soon
/// gone. Call after logging was started.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        Ok(()) => tracing::debug!(from = limit.current, to = limit.maximum, "limit of open files raised"),
        Err(error) => tracing::warn!(%error, limit = limit.current, "cannot raise the limit of open files"),
    }
}
