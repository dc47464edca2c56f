//! A deleted topic's messages do not come back.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;

use protocol::record::properties;
use store::*;
use support::*;

/// Every kind of queue a message can be in: plain, batch, light.
const QUEUES: [&str; 3] = ["T", "BatchT", "%LMQ%t"];

fn open_all(dir: &Path) -> std::sync::Arc<Store> {
    open_batch(StoreConfig { enable_lmq: true, enable_multi_dispatch: true, ..config(dir) })
}

/// One message for each of `QUEUES`. The one for the light queue is in a topic that is never deleted.
fn send_each(store: &Store, body: &str) {
    send(store, "T", 0, body);
    send_inner(store, "BatchT", 0, body, 3);
    send_with(store, "Kept", 0, body, &[("INNER_MULTI_DISPATCH", "%LMQ%t")]);
}

fn bodies(store: &Store, topic: &str) -> Vec<String> {
    read_all(store, topic, 0).into_iter().map(|(_, body)| body).collect()
}

/// A store whose topics are deleted, and made anew with one message if `anew`.
fn deleted(dir: &Path, anew: bool) -> std::sync::Arc<Store> {
    let store = open_all(dir);
    for i in 0..5 {
        send_each(&store, &format!("old{i}"));
    }
    for topic in QUEUES {
        assert!(store.delete_topic(topic).unwrap());
    }
    if anew {
        send_each(&store, "new");
    }
    store
}

fn assert_only_new(store: &Store, anew: bool) {
    let expected: &[&str] = if anew { &["new"] } else { &[] };
    for topic in QUEUES {
        assert_eq!(bodies(store, topic), expected, "{topic}");
    }
    assert_eq!(read_all(store, "Kept", 0).len(), 5 + expected.len(), "others lose nothing");
}

#[test]
fn not_after_a_kill() {
    for anew in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        deleted(dir.path(), anew).abandon();
        let store = open_all(dir.path());
        assert_only_new(&store, anew);
        assert_eq!(send(&store, "T", 0, "next").queue_offset, i64::from(anew));
        store.abandon();
    }
}

#[test]
fn not_when_the_queues_are_built_anew() {
    for anew in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        deleted(dir.path(), anew).close();
        for folder in ["consumequeue", "batchconsumequeue"] {
            // Without a batch topic left there is none of the second.
            fs::remove_dir_all(dir.path().join(folder)).ok();
        }
        let store = open_all(dir.path());
        assert_only_new(&store, anew);
        store.close();
    }
}

#[test]
fn not_after_a_store_rebuild_and_a_check_misses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let settings = || config(dir.path());
    {
        let store = open(settings());
        for i in 0..5 {
            send(&store, "T", 0, &format!("old{i}"));
            send(&store, "Gone", 0, "old");
        }
        assert!(store.delete_topic("T").unwrap() && store.delete_topic("Gone").unwrap());
        send(&store, "T", 0, "new");
        store.close();
    }
    offline::rebuild(&settings(), false).unwrap();
    let found = offline::OfflineStore::open(settings()).unwrap().check().unwrap();
    assert!(found.is_clean(), "{found:?}");
    let store = open(settings());
    assert_eq!((bodies(&store, "T"), bodies(&store, "Gone")), (vec!["new".to_owned()], vec![]));
    store.close();
}

#[test]
fn not_when_its_folder_is_still_there_after_a_death_in_the_middle() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    let queue = dir.path().join("consumequeue/T");
    {
        let store = open(config(dir.path()));
        send(&store, "T", 0, "old");
        store.pass(true);
        copy_dir(&queue, &kept);
        store.delete_topic("T").unwrap();
        store.abandon();
    }
    copy_dir(&kept, &queue);
    let store = open(config(dir.path()));
    assert_eq!(bodies(&store, "T"), Vec::<String>::new());
    assert_eq!(send(&store, "T", 0, "new").queue_offset, 0);
    store.close();
}

#[test]
fn messages_on_their_way_go_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    let text = properties::from_pairs([("TAGS", "A")]);
    let appended = store.append(&message("T", 0, b"old", &text)).unwrap();
    store.delete_topic("T").unwrap();
    store.write_out(appended.end).unwrap();
    assert_eq!(store.max_offset("T", 0), 0);
    send(&store, "T", 0, "new");
    store.abandon();
    let store = open(config(dir.path()));
    assert_eq!(bodies(&store, "T"), ["new"]);
    store.close();
}

#[test]
fn another_logs_messages_stay_although_they_lie_before_the_end() {
    // Somebody emptied the store, and a Java broker, which leaves the file as it is, filled it anew.
    let (dir, before) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = deleted(before.path(), false);
    let deleted_at = send(&store, "Other", 0, "x").store_timestamp;
    // The next millisecond: the second store's messages are newer.
    while send(&store, "Other", 0, "x").store_timestamp <= deleted_at {}
    store.close();
    let store = open_all(dir.path());
    send_each(&store, "new");
    store.close();
    fs::copy(before.path().join("deletedTopics"), dir.path().join("deletedTopics")).unwrap();
    for rebuilt in [false, true] {
        if rebuilt {
            fs::remove_dir_all(dir.path().join("consumequeue")).unwrap();
        }
        let store = open_all(dir.path());
        for topic in QUEUES {
            assert_eq!(bodies(&store, topic), ["new"], "{topic}, queues built anew: {rebuilt}");
        }
        store.close();
    }
}

#[test]
fn a_deletion_that_failed_can_be_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    send(&store, "T", 0, "old");
    // No folder, so that it cannot be removed as one.
    let in_the_way = dir.path().join("consumequeue_ext/T");
    fs::create_dir_all(in_the_way.parent().unwrap()).unwrap();
    fs::write(&in_the_way, "").unwrap();
    assert!(store.delete_topic("T").is_err());
    let refused = store.append(&message("T", 0, b"new", b"")).err().unwrap();
    assert!(matches!(refused, PutError::TopicDeleted), "{refused}");
    fs::remove_file(&in_the_way).unwrap();
    assert!(store.delete_topic("T").unwrap());
    assert_eq!(send(&store, "T", 0, "new").queue_offset, 0);
    assert_eq!(bodies(&store, "T"), ["new"]);
    store.close();
}
