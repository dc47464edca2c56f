//! Old files go, and what hangs on them follows.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use store::*;
use support::*;

fn count(dir: &std::path::Path) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

#[test]
fn expired_files_go_in_batches_and_the_last_one_stays() {
    let dir = tempfile::tempdir().unwrap();
    let settings = StoreConfig {
        file_reserved_time: Duration::ZERO,
        delete_when: vec![],
        delete_file_batch_max: 3,
        delete_commit_log_files_interval: Duration::ZERO,
        ..config(dir.path())
    };
    let store = open(settings.clone());
    for i in 0..1000 {
        send_with(&store, "T", 0, &format!("m{i}"), &[("KEYS", &format!("k{i}"))]);
    }
    send(&store, "idle", 0, "x");
    let appended = store.append(&message("T", 0, b"m1000", b"")).unwrap();
    store.write_out(appended.end).unwrap();
    let (done, flushed) = std::sync::mpsc::channel();
    store.when_flushed(appended.end, Box::new(move |r| done.send(r).unwrap()));
    flushed.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();

    let logs = dir.path().join("commitlog");
    let before = store.stats();
    assert_eq!(before.commit_log_min_offset, 0);
    assert_eq!(store.delete_expired_now(), 3);
    assert_eq!(store.min_physical_offset(), 3 * (16 << 10));
    let min = store.min_offset("T", 0);
    assert!(min > 0);
    let all = read_all(&store, "T", 0);
    assert_eq!(all.first().map(|m| m.0), Some(min));
    assert_eq!(all.len() as i64, 1001 - min);
    let got = store.get(&request("T", 0, min - 1));
    assert_eq!((got.status, got.next_offset), (GetStatus::OffsetTooSmall, min));

    while store.delete_expired_now() > 0 {}
    assert!(count(&logs) <= 2, "the last one, and perhaps a prepared one");
    let mut queue_files: Vec<_> = std::fs::read_dir(dir.path().join("consumequeue/T/0"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    queue_files.sort();
    // The last commit log file holds up to 170 messages, a queue file 50 units.
    assert!(queue_files.len() <= 5, "{queue_files:?}, first message {}", store.min_offset("T", 0));
    assert!(count(&dir.path().join("index")) <= 2);
    assert_eq!(send(&store, "T", 0, "m1001").queue_offset, 1001);
    assert_eq!(read_all(&store, "T", 0).last().unwrap().0, 1001);
    let min = store.min_offset("T", 0);
    store.close();
    let store = open(settings);
    assert_eq!((store.min_offset("T", 0), store.max_offset("T", 0)), (min, 1002));
    assert_eq!(read_all(&store, "T", 0).len() as i64, 1002 - min);
}

#[test]
fn young_files_stay() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    for i in 0..300 {
        send(&store, "T", 0, &format!("m{i}"));
    }
    assert_eq!(store.delete_expired_now(), 0);
    assert_eq!(read_all(&store, "T", 0), numbered(0..300, "m"));
}

#[test]
fn deleted_topics_and_unused_ones_leave_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    for topic in ["a", "b", "c"] {
        send(&store, topic, 0, "m0");
    }
    assert!(store.delete_topic("a").unwrap());
    assert!(!store.delete_topic("a").unwrap());
    assert_eq!(store.clean_unused_topics(&|topic| topic == "c"), ["b"]);
    assert_eq!(store.topics(), ["c"]);
    store.close();
    let queues = dir.path().join("consumequeue");
    assert!(!queues.join("a").exists() && !queues.join("b").exists() && queues.join("c").exists());
    let store = open(config(dir.path()));
    assert_eq!(store.topics(), ["c"]);
    assert_eq!(read_all(&store, "c", 0), numbered(0..1, "m"));
}
