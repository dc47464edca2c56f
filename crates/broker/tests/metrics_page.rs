//! The metrics page. Names and labels are those that a Java 5.4.0 broker's Prometheus page shows.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed step fails its test

mod common;

use common::{Send, folder, start};
use service::metrics::Registry;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_has_javas_names() {
    let folder = folder();
    let broker = start(folder.path(), |_| {}).await;
    for _ in 0..3 {
        assert_eq!(broker.send(&Send::new("T1", b"hello")).await.code, 0);
    }
    broker.running.broker().offsets.commit("G1", "T1", 0, 1, 0);
    let registry = Registry::new();
    let shown = broker.running.broker().clone();
    registry.collect(move |page| broker::metrics_page::collect(&shown, page));
    let page = registry.render();
    let value = |row: &str| -> f64 {
        let line = page.lines().find(|line| line.starts_with(row));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("no {row} in\n{page}"))
    };
    let name = broker.running.broker().name();
    let node = format!("cluster=\"DefaultCluster\",node_type=\"broker\",node_id=\"{name}\"");
    let disk = format!("{{{node},storage_type=\"local\",storage_medium=\"disk\"");
    assert_eq!(value(&format!("rocketmq_messages_in_total{{{node}}}")), 3.0);
    assert_eq!(value(&format!("rocketmq_broker_permission{{{node}}}")), 6.0);
    assert_eq!(value(&format!("rocketmq_storage_dispatch_behind_bytes{disk}}}")), 0.0);
    assert!(value(&format!("rocketmq_storage_flush_behind_bytes{disk}}}")) >= 0.0);
    assert!(value(&format!("rocketmq_storage_size_bytes{disk}}}")) > 1e6);
    let age = value(&format!("rocketmq_storage_message_reserve_time_milliseconds{disk}}}"));
    assert!((0.0..60_000.0).contains(&age), "{age}");
    assert_eq!(value(&format!("rocketmq_storage_put_latency_milliseconds_count{disk}}}")), 3.0);
    assert_eq!(value(&format!("rocketmq_storage_put_latency_milliseconds_bucket{disk},le=\"+Inf\"}}")), 3.0);
    assert_eq!(value(&format!("rocketmq_processor_watermark{{{node},processor=\"query_message\"}}")), 0.0);
    let lag = format!(
        "rocketmq_consumer_lag_messages{{{node},consumer_group=\"G1\",topic=\"T1\",is_retry=\"false\",is_system=\"false\"}}"
    );
    assert_eq!(value(&lag), 2.0);
    for (row, next) in page.lines().zip(page.lines().skip(1)) {
        assert!(!(row.starts_with("# TYPE") && next.starts_with('#')), "a head without rows: {row}");
    }
}
