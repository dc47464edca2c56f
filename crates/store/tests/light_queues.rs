//! Light message queues: one record with places in many queues.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;

use protocol::record::{RecordView, properties, sys_flag};
use store::*;
use support::*;

fn light(dir: &Path) -> StoreConfig {
    StoreConfig { enable_lmq: true, enable_multi_dispatch: true, ..config(dir) }
}

fn send_to(store: &Store, body: &str, names: &str) -> Appended {
    send_with(store, "T", 1, body, &[("TAGS", "a"), ("INNER_MULTI_DISPATCH", names)])
}

/// Bodies in the order of a queue.
fn bodies(store: &Store, topic: &str, queue: i32) -> Vec<String> {
    let (mut offset, mut all) = (store.min_offset(topic, queue), Vec::new());
    while offset < store.max_offset(topic, queue) {
        let got = store.get(&GetRequest { max_messages: 1, ..request(topic, queue, offset) });
        assert_eq!((got.status, got.next_offset), (GetStatus::Found, offset + 1));
        all.push(String::from_utf8(RecordView::parse(&got.messages[0]).unwrap().body.to_vec()).unwrap());
        offset = got.next_offset;
    }
    all
}

fn stored_offsets(store: &Store, appended: &Appended) -> Option<String> {
    let record = store.record_at(appended.physical_offset).unwrap();
    let view = RecordView::parse(&record).unwrap();
    properties::get(view.properties, "INNER_MULTI_QUEUE_OFFSET").map(str::to_owned)
}

#[test]
fn a_message_is_in_every_queue_it_names() {
    let dir = tempfile::tempdir().unwrap();
    let arrivals = Arrivals::default();
    let store = Store::open(light(dir.path()), std::sync::Arc::new(()), Box::new(arrivals.clone())).unwrap();
    let sent = [("0", "%LMQ%a"), ("1", "%LMQ%b,%LMQ%a"), ("2", "%LMQ%b"), ("3", "%LMQ%a,%LMQ%a")];
    let offsets: Vec<_> =
        sent.map(|(body, names)| stored_offsets(&store, &send_to(&store, body, names)).unwrap()).into();
    assert_eq!(offsets, ["0", "0,1", "1", "2,2"]);
    assert_eq!(bodies(&store, "%LMQ%a", 0), ["0", "1", "3"]);
    assert_eq!(bodies(&store, "%LMQ%b", 0), ["1", "2"]);
    assert_eq!(bodies(&store, "T", 1), ["0", "1", "2", "3"]);
    let heard = arrivals.0.lock().unwrap().clone();
    assert_eq!(heard[..5], ["T/1:1", "%LMQ%a/0:1", "T/1:2", "%LMQ%b/0:1", "%LMQ%a/0:2"]);
}

#[test]
fn light_queues_come_back_after_each_kind_of_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut sent = 0;
    for end in ["stop", "kill", "machine", "lost queues", "last"] {
        let store = open(light(dir.path()));
        for _ in 0..120 {
            send_to(&store, &sent.to_string(), if sent % 3 == 0 { "%LMQ%a,%LMQ%b" } else { "%LMQ%a" });
            sent += 1;
        }
        let all: Vec<String> = (0..sent).map(|i| i.to_string()).collect();
        let third: Vec<String> = (0..sent).filter(|i| i % 3 == 0).map(|i| i.to_string()).collect();
        assert_eq!((bodies(&store, "T", 1), bodies(&store, "%LMQ%a", 0)), (all.clone(), all), "{end}");
        assert_eq!(bodies(&store, "%LMQ%b", 0), third, "{end}");
        match end {
            "stop" | "last" => store.close(),
            "lost queues" => {
                store.close();
                fs::remove_dir_all(dir.path().join("consumequeue")).unwrap();
            }
            "machine" => {
                store.abandon();
                forget_boot(dir.path());
            }
            _ => store.abandon(),
        }
    }
}

#[test]
fn what_is_not_for_light_queues_is_stored_as_it_is_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let names = [("INNER_MULTI_DISPATCH", "%LMQ%a")];
    let off = open(config(dir.path()));
    assert_eq!(stored_offsets(&off, &send_with(&off, "T", 0, "x", &names)), None);
    assert_eq!(off.topics(), ["T"]);
    off.close();
    drop(off);

    let store = open(StoreConfig { max_lmq_consume_queue_num: 2, ..light(dir.path()) });
    for topic in ["%RETRY%g", "rmq_sys_x", "SCHEDULE_TOPIC_XXXX"] {
        assert_eq!(stored_offsets(&store, &send_with(&store, topic, 0, "x", &names)), None, "{topic}");
    }
    let text = properties::from_pairs(names);
    let half = Append { sys_flag: sys_flag::TRANSACTION_PREPARED, ..message("T", 0, b"x", &text) };
    let appended = store.append(&half).unwrap();
    store.write_out(appended.end).unwrap();
    assert_eq!(store.max_offset("%LMQ%a", 0), 0);

    let refused = |names: &str, body: &[u8]| {
        let text = properties::from_pairs([("INNER_MULTI_DISPATCH", names)]);
        store.append(&message("T", 0, body, &text)).unwrap_err().put_status()
    };
    assert_eq!(refused("a", b"x"), PutStatus::MessageIllegal);
    assert_eq!(refused("%LMQ%a,", b"x"), PutStatus::MessageIllegal);
    assert_eq!(refused("%LMQ%/../../x", b"x"), PutStatus::MessageIllegal);
    assert_eq!(refused("%LMQ%a", &[b'x'; 4050]), PutStatus::MessageIllegal, "the limit is that of the whole record");
    assert_eq!(refused("%LMQ%a,%LMQ%b,%LMQ%c", b"x"), PutStatus::LmqConsumeQueueNumExceeded);
    let appended = send_with(&store, "T", 0, "x", &[("INNER_MULTI_DISPATCH", "%LMQ%a,%LMQ%b")]);
    assert_eq!(stored_offsets(&store, &appended).as_deref(), Some("0,0"), "what was refused took no offset");
}

#[test]
fn without_dispatch_there_are_only_offsets() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(StoreConfig { enable_multi_dispatch: false, ..light(dir.path()) });
    for i in ["0", "1"] {
        assert_eq!(stored_offsets(&store, &send_to(&store, i, "%LMQ%a")).as_deref(), Some(i));
    }
    assert_eq!(store.max_offset("%LMQ%a", 0), 0);
}
