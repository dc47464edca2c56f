//! Topics with batch consume queues: records of one or more messages.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;

use protocol::record::{RecordView, java_hash, properties, sys_flag};
use store::*;
use support::*;

const TOPIC: &str = "BatchT";

/// Reads to the end: `(queue offset, messages, body)` of each record, as the pull answers say it.
fn records(store: &Store, queue: i32) -> Vec<(i64, i64, String)> {
    let mut all = Vec::new();
    let mut offset = store.min_offset(TOPIC, queue);
    while offset < store.max_offset(TOPIC, queue) {
        let got = store.get(&GetRequest { max_messages: 1, ..request(TOPIC, queue, offset) });
        assert_eq!((got.status, got.messages.len()), (GetStatus::Found, 1), "at {offset}");
        let view = RecordView::parse(&got.messages[0]).unwrap();
        assert_eq!(got.next_offset - view.queue_offset, got.count as i64, "the next read begins behind the record");
        all.push((view.queue_offset, got.count as i64, String::from_utf8(view.body.to_vec()).unwrap()));
        offset = got.next_offset;
    }
    all
}

/// Sends batches of 1, 2, … 7, 1, … messages and a single one after every fourth; returns what `records` must find.
fn fill(store: &Store, queue: i32, from: i64, range: std::ops::Range<i64>) -> Vec<(i64, i64, String)> {
    let mut next = from;
    let mut all = Vec::new();
    for i in range {
        let (body, count) = (format!("body {i}"), 1 + i % 7);
        let (appended, count) = match i % 5 {
            4 => (send(store, TOPIC, queue, &body), 1),
            _ => (send_inner(store, TOPIC, queue, &body, count as i16), count),
        };
        assert_eq!(appended.queue_offset, next);
        all.push((next, count, body));
        next += count;
    }
    assert_eq!(store.max_offset(TOPIC, queue), next);
    all
}

#[test]
fn an_inner_batch_is_one_record_that_takes_the_offsets_of_its_messages() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_batch(config(dir.path()));
    let text = properties::from_pairs([("UNIQ_KEY", "U"), ("TAGS", "a")]);
    let batch = Append { more_properties: b"CLUSTER\x01c\x02", ..message(TOPIC, 3, b"ten", &text) };
    for base in [0, 10] {
        let appended = store.append_inner_batch(&batch, 10).unwrap();
        store.write_out(appended.end).unwrap();
        assert_eq!(appended.queue_offset, base);
        let record = store.record_at(appended.physical_offset).unwrap();
        let view = RecordView::parse(&record).unwrap();
        assert_eq!(view.sys_flag, sys_flag::NEED_UNWRAP | sys_flag::INNER_BATCH);
        assert_eq!(view.queue_offset, base);
        let get = |key| properties::get(view.properties, key).unwrap().to_owned();
        assert_eq!((get("INNER_NUM"), get("INNER_BASE"), get("CLUSTER")), ("10".into(), base.to_string(), "c".into()));
    }
    assert_eq!((store.min_offset(TOPIC, 3), store.max_offset(TOPIC, 3)), (0, 20));
    for (offset, begins, next) in [(0, 0, 10), (9, 0, 10), (10, 10, 20), (19, 10, 20)] {
        let got = store.get(&GetRequest { max_messages: 1, ..request(TOPIC, 3, offset) });
        let view = RecordView::parse(&got.messages[0]).unwrap();
        assert_eq!((view.queue_offset, got.next_offset, got.count), (begins, next, 10), "asked for {offset}");
        assert_eq!(store.store_time_at(TOPIC, 3, offset), view.store_timestamp);
    }
    assert_eq!(store.get(&request(TOPIC, 3, 20)).status, GetStatus::OffsetOverflowOne);
    let units = store.units(TOPIC, 3, 4, 32);
    assert_eq!(units.iter().map(|u| (u.queue_offset, u.count)).collect::<Vec<_>>(), [(0, 10), (10, 10)]);
    assert_eq!(units[0].tags_code, i64::from(java_hash("a")));
}

#[test]
fn a_read_counts_messages_not_records() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_batch(config(dir.path()));
    for _ in 0..10 {
        send_inner(&store, TOPIC, 0, "x", 5);
    }
    let read = |max_messages, offset| {
        let got = store.get(&GetRequest { max_messages, ..request(TOPIC, 0, offset) });
        (got.count, got.next_offset)
    };
    assert_eq!(read(3, 0), (5, 5), "the first record is given whatever its size");
    assert_eq!(read(10, 0), (10, 10));
    assert_eq!(read(14, 0), (10, 10));
    assert_eq!(read(10, 7), (10, 15), "from the record that holds the offset");
    assert_eq!(read(100, 0), (35, 35), "maxTransferCountOnMessageInMemory is reached with the seventh");
}

#[test]
fn single_messages_and_classic_batches_are_records_of_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_batch(config(dir.path()));
    let items: Vec<BatchItem<'_>> =
        [&b"one"[..], b"two"].into_iter().map(|body| BatchItem { flag: 0, body, properties: b"" }).collect();
    let appended = store
        .append_batch(&AppendBatch {
            topic: TOPIC,
            queue_id: 0,
            sys_flag: 0,
            born_timestamp: 0,
            born_host: host(1),
            store_host: host(2),
            reconsume_times: 0,
            items: &items,
        })
        .unwrap();
    store.write_out(appended.end).unwrap();
    send_inner(&store, TOPIC, 0, "three", 3);
    send(&store, TOPIC, 0, "four");
    let expected = [(0, 1, "one"), (1, 1, "two"), (2, 3, "three"), (5, 1, "four")];
    assert_eq!(records(&store, 0), expected.map(|(at, n, body)| (at, n, body.to_owned())));
}

#[test]
fn what_is_no_inner_batch_is_refused_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_batch(config(dir.path()));
    let illegal = |result: Result<Appended, PutError>| result.unwrap_err().put_status() == PutStatus::MessageIllegal;
    assert!(illegal(store.append_inner_batch(&message("Plain", 0, b"x", b""), 2)));
    assert!(illegal(store.append_inner_batch(&message(TOPIC, 0, b"x", b""), 0)));
    let half = Append { sys_flag: sys_flag::TRANSACTION_PREPARED, ..message(TOPIC, 0, b"x", b"") };
    assert!(illegal(store.append_inner_batch(&half, 2)));
    let marked = Append { sys_flag: sys_flag::INNER_BATCH, ..message(TOPIC, 0, b"x", b"") };
    assert!(illegal(store.append(&marked)));
    assert_eq!(store.max_offset(TOPIC, 0), 0);
}

/// The folder's files of one queue, as Java has them: full size, contiguous from byte 0.
fn files(dir: &Path, queue: i32) -> usize {
    let dir = dir.join(format!("batchconsumequeue/{TOPIC}/{queue}"));
    let mut names: Vec<u64> = fs::read_dir(dir)
        .unwrap()
        .map(|file| {
            let file = file.unwrap();
            assert_eq!(file.metadata().unwrap().len(), 46 * 20);
            file.file_name().to_str().unwrap().parse().unwrap()
        })
        .collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] + 46 * 20 == pair[1]), "{names:?}");
    names.len()
}

#[test]
fn everything_is_there_after_each_kind_of_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    let mut sent = 0;
    for end in ["stop", "kill", "machine", "lost queue", "all queues lost"] {
        let store = open_batch(config(dir.path()));
        assert_eq!(records(&store, 1), expected, "before {end}");
        expected.extend(fill(&store, 1, store.max_offset(TOPIC, 1), sent..sent + 130));
        sent += 130;
        send(&store, "Plain", 0, end);
        assert_eq!(records(&store, 1), expected, "from memory, {end}");
        match end {
            "stop" => store.close(),
            "machine" => {
                store.abandon();
                forget_boot(dir.path());
            }
            "lost queue" => {
                store.close();
                fs::remove_dir_all(dir.path().join("batchconsumequeue").join(TOPIC)).unwrap();
            }
            "all queues lost" => {
                store.close();
                fs::remove_dir_all(dir.path().join("batchconsumequeue")).unwrap();
                fs::remove_dir_all(dir.path().join("consumequeue")).unwrap();
            }
            _ => store.abandon(),
        }
    }
    let store = open_batch(config(dir.path()));
    assert_eq!(records(&store, 1), expected);
    assert_eq!(read_all(&store, "Plain", 0).len(), 5);
    store.close();
    assert_eq!(files(dir.path(), 1), 650_usize.div_ceil(20));
}

#[test]
fn an_old_commit_log_takes_the_units_of_its_messages_along() {
    let dir = tempfile::tempdir().unwrap();
    let config = StoreConfig {
        file_reserved_time: std::time::Duration::ZERO,
        delete_when: vec![],
        delete_commit_log_files_interval: std::time::Duration::ZERO,
        ..config(dir.path())
    };
    let store = open_batch(config.clone());
    let all = fill(&store, 0, 0, 0..600);
    store.close();
    drop(store);
    let store = open_batch(config.clone());
    let before = store.min_physical_offset();
    while store.delete_expired_now() > 0 {}
    assert!(store.min_physical_offset() > before);
    let min = store.min_offset(TOPIC, 0);
    let left: Vec<_> = all.iter().filter(|(at, ..)| *at >= min).cloned().collect();
    assert!(!left.is_empty() && left.len() < 400, "{}", left.len());
    assert_eq!(left[0].0, min, "the minimum is where a record begins");
    assert!(store.units(TOPIC, 0, min, 1)[0].physical_offset >= store.min_physical_offset());
    assert_eq!(records(&store, 0), left);
    assert_eq!(store.get(&request(TOPIC, 0, min - 1)).status, GetStatus::OffsetTooSmall);
    store.close();
    drop(store);
    let store = open_batch(config);
    assert_eq!((store.min_offset(TOPIC, 0), records(&store, 0)), (min, left));
    assert!(store.delete_topic(TOPIC).unwrap());
    assert!(!dir.path().join("batchconsumequeue").join(TOPIC).exists());
    assert_eq!(fill(&store, 0, 0, 0..3).len(), 3, "a topic made anew begins at 0");
}

#[test]
fn time_finds_the_record() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_batch(config(dir.path()));
    let all = fill(&store, 0, 0, 0..100);
    let times: Vec<i64> = all.iter().map(|(at, ..)| store.store_time_at(TOPIC, 0, *at)).collect();
    for t in times[0] - 2..times[99] + 3 {
        let lower = times.iter().position(|x| *x >= t).map_or(store.max_offset(TOPIC, 0), |i| all[i].0);
        let upper = times.iter().rposition(|x| *x <= t).map_or(0, |i| all[i].0);
        assert_eq!(store.offset_by_time(TOPIC, 0, t, Boundary::Lower), lower, "{t}");
        assert_eq!(store.offset_by_time(TOPIC, 0, t, Boundary::Upper), upper, "{t}");
    }
    assert_eq!(store.earliest_time(TOPIC, 0), times[0]);
}

#[test]
fn a_queue_of_the_other_kind_stops_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_batch(config(dir.path()));
    send_inner(&store, TOPIC, 0, "x", 2);
    store.close();
    drop(store);
    let refused = Store::open(config(dir.path()), std::sync::Arc::new(()), Box::new(()));
    let Err(OpenError::Bad { path, what }) = refused else { panic!("it opens") };
    assert!(path.ends_with("batchconsumequeue/BatchT/0"), "{path}");
    assert!(what.contains("queue.type") && what.contains("topics.json"), "{what}");
    open_batch(config(dir.path()));
}

/// No topic at all, then one that was made anew as a batch topic.
struct MadeAnew(std::sync::atomic::AtomicBool);

impl TopicKinds for MadeAnew {
    fn queue_type(&self, topic: &str) -> QueueType {
        if self.knows(topic) { QueueType::Batch } else { QueueType::Simple }
    }
    fn knows(&self, _: &str) -> bool {
        self.0.load(std::sync::atomic::Ordering::Acquire)
    }
}

#[test]
fn queues_of_topics_that_are_gone_are_in_nobodys_way() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_batch(config(dir.path()));
    send_inner(&store, TOPIC, 0, "x", 2);
    store.close();
    drop(store);
    // Deleted, but the machine died before its queues were.
    let kinds = std::sync::Arc::new(MadeAnew(false.into()));
    let store = Store::open(config(dir.path()), kinds.clone(), Box::new(())).unwrap();
    send(&store, "T", 0, "of a topic that is gone");
    store.close();
    drop(store);
    let store = Store::open(config(dir.path()), kinds.clone(), Box::new(())).unwrap();
    kinds.0.store(true, std::sync::atomic::Ordering::Release);
    store.topic_changed("T").unwrap();
    store.topic_changed(TOPIC).unwrap();
    assert_eq!((store.max_offset("T", 0), store.max_offset(TOPIC, 0)), (0, 2));
    send_inner(&store, "T", 0, "x", 3);
    store.close();
    drop(store);
    let store = Store::open(config(dir.path()), kinds, Box::new(())).unwrap();
    assert_eq!(store.max_offset("T", 0), 3);
}
