//! The messages of one round; the Java counterpart writes the same kinds.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use protocol::record::{properties, property, sys_flag};
use store::{Append, AppendBatch, Appended, BatchItem, Store};

use crate::Outcome;

const HALF: &str = "RMQ_SYS_TRANS_HALF_TOPIC";
const OPERATIONS: &str = "RMQ_SYS_TRANS_OP_HALF_TOPIC";
const SCHEDULE: &str = "SCHEDULE_TOPIC_XXXX";
pub(crate) const BATCH_QUEUES: &str = "BatchQueues";
pub(crate) const COMPACTED: &str = "Compacted";

struct Message {
    topic: String,
    queue: usize,
    flag: i32,
    sys_flag: i32,
    born_host: SocketAddr,
    store_host: SocketAddr,
    reconsume_times: i32,
    prepared: i64,
    body: Vec<u8>,
    properties: Vec<u8>,
}

struct Workload<'a> {
    store: &'a Store,
    round: &'a str,
    /// Some messages go into light queues, too.
    light: bool,
    /// Records that got a place in a queue, one for each queue.
    queued: usize,
}

pub(crate) fn put(store: &Store, round: &str, count: usize, light: bool) -> Outcome {
    let mut work = Workload { store, round, light, queued: 0 };
    for i in 0.. {
        if work.queued >= count {
            break;
        }
        work.one(i)?;
    }
    println!("queued {}", work.queued);
    Ok(())
}

impl Workload<'_> {
    fn one(&mut self, i: usize) -> Outcome {
        match i % 20 {
            0 => return self.batch(i),
            1 => return self.delayed(i),
            2 => return self.transaction(i),
            3 => return self.old_transaction(i),
            _ => {}
        }
        let mut message = self.message(&format!("T{}", i % 3), i);
        let six: SocketAddr = ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 10_000).into();
        match i % 20 {
            4 => message.born_host = six,
            5 => {
                message.born_host = six;
                message.store_host = ([0xfe80, 0, 0, 0, 0, 0, 0, 2], 10_911).into();
            }
            6 => message.sys_flag = sys_flag::COMPRESSED,
            7 => message.properties.clear(),
            8 => message.body = vec![0; 2000 + i % 3000],
            9 => {
                properties::set(&mut message.properties, property::TAGS, &format!("标签{}", i % 3));
                properties::set(&mut message.properties, property::KEYS, &format!("键{} 💡{i}", i % 1000));
            }
            10 => {
                message.topic = format!("%RETRY%{}group", long_part());
                message.reconsume_times = (i % 16) as i32;
            }
            11 if !for_four() => return self.inner_batch(i),
            12 if !for_four() => {
                message.topic = BATCH_QUEUES.into();
                message.queue = i / 20 % 8;
            }
            13 if !for_four() => {
                message.topic = COMPACTED.into();
                message.queue = i / 20 % 2;
                properties::set(&mut message.properties, property::KEYS, &format!("key{}", i / 20 % 90));
            }
            14 if self.light => {
                let names = format!("%LMQ%a,%LMQ%b{}", i / 20 % 5);
                properties::set(&mut message.properties, property::INNER_MULTI_DISPATCH, &names);
                self.queued += 2;
            }
            _ => {}
        }
        self.put(&message)?;
        // Of a compacted queue a round leaves what it likes.
        self.queued += usize::from(message.topic != COMPACTED);
        Ok(())
    }

    fn message(&self, topic: &str, i: usize) -> Message {
        let pairs = [
            (property::TAGS, format!("Tag{}", i % 5)),
            (property::KEYS, format!("{}-{i} all{}", self.round, i % 100)),
            (property::UNIQ_KEY, format!("U{}{i}", self.round)),
        ];
        Message {
            topic: topic.into(),
            queue: i % 8,
            flag: (i % 7) as i32,
            sys_flag: 0,
            born_host: ([127, 0, 0, 1], 10_000).into(),
            store_host: ([127, 0, 0, 1], 10_911).into(),
            reconsume_times: 0,
            prepared: 0,
            body: format!("{} {i} {}", self.round, "0123456789".repeat(i % 50)).into_bytes(),
            properties: properties::from_pairs(pairs.iter().map(|(k, v)| (*k, v.as_str()))),
        }
    }

    fn put(&self, m: &Message) -> Result<Appended, Box<dyn std::error::Error>> {
        let appended = self.store.append(&of(m))?;
        self.store.write_out(appended.end)?;
        Ok(appended)
    }

    /// Three messages in a record.
    fn inner_batch(&mut self, i: usize) -> Outcome {
        let message = Message { queue: i / 20 % 8, ..self.message(BATCH_QUEUES, i) };
        let appended = self.store.append_inner_batch(&of(&message), 3)?;
        self.store.write_out(appended.end)?;
        self.queued += 1;
        Ok(())
    }

    fn batch(&mut self, i: usize) -> Outcome {
        let messages: Vec<Message> = (0..5).map(|n| self.message("Batches", i + n)).collect();
        let item = |m: &'_ Message| (m.flag, m.body.clone(), m.properties.clone());
        let owned: Vec<_> = messages.iter().map(item).collect();
        let items: Vec<BatchItem<'_>> =
            owned.iter().map(|(flag, body, properties)| BatchItem { flag: *flag, body, properties }).collect();
        let appended = self.store.append_batch(&AppendBatch {
            topic: "Batches",
            queue_id: (i / 20 % 8) as i32,
            sys_flag: 0,
            born_timestamp: now(),
            born_host: messages[0].born_host,
            store_host: messages[0].store_host,
            reconsume_times: 0,
            items: &items,
        })?;
        self.store.write_out(appended.end)?;
        self.queued += items.len();
        Ok(())
    }

    /// As the broker leaves a delayed message.
    fn delayed(&mut self, i: usize) -> Outcome {
        let level = 1 + i % 18;
        let mut message = self.message(SCHEDULE, i);
        message.queue = level - 1;
        properties::set(&mut message.properties, property::DELAY, &level.to_string());
        set_real(&mut message, "T0", i);
        self.put(&message)?;
        self.queued += 1;
        Ok(())
    }

    /// A half message, and for most of them what the commit leaves.
    fn transaction(&mut self, i: usize) -> Outcome {
        let mut half = self.message(HALF, i);
        half.queue = 0;
        set_real(&mut half, "T1", i);
        properties::set(&mut half.properties, property::TRANSACTION_PREPARED, "true");
        let put = self.put(&half)?;
        self.queued += 1;
        if i.is_multiple_of(3) {
            return Ok(());
        }
        let mut committed = self.message("T1", i);
        committed.sys_flag = sys_flag::TRANSACTION_COMMIT;
        committed.prepared = put.physical_offset as i64;
        self.put(&committed)?;
        let mut operation = self.message(OPERATIONS, i);
        operation.queue = 0;
        properties::set(&mut operation.properties, property::TAGS, "d");
        operation.body = put.queue_offset.to_string().into_bytes();
        self.put(&operation)?;
        self.queued += 2;
        Ok(())
    }

    /// As brokers before 4.3 kept them: in the log, in no queue.
    fn old_transaction(&mut self, i: usize) -> Outcome {
        for flag in [sys_flag::TRANSACTION_PREPARED, sys_flag::TRANSACTION_ROLLBACK, sys_flag::TRANSACTION_COMMIT] {
            let message = Message { sys_flag: flag, ..self.message("Old", i) };
            self.put(&message)?;
        }
        self.queued += 1;
        Ok(())
    }
}

fn of(m: &Message) -> Append<'_> {
    Append {
        topic: &m.topic,
        queue_id: m.queue as i32,
        flag: m.flag,
        sys_flag: m.sys_flag,
        born_timestamp: now(),
        born_host: m.born_host,
        store_host: m.store_host,
        reconsume_times: m.reconsume_times,
        prepared_transaction_offset: m.prepared,
        body: &m.body,
        properties: &m.properties,
        more_properties: &[],
    }
}

fn set_real(message: &mut Message, topic: &str, i: usize) {
    properties::set(&mut message.properties, property::REAL_TOPIC, topic);
    properties::set(&mut message.properties, property::REAL_QUEUE_ID, &(i % 8).to_string());
}

/// Makes a topic longer than the records of RocketMQ 4 can say, unless one is to read them.
fn long_part() -> String {
    if for_four() { String::new() } else { "g".repeat(200) }
}

/// Whether RocketMQ 4 is the other side.
fn for_four() -> bool {
    std::env::var_os("STORE_PEER_FOUR").is_some()
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)
}
