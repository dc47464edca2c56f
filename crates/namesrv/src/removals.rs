//! The queue of brokers to remove. One thread takes what has gathered and applies it as one batch.

use std::sync::Arc;

use service::config::Live;
use service::keys::NamesrvSettings;
use tokio::sync::mpsc;

use crate::broker_log::log_event;
use crate::metrics::Metrics;
use crate::notify::Notifier;
use crate::route_table::{RouteTable, Rules, Unregistration};

#[derive(Debug, Clone)]
pub(crate) struct Removals {
    queue: mpsc::Sender<Unregistration>,
}

/// What the thread needs. It ends when the last [`Removals`] is gone.
pub(crate) struct Worker {
    pub table: Arc<RouteTable>,
    pub settings: Live<NamesrvSettings>,
    pub notifier: Notifier,
    pub metrics: Arc<Metrics>,
}

impl Removals {
    /// `capacity`: removals that may wait.
    pub(crate) fn start(capacity: usize, worker: Worker) -> std::io::Result<Self> {
        let (queue, waiting) = mpsc::channel(capacity.max(1));
        std::thread::Builder::new().name("unregister".into()).spawn(move || worker.run(waiting))?;
        Ok(Self { queue })
    }

    /// False when the queue is full.
    pub(crate) fn offer(&self, removal: Unregistration) -> bool {
        self.queue.try_send(removal).is_ok()
    }
}

impl Worker {
    fn run(self, mut waiting: mpsc::Receiver<Unregistration>) {
        while let Some(first) = waiting.blocking_recv() {
            let mut batch = vec![first];
            while let Ok(next) = waiting.try_recv() {
                batch.push(next);
            }
            let rules = Rules::from(&self.settings.load().namesrv);
            let done = self.table.unregister(&batch, &rules);
            self.metrics.unregistered(&done);
            done.events.iter().for_each(log_event);
            done.notices.into_iter().for_each(|notice| self.notifier.send(notice));
        }
    }
}
