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
    pub(crate) fn set_appended(&self, to: u64) -> Result<(), String> {
        let written = self.written();
        if to < written {
            return Err(format!("appended was to go to {to} while written is {written}"));
        }
        self.appended.store(to, Ordering::Release);
        Ok(())
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
    if holds { Ok(()) } else { Err(format!("{name} was to go from {from} to {to} while {limit_name} is {limit}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mark_overtakes_the_one_before_it_or_goes_back() {
        let at = Positions::at(100);
        assert!(at.advance_written(101).unwrap_err().contains("appended is 100"));
        at.set_appended(200).unwrap();
        assert!(at.advance_flushed(150).is_err() && at.advance_confirmed(150, false).is_err());
        at.advance_written(150).unwrap();
        assert!(at.set_appended(149).is_err());
        assert!(at.advance_confirmed(150, true).is_err(), "under SYNC_FLUSH nothing is shown before its flush");
        at.advance_confirmed(150, false).unwrap();
        at.advance_flushed(150).unwrap();
        for back in [at.advance_written(149), at.advance_flushed(149), at.advance_confirmed(149, false)] {
            assert!(back.is_err());
        }
        assert_eq!((at.confirmed(), at.flushed(), at.written(), at.appended()), (150, 150, 150, 200));
    }
}
