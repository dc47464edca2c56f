//! What the tests of whole servers share: starting the real binaries, waiting for them, killing them.

pub mod java_namesrv;
pub mod process;
pub mod requests;
pub mod wire;

use std::time::{Duration, Instant};

/// Waits until `condition` holds, and fails with `what` when it does not within `limit`.
///
/// # Panics
/// When the limit has passed: this is for tests.
#[allow(clippy::panic)]
pub fn wait_until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition() {
        if Instant::now() > deadline {
            panic!("not within {limit:?}: {what}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
