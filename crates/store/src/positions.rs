//! How far the commit log has got.

use std::sync::atomic::{AtomicU64, Ordering};

/// The order law: `flushed ≤ written ≤ appended`, and `confirmed ≤ flushed` under SYNC_FLUSH, `confirmed ≤ written` under
/// ASYNC_FLUSH. Readers see what is below `confirmed`.
///
/// Each is a physical offset, exclusive. All but `appended` only grow; `appended` falls back to `written` when a write fails.
#[derive(Default)]
pub(crate) struct Positions {
    appended: AtomicU64,
    written: AtomicU64,
    flushed: AtomicU64,
    confirmed: AtomicU64,
}

impl Positions {
    /// Everything stands at `end`, as after recovery.
    pub(crate) fn at(end: u64) -> Self {
        let end = || AtomicU64::new(end);
        Positions { appended: end(), written: end(), flushed: end(), confirmed: end() }
    }

    pub(crate) fn appended(&self) -> u64 {
        self.appended.load(Ordering::Acquire)
    }

    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    pub(crate) fn flushed(&self) -> u64 {
        self.flushed.load(Ordering::Acquire)
    }

    pub(crate) fn confirmed(&self) -> u64 {
        self.confirmed.load(Ordering::Acquire)
    }

    /// Called under the put lock.
    pub(crate) fn set_appended(&self, to: u64) {
        debug_assert!(to >= self.written(), "appended {to} < written {}", self.written());
        self.appended.store(to, Ordering::Release);
    }

    pub(crate) fn advance_written(&self, to: u64) -> Result<(), String> {
        law("written", self.written(), to, "appended", self.appended())?;
        self.written.store(to, Ordering::Release);
        Ok(())
    }

    pub(crate) fn advance_flushed(&self, to: u64) -> Result<(), String> {
        law("flushed", self.flushed(), to, "written", self.written())?;
        self.flushed.store(to, Ordering::Release);
        Ok(())
    }

    pub(crate) fn advance_confirmed(&self, to: u64, sync: bool) -> Result<(), String> {
        let (name, limit) = if sync { ("flushed", self.flushed()) } else { ("written", self.written()) };
        law("confirmed", self.confirmed(), to, name, limit)?;
        self.confirmed.store(to, Ordering::Release);
        Ok(())
    }
}

/// A broken law is a fault of this program: it is reported and stops the store rather than being carried on with.
fn law(name: &str, from: u64, to: u64, limit_name: &str, limit: u64) -> Result<(), String> {
    let holds = from <= to && to <= limit;
    debug_assert!(holds, "{name} {from} -> {to}, {limit_name} {limit}");
    if holds { Ok(()) } else { Err(format!("{name} was to go from {from} to {to} while {limit_name} is {limit}")) }
}
