//! Reading: each connection has some of the queues, with one pull under way for each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use protocol::frame::{Head, encode_parts};
use protocol::headers::pull_sys_flag;
use protocol::{Command, FieldSink, Language, SerializeType, VERSION, request_code, response_code};
use remoting::{ClientConfig, CloseReason, Connection, FieldWriter, Reply, Service};
use tokio::sync::Notify;

use crate::stats::{Clock, Counts, Stats, micros};
use crate::template::{MAGIC, STAMPED};

/// How long the broker may hold a pull.
const SUSPEND: Duration = Duration::from_secs(15);
/// How long a queue is let be after a failure, in nanoseconds.
const AFTER_FAILURE: u64 = 100_000_000;

/// What all connections of the consumer share.
pub(crate) struct Plan {
    pub(crate) clock: Clock,
    pub(crate) group: String,
    pub(crate) topic: String,
    pub(crate) batch: i32,
    pub(crate) serialize: SerializeType,
    /// Wait for new messages at the end of a queue.
    pub(crate) follow: bool,
    /// The messages are this process's own, so that their times can be told.
    pub(crate) own: bool,
    /// Messages that may still be read.
    pub(crate) left: AtomicU64,
    pub(crate) stopped: AtomicBool,
    /// Queues that are not read to their end yet.
    pub(crate) open_queues: AtomicU64,
    pub(crate) finished: Notify,
}

impl Plan {
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.finished.notify_waiters();
        self.finished.notify_one();
    }
}

pub(crate) struct QueueState {
    pub(crate) queue_id: i32,
    pub(crate) offset: i64,
    /// Where reading ends without `follow`.
    pub(crate) end: i64,
    asked: u64,
    /// When to ask again after a failure; 0 when a pull is under way or the queue is done.
    retry_at: u64,
    done: bool,
}

impl QueueState {
    pub(crate) fn new(queue_id: i32, offset: i64, end: i64) -> Self {
        Self { queue_id, offset, end, asked: 0, retry_at: 0, done: false }
    }
}

/// One connection of the consumer.
pub(crate) struct Link {
    addr: String,
    plan: Arc<Plan>,
    stats: Arc<Stats>,
    queues: Mutex<Vec<QueueState>>,
    closed: Notify,
}

impl Link {
    pub(crate) fn new(addr: String, queues: Vec<QueueState>, plan: Arc<Plan>, stats: Arc<Stats>) -> Self {
        Self { addr, plan, stats, queues: Mutex::new(queues), closed: Notify::new() }
    }

    /// Keeps the link connected until it is stopped.
    pub(crate) async fn run(self: Arc<Self>) {
        while !self.plan.stopped.load(Ordering::Relaxed) {
            match remoting::connect(&self.addr, &ClientConfig::default(), self.clone()).await {
                Ok(conn) => {
                    self.ask_where(&conn, |_| true);
                    self.watch(&conn).await;
                }
                Err(error) => self.stats.record(|counts| counts.fail(error.to_string(), 1)),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Asks again for queues whose pull failed, until the connection is over.
    async fn watch(&self, conn: &Connection) {
        let mut tick = tokio::time::interval(Duration::from_millis(100));
        loop {
            tokio::select! {
                () = self.closed.notified() => return,
                _ = tick.tick() => {
                    let now = self.plan.clock.now();
                    self.ask_where(conn, |queue| queue.retry_at != 0 && queue.retry_at <= now);
                }
            }
        }
    }

    fn ask_where(&self, conn: &Connection, wanted: impl Fn(&QueueState) -> bool) {
        for (at, queue) in self.queues.lock().iter_mut().enumerate() {
            if wanted(queue) {
                self.ask_queue(conn, at, queue);
            }
        }
    }

    fn ask_queue(&self, conn: &Connection, at: usize, queue: &mut QueueState) {
        if queue.done || self.plan.stopped.load(Ordering::Relaxed) {
            return;
        }
        queue.asked = self.plan.clock.now();
        queue.retry_at = 0;
        let suspend = if self.plan.follow { pull_sys_flag::SUSPEND } else { 0 };
        let header = PullFields {
            plan: &self.plan,
            queue_id: queue.queue_id,
            offset: queue.offset,
            sys_flag: pull_sys_flag::SUBSCRIPTION | suspend,
        };
        let head = Head {
            code: request_code::PULL_MESSAGE,
            language: Language::RUST,
            version: VERSION,
            opaque: at as i32,
            flag: 0,
            remark: None,
            serialize: self.plan.serialize,
        };
        conn.send_encoded(|out| encode_parts(out, &head, &mut |sink| header.write(sink), 0));
    }

    /// Takes in one answer and says whether to ask for more.
    fn take_in(&self, counts: &mut Counts, queue: &mut QueueState, response: &Command, now: u64) -> bool {
        let next = response.fields.get("nextBeginOffset").and_then(|text| text.parse::<i64>().ok());
        match response.code {
            response_code::SUCCESS => {
                counts.latency.saturating_record(micros(queue.asked, now));
                let messages = count_messages(&response.body, counts, self.plan.own.then_some(now));
                counts.messages += messages;
                counts.bytes += response.body.len() as u64;
                queue.offset = next.unwrap_or(queue.offset + messages as i64);
                let left = self
                    .plan
                    .left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(messages)));
                if left.is_ok_and(|left| left <= messages) {
                    self.plan.stop();
                }
            }
            response_code::PULL_NOT_FOUND
            | response_code::PULL_RETRY_IMMEDIATELY
            | response_code::PULL_OFFSET_MOVED => {
                queue.offset = next.unwrap_or(queue.offset);
            }
            code => {
                counts.fail(format!("code {code}"), 1);
                queue.retry_at = now + AFTER_FAILURE;
                return false;
            }
        }
        if !self.plan.follow && queue.offset >= queue.end && !queue.done {
            queue.done = true;
            if self.plan.open_queues.fetch_sub(1, Ordering::Relaxed) == 1 {
                self.plan.stop();
            }
        }
        true
    }
}

impl Service for Link {
    type Batch = Vec<Command>;

    fn call(&self, _conn: &Connection, _batch: &mut Self::Batch, _request: Command, reply: Reply) {
        reply.not_supported();
    }

    fn unmatched(&self, _conn: &Connection, batch: &mut Self::Batch, response: Command) {
        batch.push(response);
    }

    fn end_batch(&self, conn: &Connection, batch: &mut Self::Batch) {
        let now = self.plan.clock.now();
        let mut queues = self.queues.lock();
        self.stats.record(|counts| {
            for response in batch.drain(..) {
                let at = response.opaque as usize;
                let Some(queue) = queues.get_mut(at) else {
                    counts.fail("answers to nothing".to_owned(), 1);
                    continue;
                };
                if self.take_in(counts, queue, &response, now) {
                    self.ask_queue(conn, at, queue);
                }
            }
        });
    }

    fn disconnected(&self, _conn: &Connection, why: CloseReason) {
        if !self.plan.stopped.load(Ordering::Relaxed) {
            self.stats.record(|counts| counts.fail(format!("connection lost: {why}"), 1));
        }
        self.closed.notify_one();
    }
}

/// A pull's header, written without owning its texts.
struct PullFields<'a> {
    plan: &'a Plan,
    queue_id: i32,
    offset: i64,
    sys_flag: i32,
}

impl PullFields<'_> {
    fn write(&self, sink: &mut FieldWriter<'_>) {
        sink.text("consumerGroup", &self.plan.group);
        sink.text("topic", &self.plan.topic);
        sink.int("queueId", self.queue_id.into());
        sink.int("queueOffset", self.offset);
        sink.int("maxMsgNums", self.plan.batch.into());
        sink.int("sysFlag", self.sys_flag.into());
        sink.int("commitOffset", 0);
        sink.int("suspendTimeoutMillis", SUSPEND.as_millis() as i64);
        sink.text("subscription", "*");
        sink.int("subVersion", 0);
        sink.text("expressionType", "TAG");
    }
}

/// Counts the records in an answer by their lengths, and with a time takes the due times out of the bodies of our
/// own messages.
fn count_messages(body: &[u8], counts: &mut Counts, now: Option<u64>) -> u64 {
    const SYS_FLAG_AT: usize = protocol::record::SYS_FLAG_AT;
    /// Where the body's length stands when both hosts are IPv4.
    const BODY_LENGTH_AT: usize = 84;
    const IPV6_BORN: u32 = 16;
    const IPV6_STORE: u32 = 32;
    let word = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 4).and_then(|four| four.first_chunk::<4>()).map_or(0, |four| u32::from_be_bytes(*four))
    };
    let mut rest = body;
    let mut count = 0;
    while rest.len() >= BODY_LENGTH_AT + 4 {
        let size = word(rest, 0) as usize;
        let Some(record) = rest.get(..size).filter(|record| !record.is_empty()) else {
            break;
        };
        count += 1;
        let Some(now) = now else {
            rest = &rest[size..];
            continue;
        };
        let flags = word(record, SYS_FLAG_AT);
        let wider = 12 * (usize::from(flags & IPV6_BORN != 0) + usize::from(flags & IPV6_STORE != 0));
        let start = BODY_LENGTH_AT + wider + 4;
        let stamped = record.get(start..start + STAMPED).filter(|_| word(record, start - 4) as usize >= STAMPED);
        if let Some((magic, stamp)) = stamped.and_then(|bytes| bytes.split_first_chunk::<8>())
            && magic == MAGIC
            && let Some(stamp) = stamp.first_chunk::<8>()
        {
            counts.end_to_end.saturating_record(micros(u64::from_be_bytes(*stamp), now));
        }
        rest = &rest[size..];
    }
    count
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use protocol::Header;
    use protocol::headers::PullMessageRequest;

    use super::*;

    #[test]
    fn the_hand_written_header_is_a_pull_header() {
        let plan = Plan {
            clock: Clock::new(),
            group: "G".to_owned(),
            topic: "T".to_owned(),
            batch: 32,
            serialize: SerializeType::Binary,
            follow: true,
            own: true,
            left: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            open_queues: AtomicU64::new(0),
            finished: Notify::new(),
        };
        let fields = PullFields { plan: &plan, queue_id: 3, offset: 12, sys_flag: 6 };
        let head = Head::response(11, 1, None, SerializeType::Binary);
        let mut wire = BytesMut::new();
        encode_parts(&mut wire, &head, &mut |sink| fields.write(sink), 0);
        let command = protocol::frame::decode(&mut wire, 4096).unwrap().unwrap();
        let header = PullMessageRequest::read(&command.fields).unwrap();
        assert_eq!((header.topic.as_str(), header.queue_id, header.queue_offset), ("T", 3, 12));
        assert_eq!((header.max_msg_nums, header.sys_flag, header.suspend_timeout_millis), (32, 6, 15_000));
    }
}
