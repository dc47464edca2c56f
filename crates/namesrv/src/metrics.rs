//! What the server counts, and the page that shows it.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::requests::TABLE;
use crate::route_table::{Outcome, Registered, RouteTable, Unregistered};

/// Upper ends of the latency buckets, in microseconds.
const BUCKETS_US: [u64; 8] = [10, 100, 1_000, 5_000, 20_000, 100_000, 1_000_000, u64::MAX];

#[derive(Debug, Default)]
struct OfCode {
    buckets: [AtomicU64; BUCKETS_US.len()],
    micros: AtomicU64,
    overloaded: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Metrics {
    by_row: Vec<OfCode>,
    unsupported: AtomicU64,
    applied: AtomicU64,
    unchanged: AtomicU64,
    stale: AtomicU64,
    refused: AtomicU64,
    rows_changed: AtomicU64,
    left: AtomicU64,
    notified: AtomicU64,
    not_notified: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Self {
        let zero = AtomicU64::default;
        Self {
            by_row: TABLE.iter().map(|_| OfCode::default()).collect(),
            unsupported: zero(),
            applied: zero(),
            unchanged: zero(),
            stale: zero(),
            refused: zero(),
            rows_changed: zero(),
            left: zero(),
            notified: zero(),
            not_notified: zero(),
        }
    }
}

impl Metrics {
    /// `row`: the request's place in the table of requests.
    pub(crate) fn answered(&self, row: usize, took: Duration) {
        let Some(of_code) = self.by_row.get(row) else {
            return;
        };
        let micros = took.as_micros() as u64;
        of_code.micros.fetch_add(micros, Relaxed);
        if let Some(at) = BUCKETS_US.iter().position(|end| micros <= *end)
            && let Some(bucket) = of_code.buckets.get(at)
        {
            bucket.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn overloaded(&self, row: usize) {
        if let Some(of_code) = self.by_row.get(row) {
            of_code.overloaded.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn unsupported(&self) {
        self.unsupported.fetch_add(1, Relaxed);
    }

    pub(crate) fn registered(&self, registered: &Registered) {
        match registered.outcome {
            Outcome::Accepted { .. } if registered.rows_changed == 0 => &self.unchanged,
            Outcome::Accepted { .. } => &self.applied,
            Outcome::Stale => &self.stale,
            Outcome::TooEarly => &self.refused,
        }
        .fetch_add(1, Relaxed);
        self.rows_changed.fetch_add(registered.rows_changed as u64, Relaxed);
    }

    pub(crate) fn registration_refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    pub(crate) fn unregistered(&self, done: &Unregistered) {
        self.left.fetch_add(done.events.len() as u64, Relaxed);
    }

    pub(crate) fn notified(&self, sent: bool) {
        if sent { &self.notified } else { &self.not_notified }.fetch_add(1, Relaxed);
    }

    /// The page in Prometheus' text form.
    pub(crate) fn page(&self, table: &RouteTable) -> String {
        let mut out = String::new();
        self.write_requests(&mut out);
        let counters = [
            ("namesrv_requests_unsupported_total", "Requests with a code that is not served.", &self.unsupported),
            ("namesrv_registrations_applied_total", "Registrations that changed topic rows.", &self.applied),
            ("namesrv_registrations_unchanged_total", "Registrations that changed no row.", &self.unchanged),
            ("namesrv_registrations_stale_total", "Registrations turned away for their epoch.", &self.stale),
            ("namesrv_registrations_refused_total", "Registrations that could not be read or came too early.", &self.refused),
            ("namesrv_rows_changed_total", "Topic rows written by registrations.", &self.rows_changed),
            ("namesrv_brokers_left_total", "Brokers removed, whatever the reason.", &self.left),
            ("namesrv_notifications_sent_total", "Notices of a smallest broker id.", &self.notified),
            ("namesrv_notifications_failed_total", "Notices that could not be sent.", &self.not_notified),
        ];
        for (name, help, value) in counters {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {}", value.load(Relaxed));
        }
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
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
        }
        let _ = writeln!(
            out,
            "# HELP namesrv_routes_encoded_total Route answers encoded anew.\n# TYPE namesrv_routes_encoded_total counter\n\
             namesrv_routes_encoded_total {}",
            sizes.routes_encoded
        );
        out
    }

    fn write_requests(&self, out: &mut String) {
        let name = "namesrv_request_seconds";
        let _ = writeln!(out, "# HELP {name} Time from taking a request to its answer.\n# TYPE {name} histogram");
        for (row, of_code) in TABLE.iter().zip(&self.by_row) {
            let labels = format!("code=\"{}\",request=\"{}\"", row.code, row.name);
            let mut count = 0;
            for (end, bucket) in BUCKETS_US.iter().zip(&of_code.buckets) {
                count += bucket.load(Relaxed);
                let end = if *end == u64::MAX { "+Inf".to_owned() } else { (*end as f64 / 1e6).to_string() };
                let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{end}\"}} {count}");
            }
            let _ = writeln!(out, "{name}_sum{{{labels}}} {}", of_code.micros.load(Relaxed) as f64 / 1e6);
            let _ = writeln!(out, "{name}_count{{{labels}}} {count}");
        }
        let name = "namesrv_requests_overloaded_total";
        let _ = writeln!(out, "# HELP {name} Requests answered [OVERLOAD].\n# TYPE {name} counter");
        for (row, of_code) in TABLE.iter().zip(&self.by_row) {
            let _ = writeln!(out, "{name}{{code=\"{}\"}} {}", row.code, of_code.overloaded.load(Relaxed));
        }
    }
}
