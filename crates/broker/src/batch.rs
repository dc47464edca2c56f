//! The requests of one read of one connection, answered together.
//!
//! Sends are appended as they come and wait here; at the end of the read one write hands all of them to the kernel, and then they are
//! answered.

use std::ops::Range;
use std::sync::Arc;

use protocol::body::TopicConfig;
use protocol::response_code as code;
use remoting::{Connection, Reply};
use service::clock::now_ms;
use store::WriteError;

use crate::broker::Broker;
use crate::context::Refusal;
use crate::names::SCHEDULE_TOPIC;
use crate::send_answer::{self, Places, SentFields};

/// What the frames of one read leave to be done at its end.
#[derive(Default)]
pub struct Batch {
    now: i64,
    sends: Vec<PendingSend>,
    /// The unique keys of `sends`, one after the other.
    keys: String,
    /// The highest ticket of `sends`.
    end: u64,
}

/// A send that has its places in the log and waits for the write.
pub struct StoredSend {
    pub places: Places,
    /// As the producer sees it.
    pub queue_id: i32,
    pub queue_offset: i64,
    pub messages: u32,
    pub bytes: u32,
    /// The store's ticket for the write and the flush.
    pub ticket: u64,
    /// The producer wants the flush to be over before the answer.
    pub waits_for_flush: bool,
    /// The topic it counts for; none while it waits in a delay level.
    pub topic: Option<Arc<TopicConfig>>,
}

struct PendingSend {
    stored: StoredSend,
    key: Option<Range<u32>>,
    reply: Reply,
}

impl Batch {
    /// The wall clock at the first request of the batch that asked, milliseconds since 1970.
    pub fn now(&mut self) -> i64 {
        if self.now == 0 {
            self.now = now_ms();
        }
        self.now
    }

    /// Adds an appended send, to be answered at the end.
    pub fn push(&mut self, stored: StoredSend, unique_key: Option<&str>, reply: Reply) {
        let key = unique_key.map(|key| {
            let start = self.keys.len() as u32;
            self.keys.push_str(key);
            start..self.keys.len() as u32
        });
        self.end = self.end.max(stored.ticket);
        self.sends.push(PendingSend { stored, key, reply });
    }

    /// Runs once after the last frame of a read.
    pub fn end(&mut self, broker: &Arc<Broker>, conn: &Connection) {
        if self.sends.is_empty() {
            return;
        }
        let sends = std::mem::take(&mut self.sends);
        match broker.store.write_out(self.end) {
            Ok(()) if broker.sync_flush => self.answer_after_flush(broker, conn, sends),
            Ok(()) => answer_all(broker, sends, &self.keys, &Ok(code::SUCCESS)),
            Err(error) => refuse_all(broker, sends, &error),
        }
    }

    fn answer_after_flush(&mut self, broker: &Arc<Broker>, conn: &Connection, sends: Vec<PendingSend>) {
        let (waiting, ready): (Vec<_>, Vec<_>) = sends.into_iter().partition(|send| send.stored.waits_for_flush);
        answer_all(broker, ready, &self.keys, &Ok(code::SUCCESS));
        let Some(ticket) = waiting.iter().map(|send| send.stored.ticket).max() else {
            return;
        };
        let keys = std::mem::take(&mut self.keys);
        let (weak, conn) = (Arc::downgrade(broker), conn.clone());
        broker.store.when_flushed(
            ticket,
            Box::new(move |flushed| {
                // Gone only when the whole broker is; the producers then hear of it by the end of their connections.
                if let Some(broker) = weak.upgrade() {
                    let outcome = send_answer::after_flush(&broker, &flushed);
                    conn.answer_together(|| answer_all(&broker, waiting, &keys, &outcome));
                }
            }),
        );
    }
}

fn answer_all(broker: &Broker, sends: Vec<PendingSend>, keys: &str, outcome: &Result<i32, Refusal>) {
    let config = broker.config();
    let mut counted = Counted::default();
    for send in sends {
        let stored = send.stored;
        let response_code = match outcome {
            Ok(response_code) => *response_code,
            Err(refusal) => {
                broker.stats.put_failed(stored.messages.into());
                send_answer::refuse(broker, send.reply, refusal);
                continue;
            }
        };
        counted.add(broker, stored.topic, stored.messages.into(), stored.bytes.into());
        let key = send.key.and_then(|key| keys.get(key.start as usize..key.end as usize));
        let fields = SentFields {
            region: &config.region_id,
            trace_on: config.trace_on,
            store_host: broker.store_host,
            places: &stored.places,
            queue_id: stored.queue_id,
            queue_offset: stored.queue_offset,
            transaction_id: key,
        };
        send.reply.send_parts(response_code, None, &fields, ());
    }
    counted.finish(broker);
}

/// Sums over neighbouring sends to one topic, so that counting costs per batch and not per message.
#[derive(Default)]
struct Counted {
    topic: Option<Arc<TopicConfig>>,
    messages: u64,
    bytes: u64,
}

impl Counted {
    fn add(&mut self, broker: &Broker, topic: Option<Arc<TopicConfig>>, messages: u64, bytes: u64) {
        let same = match (&self.topic, &topic) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        if !same {
            self.finish(broker);
            *self = Self { topic, ..Self::default() };
        }
        self.messages += messages;
        self.bytes += bytes;
    }

    fn finish(&self, broker: &Broker) {
        if self.messages > 0 {
            let topic = self.topic.as_ref().map_or(SCHEDULE_TOPIC, |topic| topic.topic_name.as_str());
            broker.stats.put(self.messages, self.bytes);
            broker.stats.topic_put(topic, self.messages, self.bytes);
        }
    }
}

fn refuse_all(broker: &Broker, sends: Vec<PendingSend>, error: &WriteError) {
    tracing::error!(%error, sends = sends.len(), "messages could not be written and are refused");
    let refusal = send_answer::write_refusal(broker, error);
    answer_all(broker, sends, "", &Err(refusal));
}
