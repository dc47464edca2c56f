//! What becomes of the store's word that a message has become readable: waiting pulls and delay levels wake.

use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use store::{Arrival, ArrivalListener};
use tokio::runtime::Handle;

use crate::broker::Broker;
use crate::delay_delivery::DelayDelivery;
use crate::long_poll::LongPolls;
use crate::names::SCHEDULE_TOPIC;
use crate::pull::{self, ParkedPull};

/// Hears the store. Made before it, and told of the broker after.
pub struct Arrivals {
    long_polls: Arc<LongPolls<ParkedPull>>,
    delay: Arc<DelayDelivery>,
    /// Pulls woken by the group that is being announced.
    woken: Mutex<Vec<ParkedPull>>,
    broker: OnceLock<Weak<Broker>>,
    runtime: Handle,
}

impl Arrivals {
    pub fn new(long_polls: Arc<LongPolls<ParkedPull>>, delay: Arc<DelayDelivery>, runtime: Handle) -> Arc<Self> {
        Arc::new(Self { long_polls, delay, woken: Mutex::new(Vec::new()), broker: OnceLock::new(), runtime })
    }

    /// Names the broker whose pulls wait here. Before that nothing waits.
    pub fn attach(&self, broker: &Arc<Broker>) {
        let _ = self.broker.set(Arc::downgrade(broker));
    }

    /// The listener to open the store with.
    pub fn listener(self: &Arc<Self>) -> Box<dyn ArrivalListener> {
        Box::new(Listener(self.clone()))
    }
}

struct Listener(Arc<Arrivals>);

impl ArrivalListener for Listener {
    fn arrived(&self, arrival: &Arrival<'_>) {
        let arrivals = &self.0;
        if arrival.topic == SCHEDULE_TOPIC {
            arrivals.delay.arrived(arrival.queue, arrival.store_timestamp);
        }
        arrivals.long_polls.arrived(
            arrival.topic,
            arrival.queue,
            arrival.next_offset,
            |parked| parked.wants(arrival.tags_code),
            |parked| arrivals.woken.lock().push(parked),
        );
    }

    /// The pulls run on the runtime: whoever announces holds up the writers of the whole store.
    fn group_done(&self) {
        let woken = std::mem::take(&mut *self.0.woken.lock());
        if woken.is_empty() {
            return;
        }
        if let Some(broker) = self.0.broker.get().and_then(Weak::upgrade) {
            self.0.runtime.spawn(async move {
                for parked in woken {
                    pull::resume(&broker, parked);
                }
            });
        }
    }
}
