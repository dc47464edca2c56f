//! Sending: each connection has a fixed number of slots, each slot one message under way at most.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use protocol::{Command, response_code};
use remoting::{ClientConfig, CloseReason, Connection, Reply, Service};
use tokio::sync::Notify;

use crate::stats::{Clock, Stats, micros};
use crate::template::Template;

/// A broker that leaves a message unanswered for this long is disconnected, in nanoseconds.
const ANSWER_WITHIN: u64 = 10_000_000_000;
/// After a refused message a connection sends nothing for this long, in nanoseconds.
const AFTER_REFUSAL: u64 = 5_000_000;

/// When the next message is due.
pub(crate) struct Schedule {
    pub(crate) clock: Clock,
    /// Nanoseconds from one message to the next; `None` when an answer makes the next one due.
    pub(crate) interval: Option<f64>,
    start: AtomicU64,
    next: AtomicU64,
    limit: u64,
    stopped: AtomicBool,
}

impl Schedule {
    pub(crate) fn new(clock: Clock, rate: Option<f64>, limit: Option<u64>) -> Self {
        Self {
            clock,
            interval: rate.map(|rate| 1e9 / rate.max(0.001)),
            start: AtomicU64::new(clock.now()),
            next: AtomicU64::new(0),
            limit: limit.unwrap_or(u64::MAX),
            stopped: AtomicBool::new(false),
        }
    }

    /// Counts the time from now on.
    pub(crate) fn start(&self) {
        self.start.store(self.clock.now(), Ordering::Relaxed);
    }

    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.next.load(Ordering::Relaxed) >= self.limit
    }

    /// Takes the next message if it is due: its number and when it was due.
    fn take(&self, now: u64) -> Option<(u64, u64)> {
        if self.stopped.load(Ordering::Relaxed) {
            return None;
        }
        let due = |number: u64| match self.interval {
            Some(interval) => self.start.load(Ordering::Relaxed) + (number as f64 * interval) as u64,
            None => now,
        };
        let taken = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |number| {
            (number < self.limit && due(number) <= now).then_some(number + 1)
        });
        taken.ok().map(|number| (number, due(number)))
    }

    /// How long until the next message is due.
    fn wait(&self) -> Duration {
        let Some(interval) = self.interval else {
            return Duration::from_millis(10);
        };
        let due = self.start.load(Ordering::Relaxed) + (self.next.load(Ordering::Relaxed) as f64 * interval) as u64;
        Duration::from_nanos(due.saturating_sub(self.clock.now()))
    }
}

/// One connection of the producer.
pub(crate) struct Link {
    addr: String,
    schedule: Arc<Schedule>,
    stats: Arc<Stats>,
    slots: Mutex<Slots>,
    closed: Notify,
}

struct Slots {
    conn: Option<Connection>,
    templates: Vec<Template>,
    /// When the slot's message was due; 0 when it has none under way.
    due: Vec<u64>,
    free: Vec<usize>,
    not_before: u64,
    body_bytes: u64,
}

impl Link {
    pub(crate) fn new(
        addr: String,
        templates: Vec<Template>,
        body_bytes: usize,
        schedule: Arc<Schedule>,
        stats: Arc<Stats>,
    ) -> Self {
        let slots = Slots {
            conn: None,
            due: vec![0; templates.len()],
            free: (0..templates.len()).collect(),
            templates,
            not_before: 0,
            body_bytes: body_bytes as u64,
        };
        Self { addr, schedule, stats, slots: Mutex::new(slots), closed: Notify::new() }
    }

    /// Messages that are not answered yet.
    pub(crate) fn under_way(&self) -> usize {
        let slots = self.slots.lock();
        slots.templates.len() - slots.free.len()
    }

    /// Sends what is due, as far as slots are free.
    fn fill(&self) {
        self.fill_slots(&mut self.slots.lock(), self.schedule.clock.now());
    }

    fn fill_slots(&self, slots: &mut Slots, now: u64) {
        let Some(conn) = slots.conn.clone() else {
            return;
        };
        if slots.free.is_empty() || now < slots.not_before {
            return;
        }
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let Some(first) = self.schedule.take(now) else {
            return;
        };
        conn.send_encoded(|out| {
            let mut next = Some(first);
            while let Some((number, due)) = next {
                let Some(slot) = slots.free.pop() else {
                    return;
                };
                slots.due[slot] = due;
                out.extend_from_slice(slots.templates[slot].patched(number, millis, due));
                next = if slots.free.is_empty() { None } else { self.schedule.take(now) };
            }
        });
    }

    /// Closes a connection whose broker does not answer.
    fn check_answers(&self) {
        let slots = self.slots.lock();
        let now = self.schedule.clock.now();
        let stuck = slots.due.iter().any(|due| *due != 0 && now.saturating_sub(*due) > ANSWER_WITHIN);
        // In an open loop a message may have been due long before it was sent; that is no reason.
        if stuck
            && self.schedule.interval.is_none()
            && let Some(conn) = &slots.conn
        {
            conn.close(CloseReason::Local("no answer for too long"));
        }
    }

    /// Keeps the link connected until the schedule is over.
    pub(crate) async fn run(self: Arc<Self>) {
        while !self.schedule.is_over() || self.under_way() > 0 {
            match remoting::connect(&self.addr, &ClientConfig::default(), self.clone()).await {
                Ok(conn) => {
                    self.slots.lock().conn = Some(conn);
                    self.fill();
                    self.closed.notified().await;
                }
                Err(error) => self.stats.record(|counts| counts.fail(error.to_string(), 1)),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

impl Service for Link {
    /// Slot and response code of each answer.
    type Batch = Vec<(i32, i32)>;

    fn call(&self, _conn: &Connection, _batch: &mut Self::Batch, _request: Command, reply: Reply) {
        reply.not_supported();
    }

    fn unmatched(&self, _conn: &Connection, batch: &mut Self::Batch, response: Command) {
        batch.push((response.opaque, response.code));
    }

    fn end_batch(&self, _conn: &Connection, batch: &mut Self::Batch) {
        let now = self.schedule.clock.now();
        let mut slots = self.slots.lock();
        let slots = &mut *slots;
        self.stats.record(|counts| {
            for (slot, code) in batch.drain(..) {
                let slot = slot as usize;
                let Some(due) = slots.due.get_mut(slot).filter(|due| **due != 0) else {
                    counts.fail("answers to nothing".to_owned(), 1);
                    continue;
                };
                let due = std::mem::take(due);
                slots.free.push(slot);
                if code == response_code::SUCCESS {
                    counts.messages += 1;
                    counts.bytes += slots.body_bytes;
                    counts.latency.saturating_record(micros(due, now));
                } else {
                    counts.fail(format!("code {code}"), 1);
                    slots.not_before = now + AFTER_REFUSAL;
                }
            }
        });
        self.fill_slots(slots, now);
    }

    fn disconnected(&self, _conn: &Connection, why: CloseReason) {
        let mut slots = self.slots.lock();
        slots.conn = None;
        let lost = (slots.templates.len() - slots.free.len()) as u64;
        slots.due.fill(0);
        slots.free = (0..slots.templates.len()).collect();
        if !self.schedule.is_over() || lost > 0 {
            self.stats.record(|counts| counts.fail(format!("connection lost: {why}"), lost.max(1)));
        }
        self.closed.notify_one();
    }
}

/// Sends what becomes due when no answer does it; runs in a thread of its own, because a runtime's timers are too
/// coarse for it.
pub(crate) fn pace(links: &[Arc<Link>], schedule: &Schedule) {
    /// Shorter sleeps would cost more than they tell.
    const SHORTEST: Duration = Duration::from_micros(100);
    const LONGEST: Duration = Duration::from_millis(20);
    let mut first = 0;
    let mut checked = 0;
    while !schedule.is_over() {
        std::thread::sleep(schedule.wait().clamp(SHORTEST, LONGEST));
        // Another link has the first choice each time, so that all get their share.
        first = (first + 1) % links.len().max(1);
        links[first..].iter().chain(&links[..first]).for_each(|link| link.fill());
        if schedule.clock.now() - checked > 1_000_000_000 {
            checked = schedule.clock.now();
            links.iter().for_each(|link| link.check_answers());
        }
    }
}
