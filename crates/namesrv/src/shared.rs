//! What all requests of one name server share.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use remoting::{CloseReason, Connection};
use service::config::Live;
use service::keys::{NamesrvConfig, NamesrvSettings};

use crate::broker_log::log_event;
use crate::kv_config::KvConfig;
use crate::metrics::Metrics;
use crate::notify::Notifier;
use crate::removals::Removals;
use crate::route_table::{Outcome, Registration, RouteTable, Rules};

/// The namespace of the KV configuration that says how many queues of a topic are ordered, and where.
pub(crate) const ORDER_TOPIC_CONFIG: &str = "ORDER_TOPIC_CONFIG";

impl From<&NamesrvConfig> for Rules {
    fn from(config: &NamesrvConfig) -> Self {
        Self {
            delete_topics_with_registration: config.delete_topic_with_broker_registration,
            notify_min_broker_id: config.notify_min_broker_id_changed,
        }
    }
}

pub(crate) struct Shared {
    pub settings: Live<NamesrvSettings>,
    pub table: Arc<RouteTable>,
    pub kv: KvConfig,
    pub removals: Removals,
    pub notifier: Notifier,
    pub metrics: Arc<Metrics>,
    started: Instant,
    /// The connections over which brokers have registered, to be closed when a broker expires.
    broker_connections: Mutex<HashMap<u64, Connection>>,
    /// The last list of all topics, for as long as somebody still has to read it.
    all_topics: Mutex<(u64, Weak<TopicListBody>)>,
}

struct TopicListBody(Vec<u8>);

struct SharedBody(Arc<TopicListBody>);

impl AsRef<[u8]> for SharedBody {
    fn as_ref(&self) -> &[u8] {
        &self.0.0
    }
}

impl Shared {
    pub(crate) fn new(
        settings: Live<NamesrvSettings>,
        table: Arc<RouteTable>,
        kv: KvConfig,
        removals: Removals,
        notifier: Notifier,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            settings,
            table,
            kv,
            removals,
            notifier,
            metrics,
            started: Instant::now(),
            broker_connections: Mutex::default(),
            all_topics: Mutex::new((0, Weak::new())),
        }
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Milliseconds since the server started: steps of the wall clock expire nobody.
    pub(crate) fn now_ms(&self) -> i64 {
        self.started.elapsed().as_millis() as i64
    }

    pub(crate) fn register(&self, connection: &Connection, registration: &Registration, rules: &Rules) -> Outcome {
        self.broker_connections.lock().insert(connection.id(), connection.clone());
        let registered = self.table.register(registration, rules, self.now_ms());
        self.metrics.registered(&registered);
        registered.events.iter().for_each(log_event);
        if let Some(notice) = registered.notice {
            self.notifier.send(notice);
        }
        if !connection.is_open() {
            // The connection went while its registration waited for its turn: nobody else will hear of it.
            self.connection_closed(connection);
        }
        registered.outcome
    }

    /// A connection is gone, and the brokers that registered over it last.
    pub(crate) fn connection_closed(&self, connection: &Connection) {
        if self.broker_connections.lock().remove(&connection.id()).is_none() {
            return;
        }
        for removal in self.table.connection_closed(connection.id()) {
            // When the queue is full the scan for silent brokers is left.
            self.removals.offer(removal);
        }
    }

    /// One scan for silent brokers.
    pub(crate) fn expire(&self) {
        for (removal, connection) in self.table.expired(self.now_ms()) {
            let open = self.broker_connections.lock().get(&connection).cloned();
            if let Some(open) = open {
                open.close(CloseReason::Local("its broker sent no sign of life"));
            }
            self.removals.offer(removal);
        }
    }

    /// All topics as a body. Askers of the same state share one copy, so that those who do not read cost nothing.
    pub(crate) fn all_topics(&self) -> Bytes {
        let version = self.table.topics_version();
        if let (known, body) = &*self.all_topics.lock()
            && *known == version
            && let Some(body) = body.upgrade()
        {
            return Bytes::from_owner(SharedBody(body));
        }
        let body = Arc::new(TopicListBody(self.table.all_topics()));
        *self.all_topics.lock() = (version, Arc::downgrade(&body));
        Bytes::from_owner(SharedBody(body))
    }
}
