//! What the broker adds to the metrics page, under the names and labels that RocketMQ's own Prometheus page has.

use std::collections::BTreeMap;

use service::metrics::{Labels, Page};
use store::StoreStats;

use crate::Broker;
use crate::clients::ClientChannel;
use crate::names::{RETRY_PREFIX, is_system_group};

/// Upper bounds of [`StoreStats::put_distribution`], milliseconds; the last bucket has none.
const PUT_BOUNDS_MS: [f64; 12] = [1.0, 10.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 3e3, 4e3, 5e3, 1e4];

/// Adds all rows. Called for each rendering; costs a look at every committed offset.
pub fn collect(broker: &Broker, page: &mut Page) {
    let (cluster, name) = (broker.cluster(), broker.name());
    let node = [("cluster", cluster.as_str()), ("node_type", "broker"), ("node_id", name.as_str())];
    let now = service::clock::now_ms();
    messages(broker, page, &node);
    store(
        &broker.store.stats(),
        now,
        page,
        &[&node[..], &[("storage_type", "local"), ("storage_medium", "disk")]].concat(),
    );
    work(broker, page, &node);
    connections(broker, page, &node);
    lag(broker, page, &node);
}

fn messages(broker: &Broker, page: &mut Page, node: Labels<'_>) {
    let stats = &broker.stats;
    page.counter("rocketmq_messages_in_total", "Messages stored.", node, stats.put_total() as f64);
    page.counter("rocketmq_messages_out_total", "Messages delivered.", node, stats.transferred_total() as f64);
    page.counter("rocketmq_throughput_in_total", "Bytes stored.", node, stats.put_bytes_total() as f64);
    page.counter("rocketmq_throughput_out_total", "Bytes delivered.", node, stats.got_bytes_total() as f64);
    page.counter("rocketmq_failed_puts_total", "Messages refused by the store.", node, stats.failed_puts() as f64);
    page.gauge("rocketmq_topic_number", "Topics.", node, broker.topics.len() as f64);
    page.gauge("rocketmq_consumer_group_number", "Consumer groups.", node, broker.groups.names().len() as f64);
    page.gauge("rocketmq_broker_permission", "4 reads, 2 writes.", node, f64::from(broker.config().broker_permission));
}

fn store(stats: &StoreStats, now: i64, page: &mut Page, labels: Labels<'_>) {
    let mut gauge = |name, help, value: f64| page.gauge(name, help, labels, value);
    // RocketMQ's page has had these names with and without the unit.
    let used = "Used bytes of the store's partition.";
    gauge("rocketmq_storage_size", used, stats.disk_used_bytes as f64);
    gauge("rocketmq_storage_size_bytes", used, stats.disk_used_bytes as f64);
    gauge("rocketmq_storage_flush_behind_bytes", "Bytes not yet on the disk.", stats.flush_behind_bytes as f64);
    gauge("rocketmq_storage_dispatch_behind_bytes", "Bytes not yet readable.", stats.dispatch_behind_bytes as f64);
    gauge("rocketmq_storage_index_behind_bytes", "Bytes not yet in the key index.", stats.index_behind_bytes as f64);
    if stats.earliest_message_timestamp > 0 {
        let (help, age) = ("Age of the oldest message.", (now - stats.earliest_message_timestamp) as f64);
        gauge("rocketmq_storage_message_reserve_time", help, age);
        gauge("rocketmq_storage_message_reserve_time_milliseconds", help, age);
    }
    let size = stats.commit_log_max_offset.saturating_sub(stats.commit_log_min_offset);
    gauge("rocketmq_storage_commit_log_bytes", "Bytes of the commit log.", size as f64);
    gauge("rocketmq_storage_disk_ratio", "Used share of the commit log's disk.", stats.commit_log_disk_ratio);
    gauge("rocketmq_storage_writable", "1 while messages are taken.", f64::from(u8::from(stats.writable)));
    let mut sum = 0;
    let at_most = PUT_BOUNDS_MS.into_iter().zip(stats.put_distribution).map(|(bound, count)| {
        sum += count;
        (bound, sum)
    });
    let at_most: Vec<(f64, u64)> = at_most.collect();
    page.histogram(
        "rocketmq_storage_put_latency_milliseconds",
        "What the write call of a message took.",
        labels,
        &at_most,
        stats.put_distribution.iter().sum(),
        stats.put_waited_us as f64 / 1000.0,
    );
}

/// Requests in work, which here is what waits in Java's queues.
fn work(broker: &Broker, page: &mut Page, node: Labels<'_>) {
    for lane in broker.lanes.all() {
        let processor = match lane.name() {
            "query" => "query_message",
            "client" => "client_manager",
            "consumer" => "consumer_manager",
            same => same,
        };
        let labels = [node, &[("processor", processor)]].concat();
        page.gauge("rocketmq_processor_watermark", "Requests in work.", &labels, lane.in_flight() as f64);
    }
    page.gauge("rocketmq_waiting_pulls", "Pulls that wait for messages.", node, broker.long_polls.len() as f64);
}

fn connections(broker: &Broker, page: &mut Page, node: Labels<'_>) {
    let mut producers: BTreeMap<[String; 2], u64> = BTreeMap::new();
    let mut consumers: BTreeMap<[String; 3], u64> = BTreeMap::new();
    broker.clients.read(|tables| {
        for channel in tables.producers().flat_map(|(_, channels)| channels.values()) {
            *producers.entry(client(channel)).or_default() += 1;
        }
        for (group, members) in tables.consumers() {
            for channel in members.channels.values() {
                let [language, version] = client(channel);
                *consumers.entry([group.clone(), language, version]).or_default() += 1;
            }
        }
    });
    for ([language, version], count) in &producers {
        let labels = [("language", language.as_str()), ("version", version), ("protocol_type", "remoting")];
        let labels = [node, &labels].concat();
        page.gauge("rocketmq_producer_connections", "Connected producers.", &labels, *count as f64);
    }
    for ([group, language, version], count) in &consumers {
        let labels = [
            ("consumer_group", group.as_str()),
            ("language", language),
            ("version", version),
            ("protocol_type", "remoting"),
            ("is_system", truth(is_system_group(group))),
        ];
        page.gauge("rocketmq_consumer_connections", "Connected consumers.", &[node, &labels].concat(), *count as f64);
    }
}

/// Messages that a group has not committed yet.
fn lag(broker: &Broker, page: &mut Page, node: Labels<'_>) {
    for (place, queues) in &broker.offsets.snapshot().offset_table {
        let Some((topic, group)) = place.split_once('@') else { continue };
        let behind = |(queue, offset): (&i32, &i64)| {
            let min = broker.store.min_offset(topic, *queue);
            (broker.store.max_offset(topic, *queue) - (*offset).max(min)).max(0)
        };
        let labels = [
            ("consumer_group", group),
            ("topic", topic),
            ("is_retry", truth(topic.starts_with(RETRY_PREFIX))),
            ("is_system", truth(is_system_group(group) || broker.topics.is_system(topic))),
        ];
        let lag: i64 = queues.iter().map(behind).sum();
        page.gauge(
            "rocketmq_consumer_lag_messages",
            "Messages not yet consumed.",
            &[node, &labels].concat(),
            lag as f64,
        );
    }
}

/// Language and version, the latter as the number clients send.
fn client<P>(channel: &ClientChannel<P>) -> [String; 2] {
    [channel.language.name().to_lowercase(), channel.version.to_string()]
}

fn truth(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}
