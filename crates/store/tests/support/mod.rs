//! What the store's tests share.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

pub mod crash;

use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use protocol::record::{RecordView, properties};
use store::*;

/// Small files, so that a few hundred messages roll over.
pub fn config(root: &Path) -> StoreConfig {
    StoreConfig {
        commit_log_file_size: 16 << 10,
        consume_queue_file_size: 20 * 50,
        batch_consume_queue_file_size: 46 * 20,
        max_hash_slot_num: 500,
        max_index_num: 400,
        max_message_size: 4 << 10,
        // Tests run on disks of any fullness.
        disk_max_used_space_ratio: 95,
        clean_file_forcibly: false,
        ..StoreConfig::new(root)
    }
}

pub fn open(config: StoreConfig) -> Arc<Store> {
    Store::open(config, Arc::new(()), Box::new(())).expect("the store opens")
}

pub fn host(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

pub fn message<'a>(topic: &'a str, queue_id: i32, body: &'a [u8], properties: &'a [u8]) -> Append<'a> {
    Append {
        topic,
        queue_id,
        flag: 0,
        sys_flag: 0,
        born_timestamp: 1_700_000_000_000,
        born_host: host(10_000),
        store_host: host(10_911),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body,
        properties,
        more_properties: &[],
    }
}

/// Appends and writes out one message.
pub fn send(store: &Store, topic: &str, queue: i32, body: &str) -> Appended {
    let appended = store.append(&message(topic, queue, body.as_bytes(), b"")).expect("appended");
    store.write_out(appended.end).expect("written");
    appended
}

pub fn send_with(store: &Store, topic: &str, queue: i32, body: &str, pairs: &[(&str, &str)]) -> Appended {
    let properties = properties::from_pairs(pairs.iter().copied());
    let appended = store.append(&message(topic, queue, body.as_bytes(), &properties)).expect("appended");
    store.write_out(appended.end).expect("written");
    appended
}

pub fn request(topic: &str, queue: i32, offset: i64) -> GetRequest<'_> {
    GetRequest { topic, queue, offset, max_messages: 32, max_bytes: 1 << 20, filter: None, may_block: true }
}

/// Reads a queue to its end: `(queue offset, body)`.
pub fn read_all(store: &Store, topic: &str, queue: i32) -> Vec<(i64, String)> {
    let mut all = Vec::new();
    let mut offset = store.min_offset(topic, queue);
    loop {
        let got = store.get(&request(topic, queue, offset));
        for record in &got.messages {
            let view = RecordView::parse(record).expect("a record");
            assert!(view.body_crc_matches());
            all.push((view.queue_offset, String::from_utf8_lossy(view.body).into_owned()));
        }
        if got.next_offset <= offset {
            return all;
        }
        offset = got.next_offset;
    }
}

pub fn numbered(range: std::ops::Range<i64>, prefix: &str) -> Vec<(i64, String)> {
    range.map(|i| (i, format!("{prefix}{i}"))).collect()
}

/// Notes every arrival as `topic/queue:next`.
#[derive(Default, Clone)]
pub struct Arrivals(pub Arc<Mutex<Vec<String>>>);

impl ArrivalListener for Arrivals {
    fn arrived(&self, a: &Arrival<'_>) {
        self.0.lock().unwrap().push(format!("{}/{}:{}", a.topic, a.queue, a.next_offset));
    }
}

/// Copies a folder with all that is in it.
pub fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Makes the checkpoint look as if written before the machine started: zeroes the boot id and sets the sum right.
pub fn forget_boot(dir: &Path) {
    let file = std::fs::File::options().read(true).write(true).open(dir.join("checkpoint")).unwrap();
    let mut ours = [0; 132];
    file.read_exact_at(&mut ours, 1024).unwrap();
    ours[64..80].fill(0);
    let sum = crc32fast::hash(&ours[..128]);
    ours[128..].copy_from_slice(&sum.to_be_bytes());
    file.write_all_at(&ours, 1024).unwrap();
}

/// Topics with batch consume queues: those whose name begins with `Batch`.
pub struct BatchNames;

impl TopicKinds for BatchNames {
    fn queue_type(&self, topic: &str) -> QueueType {
        if topic.starts_with("Batch") { QueueType::Batch } else { QueueType::Simple }
    }
}

/// Like `open`, with batch topics.
pub fn open_batch(config: StoreConfig) -> Arc<Store> {
    Store::open(config, Arc::new(BatchNames), Box::new(())).expect("the store opens")
}

/// Appends and writes out an inner batch whose one body stands for `count` messages.
pub fn send_inner(store: &Store, topic: &str, queue: i32, body: &str, count: i16) -> Appended {
    let appended = store.append_inner_batch(&message(topic, queue, body.as_bytes(), b""), count).expect("appended");
    store.write_out(appended.end).expect("written");
    appended
}

/// Waits until everything sent so far is on the disk; `last` is the last append.
pub fn flush(store: &Store, last: &Appended) {
    let (done, flushed) = std::sync::mpsc::channel();
    store.when_flushed(last.end, Box::new(move |result| done.send(result).expect("somebody waits")));
    flushed.recv_timeout(std::time::Duration::from_secs(20)).expect("an answer").expect("flushed");
}
