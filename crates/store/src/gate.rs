//! Whether the store takes writes, and if not, why.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::{PutError, WriteError};

const CLOSED: u8 = 1;
/// A write or a sync failed: what is on the disk is not known any more.
const STOPPED: u8 = 2;
/// Retention found the disk above the warning level.
const DISK_FULL: u8 = 4;
/// The kernel refused a write for want of space; tried again after a while.
const NO_SPACE: u8 = 8;
/// The next file could not be made; tried again after a while.
const NO_FILE: u8 = 16;
/// Only the master's stream adds to this store.
const SLAVE: u8 = 32;

/// How long appends are refused before the next one tries the disk again.
const RETRY: Duration = Duration::from_millis(500);

pub(crate) struct Gate {
    bits: AtomicU8,
    why: Mutex<Why>,
}

#[derive(Default)]
struct Why {
    text: String,
    retry_at: Option<Instant>,
}

impl Gate {
    pub(crate) fn new(slave: bool) -> Self {
        Gate { bits: AtomicU8::new(if slave { SLAVE } else { 0 }), why: Mutex::default() }
    }

    /// The reason why an append is refused now.
    pub(crate) fn check(&self) -> Result<(), PutError> {
        match self.bits.load(Ordering::Acquire) {
            0 => Ok(()),
            bits if bits & CLOSED != 0 => Err(PutError::ShuttingDown),
            bits if bits & STOPPED != 0 => Err(PutError::Stopped(self.why.lock().text.clone())),
            bits if bits & SLAVE != 0 => Err(PutError::Slave),
            bits if bits & (DISK_FULL | NO_SPACE) != 0 => Err(PutError::DiskFull),
            _ => Err(PutError::CreateFile(self.why.lock().text.clone())),
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.bits.load(Ordering::Acquire) & STOPPED != 0
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.bits.load(Ordering::Acquire) & CLOSED != 0
    }

    pub(crate) fn is_disk_full(&self) -> bool {
        self.bits.load(Ordering::Acquire) & (DISK_FULL | NO_SPACE) != 0
    }

    /// Closes for good. True for the first caller.
    pub(crate) fn close(&self) -> bool {
        self.bits.fetch_or(CLOSED, Ordering::AcqRel) & CLOSED == 0
    }

    /// Takes no more writes until a restart.
    pub(crate) fn stop(&self, why: String) {
        let mut reason = self.why.lock();
        if self.bits.fetch_or(STOPPED, Ordering::AcqRel) & STOPPED == 0 {
            tracing::error!(why, "the store takes no more writes; restart the broker when the cause is gone");
            reason.text = why;
        }
    }

    /// A broken order law is a fault of this program: the store stops rather than carry on.
    pub(crate) fn lawful(&self, moved: Result<(), String>) {
        if let Err(broken) = moved {
            self.stop(broken);
        }
    }

    pub(crate) fn set_disk_full(&self, full: bool) {
        let before = if full {
            self.bits.fetch_or(DISK_FULL, Ordering::AcqRel)
        } else {
            self.bits.fetch_and(!DISK_FULL, Ordering::AcqRel)
        };
        if full != (before & DISK_FULL != 0) {
            if full {
                tracing::error!("the disk is above its warning level; messages are refused");
            } else {
                tracing::info!("the disk has room again");
            }
        }
    }

    /// Judges a failed write. What has a chance to go away by itself is tried again; all else stops the store.
    pub(crate) fn write_failed(&self, error: &io::Error, creating: bool) -> WriteError {
        let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        if !full && !creating {
            self.stop(format!("writing the commit log failed: {error}"));
            return WriteError::Stopped(error.to_string());
        }
        let mut why = self.why.lock();
        why.retry_at = Some(Instant::now() + RETRY);
        let bit = if full { NO_SPACE } else { NO_FILE };
        if self.bits.fetch_or(bit, Ordering::AcqRel) & bit == 0 {
            tracing::error!(%error, "the commit log cannot be written for now; messages are refused");
            why.text = error.to_string();
        }
        if full { WriteError::DiskFull } else { WriteError::CreateFile(error.to_string()) }
    }

    /// Lets appends try again once the pause is over.
    pub(crate) fn retry(&self, now: Instant) {
        if self.bits.load(Ordering::Acquire) & (NO_SPACE | NO_FILE) == 0 {
            return;
        }
        let mut why = self.why.lock();
        if why.retry_at.is_some_and(|at| at <= now) {
            why.retry_at = None;
            self.bits.fetch_and(!(NO_SPACE | NO_FILE), Ordering::AcqRel);
        }
    }
}
