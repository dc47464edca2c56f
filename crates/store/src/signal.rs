//! Background threads: waking one, and sharing work among some.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

#[derive(Default)]
pub(crate) struct Signal {
    woken: Mutex<bool>,
    changed: Condvar,
    stopped: OnceLock<Instant>,
}

impl Signal {
    pub(crate) fn wake(&self) {
        let mut woken = self.woken.lock();
        if !std::mem::replace(&mut *woken, true) {
            self.changed.notify_one();
        }
    }

    pub(crate) fn stop(&self) {
        self.stopped.get_or_init(Instant::now);
        self.wake();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopped.get().is_some()
    }

    /// How long ago it was told to stop.
    pub(crate) fn stopping_for(&self) -> Option<Duration> {
        self.stopped.get().map(Instant::elapsed)
    }

    /// Waits until woken, at most `timeout`.
    pub(crate) fn wait(&self, timeout: Duration) {
        let mut woken = self.woken.lock();
        if !*woken {
            self.changed.wait_for(&mut woken, timeout);
        }
        *woken = false;
    }
}

/// Does work on so many threads, of which this one is the first. The system may refuse the others: then fewer do all of it.
pub(crate) fn side_by_side(threads: usize, work: &(dyn Fn() + Sync)) {
    std::thread::scope(|scope| {
        for _ in 1..threads {
            if let Err(error) = std::thread::Builder::new().spawn_scoped(scope, work) {
                tracing::warn!(%error, "no more threads");
                break;
            }
        }
        work();
    });
}
