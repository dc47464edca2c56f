//! What the server counts.

use std::sync::Arc;
use std::time::Duration;

use service::metrics::{Counter, Histogram, Registry};

use crate::requests::TABLE;
use crate::route_table::{Outcome, Registered, RouteTable, Unregistered};

/// Upper ends of the latency buckets, in microseconds.
const BUCKETS_US: [u64; 8] = [10, 50, 200, 1_000, 5_000, 20_000, 100_000, 1_000_000];

struct OfRequest {
    micros: Histogram,
    overloaded: Counter,
}

pub(crate) struct Metrics {
    pub registry: Arc<Registry>,
    /// In the order of the table of requests.
    by_request: Vec<OfRequest>,
    unsupported: Counter,
    applied: Counter,
    unchanged: Counter,
    stale: Counter,
    refused: Counter,
    rows_changed: Counter,
    left: Counter,
    notified: Counter,
    not_notified: Counter,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let registry = Registry::new();
        let of_request = |row: &crate::requests::Row| {
            let code = row.code.to_string();
            let labels = [("code", code.as_str()), ("request", row.name)];
            let help = "Time from taking a request to its answer, in microseconds.";
            OfRequest {
                micros: registry.histogram("namesrv_request_micros", help, &labels, &BUCKETS_US),
                overloaded: registry.counter("namesrv_requests_overloaded_total", "Answered [OVERLOAD].", &labels),
            }
        };
        let by_request = TABLE.iter().map(of_request).collect();
        let counter = |name: &str, help: &str| registry.counter(name, help, &[]);
        let registrations = |result: &str| {
            let help = "Registrations: applied ones wrote rows, unchanged ones none, stale ones came from an older \
                        epoch, refused ones could not be read or came too early.";
            registry.counter("namesrv_registrations_total", help, &[("result", result)])
        };
        let notices = |result: &str| {
            let help = "Notices of a smallest broker id, per recipient.";
            registry.counter("namesrv_notifications_total", help, &[("result", result)])
        };
        Self {
            by_request,
            unsupported: counter("namesrv_requests_unsupported_total", "Requests with a code that is not served."),
            applied: registrations("applied"),
            unchanged: registrations("unchanged"),
            stale: registrations("stale"),
            refused: registrations("refused"),
            rows_changed: counter("namesrv_rows_changed_total", "Topic rows written by registrations."),
            left: counter("namesrv_brokers_left_total", "Brokers removed, whatever the reason."),
            notified: notices("sent"),
            not_notified: notices("failed"),
            registry: Arc::new(registry),
        }
    }

    /// Puts the sizes of the tables on the page.
    pub(crate) fn watch(&self, table: Arc<RouteTable>) {
        self.registry.collect(move |page| {
            let sizes = table.sizes();
            let gauges = [
                ("namesrv_clusters", "Clusters.", sizes.clusters),
                ("namesrv_broker_names", "Broker names.", sizes.broker_names),
                ("namesrv_brokers_alive", "Brokers alive.", sizes.brokers_alive),
                ("namesrv_topics", "Topics.", sizes.topics),
                ("namesrv_topic_rows", "Topic rows: one for each topic on each broker name.", sizes.rows),
                ("namesrv_queues", "Queues that can be read.", sizes.queues),
                ("namesrv_static_topics", "Topics with a static mapping.", sizes.static_topics),
                ("namesrv_table_bytes", "Bytes of topic rows and names.", sizes.table_bytes),
                ("namesrv_encoded_bytes", "Bytes of encoded route answers kept.", sizes.encoded_bytes),
            ];
            for (name, help, value) in gauges {
                page.gauge(name, help, &[], value as f64);
            }
            let help = "Route answers encoded anew.";
            page.counter("namesrv_routes_encoded_total", help, &[], sizes.routes_encoded as f64);
        });
    }

    /// `request`: its place in the table of requests.
    pub(crate) fn answered(&self, request: usize, took: Duration) {
        if let Some(of_request) = self.by_request.get(request) {
            of_request.micros.observe(took.as_micros() as u64);
        }
    }

    pub(crate) fn overloaded(&self, request: usize) {
        if let Some(of_request) = self.by_request.get(request) {
            of_request.overloaded.increment();
        }
    }

    pub(crate) fn unsupported(&self) {
        self.unsupported.increment();
    }

    pub(crate) fn registered(&self, registered: &Registered) {
        match registered.outcome {
            Outcome::Accepted { .. } if registered.rows_changed == 0 => &self.unchanged,
            Outcome::Accepted { .. } => &self.applied,
            Outcome::Stale => &self.stale,
            Outcome::TooEarly => &self.refused,
        }
        .increment();
        self.rows_changed.add(registered.rows_changed as u64);
    }

    pub(crate) fn registration_refused(&self) {
        self.refused.increment();
    }

    pub(crate) fn unregistered(&self, done: &Unregistered) {
        self.left.add(done.events.len() as u64);
    }

    pub(crate) fn notified(&self, sent: bool) {
        if sent { &self.notified } else { &self.not_notified }.increment();
    }
}
