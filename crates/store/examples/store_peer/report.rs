//! Prints what a reader can learn of a store, in the lines of the Java counterpart.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use protocol::record::{RecordView, java_hash, properties, property};
use store::{Boundary, GetRequest, KeyQueryResult, RecordFilter, Store};

use crate::workload::{BATCH_QUEUES, COMPACTED};

const TAGS: &str = "Tag1";

/// All queues, and the key queries of every `step`-th message of a queue.
pub(crate) fn print(store: &Store, step: usize) {
    println!("log {} {}", store.min_physical_offset(), store.max_physical_offset());
    let mut topics = store.topics();
    topics.sort();
    let mut total = 0;
    for topic in &topics {
        let mut keys: BTreeSet<String> = ["all5", "all99", "none"].map(String::from).into();
        for queue in store.queue_ids(topic) {
            let count = print_queue(store, topic, queue, step, &mut keys);
            total += if topic == COMPACTED { 0 } else { count };
            print_tagged(store, topic, queue);
            print_times(store, topic, queue);
        }
        for key in &keys {
            print_found(&format!("key {topic} {key}"), &store.query_key(topic, key, 1_000_000, 0, i64::MAX));
        }
        if std::env::var_os("STORE_PEER_FOUR").is_none() {
            print_found(&format!("tags {topic}"), &store.query_tags(topic, TAGS, 1_000_000, 0, i64::MAX));
        }
    }
    println!("total {total}");
}

/// Range, messages, CRC of all record bytes, CRC of all tags codes.
fn print_queue(store: &Store, topic: &str, queue: i32, step: usize, keys: &mut BTreeSet<String>) -> usize {
    let (min, max) = (first(store, topic, queue), store.max_offset(topic, queue));
    let (mut count, mut crc) = (0, crc32fast::Hasher::new());
    let codes = TagsCodes::default();
    read(store, topic, queue, &codes, &mut |record| {
        crc.update(record);
        if count % step == 0 {
            keys_of(record, keys);
        }
        count += 1;
    });
    let codes = codes.0.into_inner().finalize();
    println!("queue {topic} {queue} {min} {max} {count} {} {codes}", crc.finalize());
    count
}

fn keys_of(record: &[u8], keys: &mut BTreeSet<String>) {
    let Ok(view) = RecordView::parse(record) else { return };
    keys.extend(properties::get(view.properties, property::UNIQ_KEY).map(String::from));
    let more = properties::get(view.properties, property::KEYS).unwrap_or_default();
    keys.extend(more.split(' ').filter(|key| !key.is_empty()).map(String::from));
}

/// Java says of a compacted queue what its consume queue still has; readers find messages before that.
fn first(store: &Store, topic: &str, queue: i32) -> i64 {
    if topic == COMPACTED { 0 } else { store.min_offset(topic, queue) }
}

/// Every record of a queue that a filter lets pass.
fn read(store: &Store, topic: &str, queue: i32, filter: &dyn RecordFilter, each: &mut dyn FnMut(&[u8])) {
    let (mut offset, max) = (first(store, topic, queue), store.max_offset(topic, queue));
    while offset < max {
        let got = store.get(&GetRequest {
            topic,
            queue,
            offset,
            max_messages: 32,
            max_bytes: 1 << 20,
            filter: Some(filter),
            may_block: true,
        });
        got.messages.iter().for_each(|record| each(record));
        if got.next_offset <= offset {
            break;
        }
        offset = got.next_offset;
    }
}

/// How many messages a reader gets who wants one tag, and the CRC of their bytes.
fn print_tagged(store: &Store, topic: &str, queue: i32) {
    let (mut count, mut crc) = (0, crc32fast::Hasher::new());
    read(store, topic, queue, &OneTag, &mut |record| {
        crc.update(record);
        count += 1;
    });
    println!("tagged {topic} {queue} {count} {}", crc.finalize());
}

/// The searches around nine messages from the first to the last.
fn print_times(store: &Store, topic: &str, queue: i32) {
    let (min, max) = (store.min_offset(topic, queue), store.max_offset(topic, queue));
    if topic == COMPACTED {
        return;
    }
    println!("earliest {topic} {queue} {}", store.store_time_at(topic, queue, min));
    if max <= min {
        return;
    }
    for k in 0..=8 {
        let at = min + (max - 1 - min) * k / 8;
        let stored = store.store_time_at(topic, queue, at);
        print!("time {topic} {queue} {at} {stored}");
        for time in stored - 1..=stored + 1 {
            let search = |boundary| store.offset_by_time(topic, queue, time, boundary);
            print!(" {}", search(Boundary::Lower));
            if topic != BATCH_QUEUES {
                print!(" {}", search(Boundary::Upper));
            }
        }
        println!();
    }
}

fn print_found(line: &str, found: &KeyQueryResult) {
    let mut crc = crc32fast::Hasher::new();
    found.messages.iter().for_each(|m| crc.update(m));
    println!("{line} {} {}", found.messages.len(), crc.finalize());
}

struct OneTag;

impl RecordFilter for OneTag {
    fn tags_code_matches(&self, tags_code: i64) -> bool {
        tags_code == i64::from(java_hash(TAGS))
    }
}

/// Lets everything through and sums up what it was asked.
#[derive(Default)]
struct TagsCodes(Mutex<crc32fast::Hasher>);

impl RecordFilter for TagsCodes {
    fn tags_code_matches(&self, tags_code: i64) -> bool {
        self.0.lock().update(&tags_code.to_be_bytes());
        true
    }
}
