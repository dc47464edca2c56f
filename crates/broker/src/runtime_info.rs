//! What `brokerStatus` and `clusterList` show of the broker: 28, and the replication state: 907.

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol::body::{HaRuntimeInfo, KvTable};
use protocol::{Command, json};

use crate::broker::Broker;
use crate::context::{Answer, Context, body};
use crate::dispatch::LaneId;
use crate::stats::Rates;

/// What Java's `MQVersion` calls the version this broker answers with.
pub const VERSION_NAME: &str = "V5_4_0";

const PUT_SPANS: [&str; 13] = [
    "[<=0ms]",
    "[0~10ms]",
    "[10~50ms]",
    "[50~100ms]",
    "[100~200ms]",
    "[200~500ms]",
    "[500ms~1s]",
    "[1~2s]",
    "[2~3s]",
    "[3~4s]",
    "[4~5s]",
    "[5~10s]",
    "[10s~]",
];

/// GET_BROKER_RUNTIME_INFO.
pub fn runtime_info(broker: &Arc<Broker>, context: &Context<'_>, _: &Command) -> Answer {
    let mut table = BTreeMap::new();
    store_numbers(broker, context.now, &mut table);
    totals(broker, &mut table);
    queues(broker, &mut table);
    delay_levels(broker, &mut table);
    body(json::to_legacy(&KvTable { table }))
}

/// GET_BROKER_HA_STATUS: a master; nobody replicates from this broker.
pub fn ha_status(broker: &Arc<Broker>, _: &Context<'_>, _: &Command) -> Answer {
    body(json::to_legacy(&HaRuntimeInfo {
        master: true,
        master_commit_log_max_offset: broker.store.max_physical_offset() as i64,
        ..Default::default()
    }))
}

type Table = BTreeMap<String, String>;

fn put(table: &mut Table, key: &str, value: impl ToString) {
    table.insert(key.to_owned(), value.to_string());
}

/// A number as Java prints a double.
fn double(value: f64) -> String {
    format!("{value:?}")
}

fn rates(rates: Rates, missing: &str) -> String {
    rates.map(|rate| rate.map_or_else(|| missing.to_owned(), double)).join(" ")
}

fn sum(a: Rates, b: Rates) -> Rates {
    let mut both = [None; 3];
    for (slot, (a, b)) in both.iter_mut().zip(a.into_iter().zip(b)) {
        *slot = Some(a.unwrap_or(0.0) + b.unwrap_or(0.0));
    }
    both
}

fn store_numbers(broker: &Broker, now: i64, table: &mut Table) {
    let store = broker.store.stats();
    let stats = &broker.stats;
    put(table, "bootTimestamp", broker.started_at);
    put(table, "runtime", run_time(now - broker.started_at));
    put(table, "putMessageEntireTimeMax", store.put_max_us / 1000);
    // Java divides by it, so an idle broker says 1.
    put(table, "putMessageTimesTotal", store.messages_appended.max(1));
    put(table, "putMessageFailedTimes", stats.failed_puts());
    put(table, "putMessageSizeTotal", store.bytes_appended);
    let spans = PUT_SPANS.iter().zip(store.put_distribution).map(|(name, count)| format!("{name}:{count} "));
    put(table, "putMessageDistributeTime", spans.collect::<String>());
    put(table, "putMessageAverageSize", double(store.bytes_appended as f64 / store.messages_appended.max(1) as f64));
    put(table, "dispatchMaxBuffer", 0);
    put(table, "getMessageEntireTimeMax", stats.get_longest_ms());
    put(table, "putTps", rates(stats.put_rates(), ""));
    put(table, "getFoundTps", rates(stats.found_rates(), ""));
    put(table, "getMissTps", rates(stats.missed_rates(), ""));
    put(table, "getTotalTps", rates(sum(stats.found_rates(), stats.missed_rates()), "0.0"));
    put(table, "getTransferredTps", rates(stats.transferred_rates(), ""));
    let (p99, p999) = (latency(&store.put_distribution, 0.99), latency(&store.put_distribution, 0.999));
    put(table, "putLatency99", format!("{p99:.2}"));
    put(table, "putLatency999", format!("{p999:.2}"));
    put(table, "commitLogMinOffset", store.commit_log_min_offset);
    put(table, "commitLogMaxOffset", store.commit_log_max_offset);
    put(table, "commitLogDiskRatio", double(store.commit_log_disk_ratio));
    for path in broker.commit_log_paths() {
        put(table, &format!("commitLogDiskRatio_{}", path.display()), double(store.commit_log_disk_ratio));
    }
    put(table, "consumeQueueDiskRatio", double(store.consume_queue_disk_ratio));
    put(table, "dispatchBehindBytes", store.dispatch_behind_bytes);
    put(table, "pageCacheLockTimeMills", 0);
    put(table, "earliestMessageTimeStamp", store.earliest_message_timestamp);
    put(table, "remainTransientStoreBufferNumbs", i32::MAX);
    put(table, "remainHowManyDataToFlush", readable_bytes(store.flush_behind_bytes));
    if let Ok(disk) = rustix::fs::statvfs(&broker.data_dir) {
        let (total, free) = (disk.f_blocks * disk.f_frsize, disk.f_bfree * disk.f_frsize);
        let capacity = format!("Total : {}, Free : {}.", readable_bytes(total), readable_bytes(free));
        put(table, "commitLogDirCapacity", capacity);
    }
}

/// The upper end, in milliseconds, of the span that holds the given share of all writes.
fn latency(distribution: &[u64; 13], share: f64) -> f64 {
    const ENDS: [f64; 13] =
        [0.0, 10.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 3000.0, 4000.0, 5000.0, 10_000.0, 10_000.0];
    let total: u64 = distribution.iter().sum();
    let wanted = (total as f64 * share) as u64;
    let mut passed = 0;
    for (count, end) in distribution.iter().zip(ENDS) {
        passed += count;
        if wanted <= passed {
            return end;
        }
    }
    0.0
}

fn totals(broker: &Broker, table: &mut Table) {
    let days = broker.stats.days();
    put(table, "msgPutTotalYesterdayMorning", days.put_yesterday_morning);
    put(table, "msgPutTotalTodayMorning", days.put_today_morning);
    put(table, "msgPutTotalTodayNow", broker.stats.put_total());
    put(table, "msgGetTotalYesterdayMorning", days.get_yesterday_morning);
    put(table, "msgGetTotalTodayMorning", days.get_today_morning);
    put(table, "msgGetTotalTodayNow", broker.stats.transferred_total());
    put(table, "brokerActive", true);
    put(table, "brokerVersionDesc", VERSION_NAME);
    put(table, "startAcceptSendRequestTimeStamp", broker.config().start_accept_send_request_time_stamp);
}

/// Java counts what waits in front of a pool; here it is what is under way in a lane. Nothing waits at the head.
fn queues(broker: &Broker, table: &mut Table) {
    for (name, lane) in
        [("send", LaneId::Send), ("pull", LaneId::Pull), ("litePull", LaneId::Pull), ("query", LaneId::Query)]
    {
        let lane = broker.lanes.lane(lane);
        put(table, &format!("{name}ThreadPoolQueueSize"), lane.in_flight());
        put(table, &format!("{name}ThreadPoolQueueCapacity"), lane.limit());
        put(table, &format!("{name}ThreadPoolQueueHeadWaitTimeMills"), 0);
    }
    let config = broker.config();
    put(table, "ackThreadPoolQueueSize", 0);
    put(table, "ackThreadPoolQueueCapacity", config.ack_thread_pool_queue_capacity);
    put(table, "ackThreadPoolQueueHeadWaitTimeMills", 0);
    put(table, "EndTransactionQueueSize", 0);
    put(table, "EndTransactionThreadPoolQueueCapacity", config.end_transaction_pool_queue_capacity);
    for (key, idle) in [
        ("timerReadBehind", "0"),
        ("timerOffsetBehind", "0"),
        ("timerCongestNum", "0"),
        ("timerEnqueueTps", "0.0"),
        ("timerDequeueTps", "0.0"),
    ] {
        put(table, key, idle);
    }
}

/// How far each used delay level has got: `delivered,stored`.
fn delay_levels(broker: &Broker, table: &mut Table) {
    for (level, offset) in broker.delay.snapshot().offset_table {
        let end = broker.store.max_offset(crate::names::SCHEDULE_TOPIC, crate::delay::queue_of_level(level));
        put(table, &format!("scheduleMessageOffset_{level}"), format!("{offset},{end}"));
    }
}

fn run_time(ms: i64) -> String {
    let seconds = ms / 1000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    format!("[ {days} days, {hours} hours, {minutes} minutes, {} seconds ]", seconds % 60)
}

fn readable_bytes(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit < 6 {
        value /= 1024.0;
        unit += 1;
    }
    let letter = ["", "K", "M", "G", "T", "P", "E"].get(unit).copied().unwrap_or("E");
    format!("{value:.1} {letter}iB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_javas_do() {
        assert_eq!(double(0.0), "0.0");
        assert_eq!(double(47.980_807_676_929_23), "47.98080767692923");
        assert_eq!(rates([Some(1.5), None, None], ""), "1.5  ");
        assert_eq!(rates(sum([Some(1.0), None, None], [Some(2.0), None, None]), "0.0"), "3.0 0.0 0.0");
        assert_eq!(run_time(30_999), "[ 0 days, 0 hours, 0 minutes, 30 seconds ]");
        assert_eq!(run_time(90_061_000), "[ 1 days, 1 hours, 1 minutes, 1 seconds ]");
        assert_eq!((readable_bytes(0), readable_bytes(270_582_939_648)), ("0 B".into(), "252.0 GiB".into()));
    }
}
