//! Counters of what the broker did, and the rates `mqadmin` shows of them.
//!
//! The hot path adds to atomics; once a second [`Stats::sample`] looks at them. The time comes in as an argument.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::names::LIGHT_PREFIX;

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// What Java's VIEW_BROKER_STATS_DATA calls the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    TopicPutNums,
    TopicPutSize,
    /// Keyed `topic@group`, as the other group kinds.
    GroupGetNums,
    GroupGetSize,
    SendBackPutNums,
    BrokerPutNums,
    BrokerGetNums,
}

impl Kind {
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "TOPIC_PUT_NUMS" => Self::TopicPutNums,
            "TOPIC_PUT_SIZE" => Self::TopicPutSize,
            "GROUP_GET_NUMS" => Self::GroupGetNums,
            "GROUP_GET_SIZE" => Self::GroupGetSize,
            "SNDBCK_PUT_NUMS" => Self::SendBackPutNums,
            "BROKER_PUT_NUMS" => Self::BrokerPutNums,
            "BROKER_GET_NUMS" => Self::BrokerGetNums,
            _ => return None,
        })
    }
}

/// A sum, how many additions made it, and what they were at some earlier times.
#[derive(Default)]
struct Series {
    sum: AtomicU64,
    times: AtomicU64,
    past: Mutex<Past>,
}

#[derive(Default)]
struct Past {
    /// Every 10 s for a minute, every 10 min for an hour, every hour for a day.
    minute: VecDeque<Point>,
    hour: VecDeque<Point>,
    day: VecDeque<Point>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Point {
    at: i64,
    sum: u64,
    times: u64,
}

/// One span of a series.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Span {
    pub sum: u64,
    /// Per second.
    pub tps: f64,
    /// Per addition.
    pub average: f64,
}

impl Series {
    fn add(&self, amount: u64) {
        self.sum.fetch_add(amount, Ordering::Relaxed);
        self.times.fetch_add(1, Ordering::Relaxed);
    }

    fn point(&self, at: i64) -> Point {
        Point { at, sum: self.sum.load(Ordering::Relaxed), times: self.times.load(Ordering::Relaxed) }
    }

    fn sample(&self, now: i64) {
        let point = self.point(now);
        let mut past = self.past.lock();
        let Past { minute, hour, day } = &mut *past;
        for (list, step, keep) in [(minute, 10 * SECOND, 7), (hour, 10 * MINUTE, 7), (day, HOUR, 25)] {
            if list.is_empty() {
                // What made the series counts, too: when all series were looked at before, it was not there.
                list.push_back(Point { at: now - SECOND, ..Point::default() });
            }
            if list.back().is_none_or(|last| now - last.at >= step) {
                list.push_back(point);
                if list.len() > keep {
                    list.pop_front();
                }
            }
        }
    }

    fn spans(&self) -> [Span; 3] {
        let past = self.past.lock();
        [&past.minute, &past.hour, &past.day].map(|list| match (list.front(), list.back()) {
            (Some(first), Some(last)) if last.at > first.at => span(*first, *last),
            _ => Span::default(),
        })
    }
}

fn span(first: Point, last: Point) -> Span {
    let sum = last.sum.saturating_sub(first.sum);
    let times = last.times.saturating_sub(first.times);
    Span {
        sum,
        tps: sum as f64 * 1000.0 / (last.at - first.at) as f64,
        average: if times > 0 { sum as f64 / times as f64 } else { 0.0 },
    }
}

/// A total sampled every second for ten minutes: Java's `putTps` and its kin.
#[derive(Default)]
struct Window {
    total: AtomicU64,
    samples: Mutex<VecDeque<(i64, u64)>>,
}

const WINDOW_SAMPLES: usize = 601;

impl Window {
    fn sample(&self, now: i64) {
        let mut samples = self.samples.lock();
        samples.push_back((now, self.total.load(Ordering::Relaxed)));
        if samples.len() > WINDOW_SAMPLES {
            samples.pop_front();
        }
    }

    /// The rate over the last `seconds`; `None` while the broker has not run that long.
    fn tps(&self, seconds: usize) -> Option<f64> {
        let samples = self.samples.lock();
        let (now, last) = *samples.back()?;
        let (then, first) = *samples.get(samples.len().checked_sub(seconds + 1)?)?;
        Some(if now > then { (last - first) as f64 * 1000.0 / (now - then) as f64 } else { 0.0 })
    }
}

/// The rates of one window over 10 s, 1 min and 10 min.
pub type Rates = [Option<f64>; 3];

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DayTotals {
    pub put_yesterday_morning: u64,
    pub put_today_morning: u64,
    pub get_yesterday_morning: u64,
    pub get_today_morning: u64,
}

/// Messages and their bytes.
#[derive(Default)]
struct Traffic {
    messages: Series,
    bytes: Series,
}

/// All counters of one broker.
#[derive(Default)]
pub struct Stats {
    /// What groups get of light message queues is counted under the names' common prefix.
    light_as_one: bool,
    puts: RwLock<HashMap<String, Arc<Traffic>>>,
    gets: RwLock<HashMap<String, HashMap<String, Arc<Traffic>>>>,
    send_backs: RwLock<HashMap<String, Arc<Series>>>,
    broker_put: Series,
    broker_get: Series,
    put: Window,
    found: Window,
    missed: Window,
    transferred: Window,
    failed_puts: AtomicU64,
    put_bytes: AtomicU64,
    got_bytes: AtomicU64,
    get_longest_us: AtomicU64,
    days: Mutex<(i64, DayTotals)>,
}

impl Stats {
    /// With `light_as_one` light message queues and groups have one name here, so that counters do not grow with them.
    pub fn new(light_as_one: bool) -> Self {
        Stats { light_as_one, ..Stats::default() }
    }

    fn counted_as<'a>(&self, name: &'a str) -> &'a str {
        if self.light_as_one && name.starts_with(LIGHT_PREFIX) { LIGHT_PREFIX } else { name }
    }

    /// Messages were stored for a client.
    pub fn put(&self, messages: u64, bytes: u64) {
        self.put.total.fetch_add(messages, Ordering::Relaxed);
        self.put_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.broker_put.add(messages);
    }

    /// The same, by topic.
    pub fn topic_put(&self, topic: &str, messages: u64, bytes: u64) {
        if let Some(series) = self.puts.read().get(topic) {
            series.messages.add(messages);
            series.bytes.add(bytes);
            return;
        }
        let series = self.puts.write().entry(topic.to_owned()).or_default().clone();
        series.messages.add(messages);
        series.bytes.add(bytes);
    }

    /// Messages could not be stored.
    pub fn put_failed(&self, messages: u64) {
        self.failed_puts.fetch_add(messages, Ordering::Relaxed);
    }

    /// A pull found messages.
    pub fn got(&self, messages: u64, bytes: u64) {
        self.found.total.fetch_add(messages, Ordering::Relaxed);
        self.transferred.total.fetch_add(messages, Ordering::Relaxed);
        self.broker_get.add(messages);
        self.got_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The same, by group and topic.
    pub fn group_got(&self, group: &str, topic: &str, messages: u64, bytes: u64) {
        let (group, topic) = (self.counted_as(group), self.counted_as(topic));
        if let Some(series) = self.gets.read().get(topic).and_then(|groups| groups.get(group)) {
            series.messages.add(messages);
            series.bytes.add(bytes);
            return;
        }
        let series =
            self.gets.write().entry(topic.to_owned()).or_default().entry(group.to_owned()).or_default().clone();
        series.messages.add(messages);
        series.bytes.add(bytes);
    }

    /// A pull found nothing.
    pub fn missed(&self) {
        self.missed.total.fetch_add(1, Ordering::Relaxed);
    }

    /// A read of the store took so long, in microseconds.
    pub fn read_took(&self, us: u64) {
        self.get_longest_us.fetch_max(us, Ordering::Relaxed);
    }

    /// A consumer gave a message back.
    pub fn sent_back(&self, group: &str, topic: &str) {
        let (group, topic) = (self.counted_as(group), self.counted_as(topic));
        self.send_backs.write().entry(format!("{topic}@{group}")).or_default().add(1);
    }

    /// Looks at every counter. Call about once a second.
    pub fn sample(&self, now: i64) {
        for window in [&self.put, &self.found, &self.missed, &self.transferred] {
            window.sample(now);
        }
        self.broker_put.sample(now);
        self.broker_get.sample(now);
        for series in self.puts.read().values() {
            series.messages.sample(now);
            series.bytes.sample(now);
        }
        for series in self.gets.read().values().flat_map(HashMap::values) {
            series.messages.sample(now);
            series.bytes.sample(now);
        }
        for series in self.send_backs.read().values() {
            series.sample(now);
        }
        self.roll_day(now);
    }

    fn roll_day(&self, now: i64) {
        let mut days = self.days.lock();
        let today = now.div_euclid(DAY);
        if days.0 == 0 {
            days.0 = today;
        }
        if today > days.0 {
            let totals = &mut days.1;
            totals.put_yesterday_morning = totals.put_today_morning;
            totals.get_yesterday_morning = totals.get_today_morning;
            totals.put_today_morning = self.put_total();
            totals.get_today_morning = self.transferred_total();
            days.0 = today;
        }
    }

    pub fn days(&self) -> DayTotals {
        self.days.lock().1
    }

    pub fn put_total(&self) -> u64 {
        self.put.total.load(Ordering::Relaxed)
    }

    pub fn put_bytes_total(&self) -> u64 {
        self.put_bytes.load(Ordering::Relaxed)
    }

    pub fn got_bytes_total(&self) -> u64 {
        self.got_bytes.load(Ordering::Relaxed)
    }

    pub fn failed_puts(&self) -> u64 {
        self.failed_puts.load(Ordering::Relaxed)
    }

    pub fn transferred_total(&self) -> u64 {
        self.transferred.total.load(Ordering::Relaxed)
    }

    pub fn get_longest_ms(&self) -> u64 {
        self.get_longest_us.load(Ordering::Relaxed) / 1000
    }

    pub fn put_rates(&self) -> Rates {
        rates(&self.put)
    }

    pub fn found_rates(&self) -> Rates {
        rates(&self.found)
    }

    pub fn missed_rates(&self) -> Rates {
        rates(&self.missed)
    }

    pub fn transferred_rates(&self) -> Rates {
        rates(&self.transferred)
    }

    /// Messages per second stored in a topic over the last minute.
    pub fn topic_put_tps(&self, topic: &str) -> f64 {
        self.puts.read().get(topic).map_or(0.0, |series| series.messages.spans()[0].tps)
    }

    /// Messages per second a group got of a topic over the last minute.
    pub fn group_get_tps(&self, group: &str, topic: &str) -> f64 {
        let (group, topic) = (self.counted_as(group), self.counted_as(topic));
        let gets = self.gets.read();
        gets.get(topic).and_then(|groups| groups.get(group)).map_or(0.0, |series| series.messages.spans()[0].tps)
    }

    /// A series over the last minute, hour and day. `key` is what Java uses: the topic, or `topic@group`.
    pub fn series(&self, kind: Kind, key: &str) -> Option<[Span; 3]> {
        let pair = || key.split_once('@');
        Some(match kind {
            Kind::TopicPutNums => self.puts.read().get(key)?.messages.spans(),
            Kind::TopicPutSize => self.puts.read().get(key)?.bytes.spans(),
            Kind::GroupGetNums => self.gets.read().get(pair()?.0)?.get(pair()?.1)?.messages.spans(),
            Kind::GroupGetSize => self.gets.read().get(pair()?.0)?.get(pair()?.1)?.bytes.spans(),
            Kind::SendBackPutNums => self.send_backs.read().get(key)?.spans(),
            Kind::BrokerPutNums => self.broker_put.spans(),
            Kind::BrokerGetNums => self.broker_get.spans(),
        })
    }

    pub fn forget_topic(&self, topic: &str) {
        self.puts.write().remove(topic);
        self.gets.write().remove(topic);
        self.send_backs.write().retain(|key, _| key.split_once('@').is_none_or(|(name, _)| name != topic));
    }

    pub fn forget_group(&self, group: &str) {
        self.gets.write().retain(|_, groups| {
            groups.remove(group);
            !groups.is_empty()
        });
        self.send_backs.write().retain(|key, _| key.split_once('@').is_none_or(|(_, name)| name != group));
    }
}

fn rates(window: &Window) -> Rates {
    [10, 60, 600].map(|seconds| window.tps(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_need_their_time_to_show() {
        let stats = Stats::default();
        for second in 0..=61 {
            stats.sample(second * SECOND);
            stats.put(5, 500);
            stats.topic_put("T", 5, 500);
        }
        assert_eq!(stats.put_rates(), [Some(5.0), Some(5.0), None]);
        assert_eq!(stats.missed_rates(), [Some(0.0), Some(0.0), None]);
        assert_eq!(stats.topic_put_tps("T"), 5.0);
        let [minute, hour, _] = stats.series(Kind::TopicPutSize, "T").unwrap();
        assert_eq!((minute.sum, minute.tps, minute.average), (30_000, 500.0, 500.0));
        assert_eq!(hour, Span::default());
        assert!(stats.series(Kind::TopicPutNums, "U").is_none());
    }

    #[test]
    fn group_series_are_keyed_by_topic_and_group() {
        let stats = Stats::default();
        for at in [1, 10] {
            stats.group_got("g", "T", 20, 100);
            stats.sample(at * SECOND);
        }
        assert_eq!(stats.group_get_tps("g", "T"), 4.0);
        assert_eq!(stats.series(Kind::GroupGetNums, "T@g").unwrap()[0].sum, 40);
        stats.forget_group("g");
        assert!(stats.series(Kind::GroupGetNums, "T@g").is_none());
        assert_eq!(stats.group_get_tps("g", "T"), 0.0);
    }

    #[test]
    fn light_queues_are_counted_as_one_unless_each_is_asked_for() {
        let got = |stats: &Stats| {
            stats.group_got("%LMQ%a", "%LMQ%x", 1, 10);
            stats.group_got("%LMQ%b", "%LMQ%y", 2, 10);
            stats.group_got("g", "T", 4, 10);
            ["%LMQ%@%LMQ%", "%LMQ%x@%LMQ%a", "T@g"].map(|key| stats.series(Kind::GroupGetNums, key).is_some())
        };
        assert_eq!(got(&Stats::new(true)), [true, false, true]);
        assert_eq!(got(&Stats::new(false)), [false, true, true]);
    }

    #[test]
    fn totals_of_the_morning_are_kept_at_midnight() {
        let stats = Stats::default();
        stats.sample(DAY + HOUR);
        stats.put(7, 7);
        stats.sample(2 * DAY);
        assert_eq!(stats.days().put_today_morning, 7);
        stats.put(1, 1);
        stats.sample(3 * DAY + 1);
        assert_eq!((stats.days().put_yesterday_morning, stats.days().put_today_morning), (7, 8));
    }
}
