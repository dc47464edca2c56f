//! Stopping: a token that everything may wait for, the signals that trip it, and the ordered, bounded way down.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Trips once, is seen by all clones.
#[derive(Debug, Clone)]
pub struct Stop {
    reason: watch::Sender<Option<String>>,
}

impl Default for Stop {
    fn default() -> Self {
        Stop::new()
    }
}

impl Stop {
    /// A token that nothing trips yet.
    pub fn new() -> Stop {
        Stop { reason: watch::Sender::new(None) }
    }

    /// Trips the token. Only the first reason is kept.
    pub fn request(&self, reason: impl Into<String>) {
        self.reason.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                *current = Some(reason.into());
            }
            first
        });
    }

    pub fn is_requested(&self) -> bool {
        self.reason.borrow().is_some()
    }

    /// Waits until the token is tripped; returns the reason.
    pub async fn requested(&self) -> String {
        let mut receiver = self.reason.subscribe();
        let reason = match receiver.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone(),
            // the sender lives in self
            Err(_) => None,
        };
        reason.unwrap_or_default()
    }

    /// Trips on SIGTERM or SIGINT; a second signal ends the process at once with 128 + its number.
    ///
    /// Call within a runtime. From then on these signals no longer kill the process by themselves.
    pub fn listen_to_signals(&self) -> io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let stop = self.clone();
        tokio::spawn(async move {
            loop {
                let (name, number) = tokio::select! {
                    _ = terminate.recv() => ("SIGTERM", 15),
                    _ = interrupt.recv() => ("SIGINT", 2),
                };
                if stop.is_requested() {
                    tracing::warn!("{name} during the stop: ending at once");
                    std::process::exit(128 + number);
                }
                stop.request(name);
            }
        });
        Ok(())
    }
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The steps of a stop in their order, each with its own limit, so that a step that hangs cannot keep the later ones
/// from flushing and persisting.
#[derive(Default)]
pub struct OrderedStop {
    steps: Vec<(&'static str, Duration, Work)>,
}

impl OrderedStop {
    pub fn new() -> OrderedStop {
        OrderedStop::default()
    }

    /// Adds a step. Work that blocks belongs into `spawn_blocking`, or its limit has no effect.
    #[must_use]
    pub fn step(
        mut self,
        name: &'static str,
        limit: Duration,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        self.steps.push((name, limit, Box::pin(work)));
        self
    }

    /// Runs the steps; returns the names of those that were given up.
    pub async fn run(self) -> Vec<&'static str> {
        let mut given_up = Vec::new();
        for (name, limit, work) in self.steps {
            let begin = Instant::now();
            match tokio::time::timeout(limit, work).await {
                Ok(()) => tracing::info!("stop: {name} done in {} ms", begin.elapsed().as_millis()),
                Err(_) => {
                    tracing::error!("stop: {name} given up after {} s", limit.as_secs_f32());
                    given_up.push(name);
                }
            }
        }
        given_up
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test]
    async fn all_clones_see_the_first_reason() {
        let stop = Stop::new();
        let waiting = tokio::spawn({
            let stop = stop.clone();
            async move { stop.requested().await }
        });
        assert!(!stop.is_requested());
        stop.request("first");
        stop.clone().request("second");
        assert_eq!(waiting.await.unwrap(), "first");
        assert_eq!(stop.requested().await, "first");
        assert!(stop.is_requested());
    }

    #[tokio::test]
    async fn a_signal_trips_the_token() {
        let stop = Stop::new();
        stop.listen_to_signals().unwrap();
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM).unwrap();
        let reason = tokio::time::timeout(Duration::from_secs(10), stop.requested()).await;
        assert_eq!(reason.as_deref(), Ok("SIGTERM"));
    }

    #[tokio::test]
    async fn a_hanging_step_does_not_keep_the_next_from_running() {
        let order = Arc::new(Mutex::new(Vec::new()));
        let note = |name: &'static str| {
            let order = order.clone();
            async move { order.lock().unwrap().push(name) }
        };
        let given_up = OrderedStop::new()
            .step("leave", Duration::from_secs(10), note("leave"))
            .step("drain", Duration::from_millis(20), std::future::pending())
            .step("flush", Duration::from_secs(10), note("flush"))
            .run()
            .await;
        assert_eq!(given_up, ["drain"]);
        assert_eq!(*order.lock().unwrap(), ["leave", "flush"]);
    }
}
