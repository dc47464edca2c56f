//! Messages go in, come out, and survive a reopening.

mod support;

use protocol::record::{RecordView, java_hash, sys_flag};
use store::*;
use support::*;

#[test]
fn what_goes_in_comes_out() {
    let dir = tempfile::tempdir().unwrap();
    let arrivals = Arrivals::default();
    let store = Store::open(config(dir.path()), std::sync::Arc::new(()), Box::new(arrivals.clone())).unwrap();
    let first = send(&store, "T", 0, "a");
    let second = send(&store, "T", 0, "bb");
    let other = send(&store, "T", 3, "c");
    assert_eq!((first.physical_offset, first.queue_offset), (0, 0));
    assert_eq!((second.physical_offset, second.queue_offset), (u64::from(first.len), 1));
    assert_eq!(other.queue_offset, 0);
    assert_eq!(read_all(&store, "T", 0), vec![(0, "a".into()), (1, "bb".into())]);
    assert_eq!(read_all(&store, "T", 3), vec![(0, "c".into())]);
    assert_eq!((store.min_offset("T", 0), store.max_offset("T", 0)), (0, 2));
    assert_eq!(store.queue_ids("T"), vec![0, 3]);
    assert_eq!(*arrivals.0.lock().unwrap(), ["T/0:1", "T/0:2", "T/3:1"]);
    let record = store.record_at(second.physical_offset).unwrap();
    assert_eq!(RecordView::parse(&record).unwrap().body, b"bb");
    assert!(store.record_at(second.physical_offset + 1).is_none());
    store.close();
    assert!(!dir.path().join("abort").exists());
}

#[test]
fn nothing_is_readable_before_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    let appended = store.append(&message("T", 0, b"x", b"")).unwrap();
    assert_eq!(store.get(&request("T", 0, 0)).status, GetStatus::NoMessageInQueue);
    store.write_out(appended.end).unwrap();
    assert_eq!(store.get(&request("T", 0, 0)).status, GetStatus::Found);
}

#[test]
fn statuses_are_javas() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    let status = |queue, offset| {
        let got = store.get(&request("T", queue, offset));
        (got.status, got.next_offset)
    };
    assert_eq!(status(0, 5), (GetStatus::NoMatchedLogicQueue, 0));
    for i in 0..3 {
        send(&store, "T", 0, &i.to_string());
    }
    assert_eq!(status(0, 0), (GetStatus::Found, 3));
    assert_eq!(status(0, 3), (GetStatus::OffsetOverflowOne, 3));
    assert_eq!(status(0, 4), (GetStatus::OffsetOverflowBadly, 3));
    assert_eq!(status(0, -1), (GetStatus::OffsetTooSmall, 0));
}

#[test]
fn files_roll_over_and_everything_is_there_after_a_clean_stop() {
    let dir = tempfile::tempdir().unwrap();
    let expected = numbered(0..500, "message ");
    {
        let store = open(config(dir.path()));
        for (_, body) in &expected {
            send(&store, "T", 1, body);
        }
        assert_eq!(read_all(&store, "T", 1), expected);
        store.close();
    }
    let files = std::fs::read_dir(dir.path().join("commitlog")).unwrap().count();
    assert!(files > 3, "{files} commit log files");
    let units = dir.path().join("consumequeue/T/1");
    assert_eq!(std::fs::read_dir(&units).unwrap().count(), 10);
    assert!(units.join("00000000000000001000").exists());
    let store = open(config(dir.path()));
    assert_eq!(read_all(&store, "T", 1), expected);
    assert_eq!(send(&store, "T", 1, "message 500").queue_offset, 500);
    assert_eq!(read_all(&store, "T", 1), numbered(0..501, "message "));
}

#[test]
fn a_killed_store_loses_nothing_that_was_written() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let store = open(config(dir.path()));
        assert_eq!(read_all(&store, "T", 0), numbered(0..round * 100, "m"));
        for i in 0..100 {
            send(&store, "T", 0, &format!("m{}", round * 100 + i));
        }
        store.abandon();
        assert!(dir.path().join("abort").exists());
    }
    let store = open(config(dir.path()));
    assert_eq!(read_all(&store, "T", 0), numbered(0..500, "m"));
}

#[test]
fn a_batch_is_neighbours_in_log_and_queue() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    send(&store, "T", 0, "before");
    let bodies: Vec<Vec<u8>> = (0..10).map(|i| format!("item {i}").into_bytes()).collect();
    let items: Vec<BatchItem<'_>> = bodies.iter().map(|b| BatchItem { flag: 7, body: b, properties: b"" }).collect();
    let batch = AppendBatch {
        topic: "T",
        queue_id: 0,
        sys_flag: 0,
        born_timestamp: 1,
        born_host: host(1),
        store_host: host(2),
        reconsume_times: 0,
        items: &items,
    };
    let appended = store.append_batch(&batch).unwrap();
    store.write_out(appended.end).unwrap();
    assert_eq!(appended.queue_offset, 1);
    assert_eq!(appended.physical_offsets.len(), 10);
    let all = read_all(&store, "T", 0);
    assert_eq!(all.len(), 11);
    assert_eq!(all[10], (10, "item 9".into()));
    for offset in &appended.physical_offsets {
        let record = store.record_at(*offset).unwrap();
        assert_eq!(RecordView::parse(&record).unwrap().flag, 7);
    }
}

struct Tag(&'static str);

impl RecordFilter for Tag {
    fn tags_code_matches(&self, tags_code: i64) -> bool {
        tags_code == i64::from(java_hash(self.0))
    }
}

#[test]
fn filters_skip_by_tag_and_go_on_behind_what_they_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    for i in 0..100 {
        let tag = if i % 50 == 49 { "B" } else { "A" };
        send_with(&store, "T", 0, &i.to_string(), &[("TAGS", tag)]);
    }
    let tag = Tag("B");
    let got = store.get(&GetRequest { filter: Some(&tag), ..request("T", 0, 0) });
    assert_eq!((got.status, got.messages.len(), got.next_offset), (GetStatus::Found, 2, 100));
    let none = Tag("C");
    let got = store.get(&GetRequest { filter: Some(&none), ..request("T", 0, 0) });
    assert_eq!((got.status, got.next_offset), (GetStatus::NoMatchedMessage, 100));
}

#[test]
fn limits_of_one_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    for i in 0..50 {
        send(&store, "T", 0, &format!("{i:0100}"));
    }
    let len = store.record_at(0).unwrap().len();
    let count = |max_messages, max_bytes| {
        let got = store.get(&GetRequest { max_messages, max_bytes, ..request("T", 0, 0) });
        assert_eq!(got.next_offset, got.messages.len() as i64);
        got.messages.len()
    };
    assert_eq!(count(5, 1 << 20), 5);
    assert_eq!(count(1000, 1 << 20), 32, "maxTransferCountOnMessageInMemory");
    assert_eq!(count(32, 3 * len), 3);
    assert_eq!(count(32, 3 * len - 1), 2);
    assert_eq!(count(32, 1), 1, "the first one is given whatever its size");
}

#[test]
fn half_and_rolled_back_messages_are_in_no_queue() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    for flag in [sys_flag::TRANSACTION_PREPARED, sys_flag::TRANSACTION_ROLLBACK, sys_flag::TRANSACTION_COMMIT] {
        let appended = store.append(&Append { sys_flag: flag, ..message("T", 0, b"x", b"") }).unwrap();
        assert_eq!(appended.queue_offset, 0);
        store.write_out(appended.end).unwrap();
    }
    assert_eq!(store.max_offset("T", 0), 1);
}

#[test]
fn keys_are_found_also_after_a_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let find = |store: &Store, key: &str| -> Vec<String> {
        let found = store.query_key("T", key, 10, 0, i64::MAX);
        let body = |r: &bytes::Bytes| String::from_utf8_lossy(RecordView::parse(r).unwrap().body).into_owned();
        found.messages.iter().map(body).collect()
    };
    {
        let store = open(config(dir.path()));
        for i in 0..500 {
            let (unique, keys) = (format!("U{i}"), format!("k{} common{}", i, i / 250));
            send_with(&store, "T", 0, &i.to_string(), &[("UNIQ_KEY", &unique), ("KEYS", &keys)]);
        }
        assert_eq!(find(&store, "k7"), ["7"]);
        assert_eq!(find(&store, "U499"), ["499"]);
        assert_eq!(find(&store, "common1").len(), 10);
        assert_eq!(find(&store, "nothing").len(), 0);
        store.close();
    }
    let files = std::fs::read_dir(dir.path().join("index")).unwrap().count();
    assert_eq!(files, 4, "1500 keys, 399 in a file");
    let store = open(config(dir.path()));
    assert_eq!(find(&store, "k7"), ["7"]);
    assert_eq!(find(&store, "U499"), ["499"]);
    send_with(&store, "T", 0, "500", &[("KEYS", "k500")]);
    assert_eq!(find(&store, "k500"), ["500"]);
}

#[test]
fn keys_in_a_lost_index_file_are_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let index = dir.path().join("index");
    let files = || {
        let mut paths: Vec<_> = std::fs::read_dir(&index).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        paths
    };
    {
        let store = open(config(dir.path()));
        for i in 0..500 {
            // 399 keys in a file: the keys of one message are in two files.
            send_with(&store, "T", 0, &i.to_string(), &[("UNIQ_KEY", &format!("U{i}")), ("KEYS", &format!("k{i}"))]);
        }
        store.close();
    }
    for which in [2, 1, 0] {
        std::fs::remove_file(&files()[which]).unwrap();
        let store = open(config(dir.path()));
        for i in 0..500 {
            for key in [format!("k{i}"), format!("U{i}")] {
                assert_eq!(store.query_key("T", &key, 10, 0, i64::MAX).messages.len(), 1, "{key} without file {which}");
            }
        }
        store.close();
    }
}

#[test]
fn time_finds_both_neighbours() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    for i in 0..200 {
        send(&store, "T", 0, &i.to_string());
    }
    let times: Vec<i64> = (0..200).map(|i| store.store_time_at("T", 0, i)).collect();
    for t in times[0] - 2..times[199] + 3 {
        let lower = times.iter().position(|x| *x >= t).unwrap_or(200) as i64;
        let upper = times.iter().rposition(|x| *x <= t).unwrap_or(0) as i64;
        assert_eq!(store.offset_by_time("T", 0, t, Boundary::Lower), lower, "{t}");
        assert_eq!(store.offset_by_time("T", 0, t, Boundary::Upper), upper, "{t}");
    }
    assert_eq!(store.earliest_time("T", 0), times[0]);
    assert_eq!(store.store_time_at("T", 0, 200), -1);
}

#[test]
fn the_directory_is_held_by_one_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    let second = Store::open(config(dir.path()), std::sync::Arc::new(()), Box::new(()));
    assert!(matches!(second, Err(OpenError::Locked(_))));
    store.close();
    assert!(matches!(store.append(&message("T", 0, b"", b"")), Err(PutError::ShuttingDown)));
    open(config(dir.path()));
}

#[test]
fn what_is_too_big_or_misnamed_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    let refused = |m: Append<'_>| store.append(&m).unwrap_err().put_status();
    let big = vec![b'x'; (4 << 10) + 1];
    assert_eq!(refused(message("T", 0, &big, b"")), PutStatus::MessageIllegal);
    let properties = vec![b'x'; 32_768];
    assert_eq!(refused(message("T", 0, b"", &properties)), PutStatus::PropertiesSizeExceeded);
    assert_eq!(refused(message("../T", 0, b"", b"")), PutStatus::MessageIllegal);
    assert_eq!(refused(message("T", -1, b"", b"")), PutStatus::MessageIllegal);
    let long = "x".repeat(128);
    assert_eq!(refused(message(&long, 0, b"", b"")), PutStatus::MessageIllegal);
    let retry = format!("%RETRY%{}", "x".repeat(200));
    let appended = store.append(&message(&retry, 0, b"", b"")).unwrap();
    store.write_out(appended.end).unwrap();
    assert_eq!(read_all(&store, &retry, 0).len(), 1);
}

#[test]
fn limits_are_javas() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(StoreConfig { commit_log_file_size: 64 << 10, ..config(dir.path()) });
    let put = |topic: &str, body: usize, properties: usize| {
        let text = match properties {
            0 => String::new(),
            n => format!("K\x01{}\x02", "v".repeat(n - 3)),
        };
        let appended = store.append(&message(topic, 0, &vec![b'x'; body], text.as_bytes()));
        appended.map(|a| store.write_out(a.end).unwrap()).map_err(|error| error.put_status())
    };
    let (long, retry) = ("t".repeat(127), format!("%RETRY%{}", "t".repeat(248)));
    // maxMessageSize is 4096 here. The results are those of 5.4.0's put hook and store.
    assert_eq!(put("T", 4096, 0), Ok(()));
    assert_eq!(put("T", 4097, 0), Err(PutStatus::MessageIllegal));
    assert_eq!(put("T", 10, 32767), Ok(()));
    assert_eq!(put("T", 10, 32768), Err(PutStatus::PropertiesSizeExceeded));
    assert_eq!(put("T", 4096, 32767), Ok(()), "64 KiB are for all but the body");
    assert_eq!(put(&long, 10, 0), Ok(()));
    assert_eq!(put(&format!("{long}t"), 10, 0), Err(PutStatus::MessageIllegal));
    assert_eq!(put(&retry, 10, 0), Ok(()));
    assert_eq!(put(&format!("{retry}t"), 10, 0), Err(PutStatus::MessageIllegal));
    store.close();
    assert_eq!(put("T", 1, 0), Err(PutStatus::ServiceNotAvailable));

    // Java acknowledges a record that no file can hold, and stores nothing.
    let dir = tempfile::tempdir().unwrap();
    let store = open(StoreConfig { max_message_size: 1 << 20, ..config(dir.path()) });
    let refused = store.append(&message("T", 0, &vec![b'x'; 16 << 10], b"")).unwrap_err();
    assert_eq!(refused.put_status(), PutStatus::MessageIllegal);
    assert_eq!(send(&store, "T", 0, "next").queue_offset, 0);
}
