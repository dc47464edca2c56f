//! Stores that were left in every kind of disorder open again, and lose only what they must.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use store::{StoreConfig, offline};
use support::*;

/// What is done to the files, and its name.
type Harm = (&'static str, fn(&Path));

fn put(store: &store::Store, i: i64) -> store::Appended {
    send_with(store, "T", 0, &format!("m{i}"), &[("TAGS", "A")])
}

/// A killed store with `count` messages in queue 0 of `T`; returns each message's physical offset and the end.
fn killed_store(dir: &Path, count: i64) -> Vec<u64> {
    let store = open(config(dir));
    let mut offsets: Vec<u64> = (0..count).map(|i| put(&store, i).physical_offset).collect();
    offsets.push(store.max_physical_offset());
    store.abandon();
    offsets
}

fn log_file(dir: &Path, start: u64) -> File {
    File::options().read(true).write(true).open(dir.join(format!("commitlog/{start:020}"))).unwrap()
}

#[test]
fn a_log_torn_at_any_byte_of_its_last_records_keeps_all_before() {
    let dir = tempfile::tempdir().unwrap();
    let offsets = killed_store(dir.path(), 20);
    let end = offsets[20];
    for cut in offsets[18]..end {
        let copy = tempfile::tempdir().unwrap();
        copy_dir(dir.path(), copy.path());
        log_file(copy.path(), 0).write_all_at(&vec![0; (end - cut) as usize], cut).unwrap();
        let whole = offsets.iter().filter(|o| **o <= cut).count() as i64 - 1;
        let store = open(config(copy.path()));
        assert_eq!(read_all(&store, "T", 0), numbered(0..whole, "m"), "cut at {cut}");
        assert_eq!(put(&store, whole).physical_offset, offsets[whole as usize]);
        store.abandon();
        let store = open(config(copy.path()));
        assert_eq!(read_all(&store, "T", 0), numbered(0..whole + 1, "m"), "cut at {cut}, second start");
    }
}

#[test]
fn what_lay_behind_a_torn_record_does_not_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let offsets = killed_store(dir.path(), 20);
    // Without our marks, as if the machine had died: the record before the last is torn, the last one is whole.
    fs::remove_file(dir.path().join("checkpoint")).unwrap();
    log_file(dir.path(), 0).write_all_at(b"xyz", offsets[18] + 88).unwrap();
    let store = open(config(dir.path()));
    assert_eq!(read_all(&store, "T", 0), numbered(0..18, "m"));
    // Takes exactly the torn record's place, so the old last record would follow it.
    assert_eq!(put(&store, 18).physical_offset, offsets[18]);
    store.abandon();
    let store = open(config(dir.path()));
    assert_eq!(read_all(&store, "T", 0), numbered(0..19, "m"));
}

#[test]
fn damage_in_the_middle_of_flushed_messages_costs_only_the_damaged_one() {
    let dir = tempfile::tempdir().unwrap();
    let offsets = {
        let store = open(config(dir.path()));
        let offsets: Vec<u64> = (0..300).map(|i| send(&store, "T", 0, &format!("m{i}")).physical_offset).collect();
        store.close();
        offsets
    };
    let file = offsets[5] - offsets[5] % (16 << 10);
    log_file(dir.path(), file).write_all_at(&[0xEE; 40], offsets[5] - file).unwrap();
    // All queues gone: everything is read from the log again.
    fs::remove_dir_all(dir.path().join("consumequeue")).unwrap();
    let store = open(config(dir.path()));
    let bodies: Vec<String> = read_all(&store, "T", 0).into_iter().map(|(_, body)| body).collect();
    let expected: Vec<String> = (0..300).filter(|i| *i != 5).map(|i| format!("m{i}")).collect();
    assert_eq!(bodies, expected);
}

#[test]
fn damage_before_unflushed_messages_costs_only_the_damaged_one_while_the_machine_lives() {
    let dir = tempfile::tempdir().unwrap();
    let offsets = killed_store(dir.path(), 100);
    log_file(dir.path(), 0).write_all_at(&[0xEE; 40], offsets[5]).unwrap();
    // Nothing but the log itself says that messages follow.
    fs::remove_dir_all(dir.path().join("consumequeue")).unwrap();
    let store = open(config(dir.path()));
    let bodies: Vec<String> = read_all(&store, "T", 0).into_iter().map(|(_, body)| body).collect();
    let expected: Vec<String> = (0..100).filter(|i| *i != 5).map(|i| format!("m{i}")).collect();
    assert_eq!(bodies, expected);
    assert!(!dir.path().join("commitlog.cut").exists());
}

#[test]
fn what_a_crashed_machine_left_behind_a_tear_is_cut_and_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let offsets = {
        let quiet = std::time::Duration::from_secs(3600);
        let store = open(store::StoreConfig { flush_interval_commit_log: quiet, ..config(dir.path()) });
        let mut offsets: Vec<u64> = (0..100).map(|i| put(&store, i).physical_offset).collect();
        offsets.push(store.max_physical_offset());
        store.abandon();
        offsets
    };
    forget_boot(dir.path());
    log_file(dir.path(), 0).write_all_at(&[0xEE; 40], offsets[5]).unwrap();
    let before = fs::read(dir.path().join(format!("commitlog/{:020}", 0))).unwrap();
    let store = open(config(dir.path()));
    assert_eq!(read_all(&store, "T", 0), numbered(0..5, "m"));
    let kept = fs::read_dir(dir.path().join("commitlog.cut")).unwrap().next().unwrap().unwrap().path();
    let kept = fs::read(kept.join(format!("{:020}", offsets[5]))).unwrap();
    let len = (offsets[100] - offsets[5]) as usize;
    assert_eq!(kept[..len], before[offsets[5] as usize..][..len]);
}

#[test]
fn a_flipped_property_is_found_by_the_checksum_over_the_record() {
    let dir = tempfile::tempdir().unwrap();
    let with_crc =
        |force| store::StoreConfig { append_prop_crc: true, force_verify_prop_crc: force, ..config(dir.path()) };
    let store = open(with_crc(true));
    let offsets: Vec<u64> = (0..20).map(|i| put(&store, i).physical_offset).collect();
    store.close();
    let store = open(with_crc(true));
    assert_eq!(read_all(&store, "T", 0), numbered(0..20, "m"), "what was written with it is accepted");
    store.close();
    // The A of TAGS, which the body's checksum does not cover.
    let file = log_file(dir.path(), 0);
    let mut record = vec![0; (offsets[6] - offsets[5]) as usize];
    file.read_exact_at(&mut record, offsets[5]).unwrap();
    let at = record.windows(4).position(|w| w == b"TAGS").unwrap() as u64 + 5;
    file.write_all_at(b"B", offsets[5] + at).unwrap();
    for force in [false, true] {
        fs::remove_dir_all(dir.path().join("consumequeue")).unwrap();
        let store = open(with_crc(force));
        let found = read_all(&store, "T", 0).len();
        assert_eq!(found, if force { 19 } else { 20 }, "forceVerifyPropCRC {force}");
        store.close();
    }
}

#[test]
fn records_without_a_checksum_of_the_whole_survive_the_day_it_is_forced() {
    let dir = tempfile::tempdir().unwrap();
    killed_store(dir.path(), 50);
    fs::remove_dir_all(dir.path().join("consumequeue")).unwrap();
    let store = open(store::StoreConfig { force_verify_prop_crc: true, ..config(dir.path()) });
    assert_eq!(read_all(&store, "T", 0), numbered(0..50, "m"));
}

#[test]
fn queues_are_rebuilt_when_they_are_missing_or_damaged() {
    let harms: [Harm; 6] = [
        ("all queues gone", |dir| fs::remove_dir_all(dir.join("consumequeue")).unwrap()),
        ("one queue gone", |dir| fs::remove_dir_all(dir.join("consumequeue/T/1")).unwrap()),
        ("a file gone", |dir| fs::remove_file(dir.join("consumequeue/T/1/00000000000000001000")).unwrap()),
        ("a file shortened", |dir| {
            let file = File::options().write(true).open(dir.join("consumequeue/T/1/00000000000000001000")).unwrap();
            file.set_len(77).unwrap();
        }),
        ("a stray file", |dir| fs::write(dir.join("consumequeue/T/1/notes.txt"), "x").unwrap()),
        ("a file emptied", |dir| {
            let file = File::options().write(true).open(dir.join("consumequeue/T/1/00000000000000002000")).unwrap();
            file.set_len(0).unwrap();
            file.set_len(1000).unwrap();
        }),
    ];
    for clean in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(config(dir.path()));
        for i in 0..250 {
            send(&store, "T", 0, &format!("a{i}"));
            send(&store, "T", 1, &format!("b{i}"));
        }
        if clean {
            store.close();
        } else {
            // The queue thread writes files every now and then; wait for one pass.
            let wanted = dir.path().join("consumequeue/T/1/00000000000000002000");
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
            while !wanted.exists() {
                assert!(std::time::Instant::now() < deadline, "units were not written");
                std::thread::yield_now();
            }
            store.abandon();
        }
        for (what, harm) in harms {
            let copy = tempfile::tempdir().unwrap();
            copy_dir(dir.path(), copy.path());
            harm(copy.path());
            let store = open(config(copy.path()));
            assert_eq!(read_all(&store, "T", 0), numbered(0..250, "a"), "{what}, clean {clean}");
            assert_eq!(read_all(&store, "T", 1), numbered(0..250, "b"), "{what}, clean {clean}");
            assert_eq!(send(&store, "T", 1, "b250").queue_offset, 250);
        }
    }
}

#[test]
fn a_damaged_checkpoint_costs_time_only() {
    let dir = tempfile::tempdir().unwrap();
    killed_store(dir.path(), 300);
    for bytes in [vec![], vec![0; 4096], vec![0xFF; 4096], b"short".to_vec()] {
        let copy = tempfile::tempdir().unwrap();
        copy_dir(dir.path(), copy.path());
        fs::write(copy.path().join("checkpoint"), &bytes).unwrap();
        let store = open(config(copy.path()));
        assert_eq!(read_all(&store, "T", 0), numbered(0..300, "m"));
    }
}

#[test]
fn the_index_is_built_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    for i in 0..300 {
        send_with(&store, "T", 0, &i.to_string(), &[("KEYS", &format!("k{i}"))]);
    }
    assert_eq!(store.query_key("T", "k299", 10, 0, i64::MAX).messages.len(), 1);
    store.close();
    let harms: [Harm; 3] = [
        ("folder gone", |index| fs::remove_dir_all(index).unwrap()),
        ("file of another size", |index| {
            let file = fs::read_dir(index).unwrap().next().unwrap().unwrap().path();
            File::options().write(true).open(file).unwrap().set_len(100).unwrap();
        }),
        ("garbage beside it", |index| fs::write(index.join("x.tmp"), "?").unwrap()),
    ];
    for (what, harm) in harms {
        let copy = tempfile::tempdir().unwrap();
        copy_dir(dir.path(), copy.path());
        harm(&copy.path().join("index"));
        let store = open(config(copy.path()));
        for i in [0, 150, 299] {
            let found = store.query_key("T", &format!("k{i}"), 10, 0, i64::MAX);
            assert_eq!(found.messages.len(), 1, "{what}: k{i}");
        }
    }
}

#[test]
fn a_crashed_machine_is_told_from_a_killed_process_and_loses_its_index_file_only_for_a_moment() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    for i in 0..50 {
        send_with(&store, "T", 0, &i.to_string(), &[("KEYS", &format!("k{i}"))]);
    }
    store.query_key("T", "k1", 1, 0, i64::MAX);
    store.abandon();
    // Our marks are gone, so nothing says that the machine lived on.
    fs::write(dir.path().join("checkpoint"), vec![0; 4096]).unwrap();
    let store = open(config(dir.path()));
    for i in 0..50 {
        assert_eq!(store.query_key("T", &format!("k{i}"), 10, 0, i64::MAX).messages.len(), 1, "k{i}");
    }
}

#[test]
fn an_empty_next_file_and_an_empty_last_name_are_tolerated() {
    let dir = tempfile::tempdir().unwrap();
    {
        let store = open(config(dir.path()));
        send(&store, "T", 0, "m0");
        store.close();
    }
    let next = dir.path().join(format!("commitlog/{:020}", 16 << 10));
    File::create(&next).unwrap().set_len(16 << 10).unwrap();
    File::create(dir.path().join(format!("commitlog/{:020}", 32 << 10))).unwrap();
    let store = open(config(dir.path()));
    assert_eq!(read_all(&store, "T", 0), numbered(0..1, "m"));
    for i in 1..400 {
        send(&store, "T", 0, &format!("m{i}"));
    }
    assert_eq!(read_all(&store, "T", 0), numbered(0..400, "m"));
}

#[test]
fn a_foreign_file_among_the_logs_is_named() {
    let dir = tempfile::tempdir().unwrap();
    killed_store(dir.path(), 1);
    fs::write(dir.path().join("commitlog/.DS_Store"), "x").unwrap();
    let error = store::Store::open(config(dir.path()), std::sync::Arc::new(()), Box::new(())).err().unwrap();
    assert!(error.to_string().contains(".DS_Store"), "{error}");
}

#[test]
fn without_a_log_the_queues_go() {
    let dir = tempfile::tempdir().unwrap();
    killed_store(dir.path(), 10);
    fs::remove_dir_all(dir.path().join("commitlog")).unwrap();
    let store = open(config(dir.path()));
    assert_eq!(store.max_offset("T", 0), 0);
    assert_eq!(send(&store, "T", 0, "new").queue_offset, 0);
}

#[test]
fn a_topic_that_was_deleted_and_made_again_begins_at_zero_also_after_a_rebuild() {
    let dir = tempfile::tempdir().unwrap();
    {
        let store = open(config(dir.path()));
        for i in 0..30 {
            send(&store, "T", 0, &format!("old{i}"));
        }
        assert!(store.delete_topic("T").unwrap());
        assert_eq!(store.max_offset("T", 0), 0);
        for i in 0..20 {
            assert_eq!(send(&store, "T", 0, &format!("new{i}")).queue_offset, i);
        }
        store.abandon();
    }
    fs::remove_dir_all(dir.path().join("consumequeue")).ok();
    let store = open(config(dir.path()));
    assert_eq!(read_all(&store, "T", 0), numbered(0..20, "new"));
}

/// A store of 30 messages, ten of them also in a light queue, that was stopped in order; then its units are damaged.
fn with_damaged_units(dir: &Path, queue: &str, damage: &[(u64, &[u8])]) -> StoreConfig {
    let settings = || StoreConfig { enable_lmq: true, enable_multi_dispatch: true, ..config(dir) };
    let store = open(settings());
    for i in 0..10 {
        send(&store, "T", 0, &format!("m{i}"));
        send(&store, "Other", 0, "other");
        send_with(&store, "Kept", 0, &format!("m{i}"), &[("INNER_MULTI_DISPATCH", "%LMQ%t")]);
    }
    store.close();
    let path = dir.join("consumequeue").join(queue).join("0/00000000000000000000");
    let file = fs::File::options().write(true).open(path).unwrap();
    for (at, bytes) in damage {
        file.write_all_at(bytes, *at).unwrap();
    }
    settings()
}

#[test]
fn a_damaged_unit_is_put_right_by_the_reader_that_meets_it() {
    let zeros: &[u8] = &[0; 20];
    let cases: [&[(u64, &[u8])]; 5] = [
        &[(60, zeros)],
        &[(60, zeros), (80, zeros), (100, zeros)],
        // A wrong place, a place behind the end, and a wrong size.
        &[(67, &[0xFF])],
        &[(62, &[0x7F])],
        &[(71, &[0x11])],
    ];
    for queue in ["T", "%LMQ%t"] {
        for damage in cases {
            let dir = tempfile::tempdir().unwrap();
            let settings = with_damaged_units(dir.path(), queue, damage);
            let store = open(settings.clone());
            assert_eq!(read_all(&store, queue, 0), numbered(0..10, "m"), "{queue} {damage:?}");
            store.close();
            let found = offline::OfflineStore::open(settings).unwrap().check().unwrap();
            assert!(found.is_clean(), "{queue} {damage:?}: {found:?}");
        }
    }
}

#[test]
fn a_unit_that_cannot_be_put_right_is_passed_over_by_every_reader() {
    let dir = tempfile::tempdir().unwrap();
    let settings = with_damaged_units(dir.path(), "T", &[(60, &[0; 20])]);
    // Its record is damaged, too.
    let log = dir.path().join("commitlog/00000000000000000000");
    let bytes = fs::read(&log).unwrap();
    let body = bytes.windows(2).position(|two| two == b"m3").unwrap();
    fs::File::options().write(true).open(log).unwrap().write_all_at(b"??", body as u64).unwrap();
    let store = open(settings);
    let rest: Vec<_> = numbered(0..10, "m").into_iter().filter(|(offset, _)| *offset != 3).collect();
    for _ in 0..2 {
        assert_eq!(read_all(&store, "T", 0), rest);
    }
    assert_eq!(store.units("T", 0, 0, 100).len(), 9, "and by the delivery of delayed messages");
    store.close();
}

#[test]
fn a_log_that_cannot_be_read_does_not_kill_the_process_that_looks_for_a_damaged_unit() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    for _ in 0..5 {
        send(&store, "T", 0, &"x".repeat(3000));
    }
    store.close();
    let unit = dir.path().join("consumequeue/T/0/00000000000000000000");
    File::options().write(true).open(unit).unwrap().write_all_at(&[0; 20], 60).unwrap();
    let store = open(config(dir.path()));
    // To a mapping of it this is what a failing disk is: its pages are not to be had.
    log_file(dir.path(), 0).set_len(4096).unwrap();
    let offsets: Vec<i64> = store.units("T", 0, 0, 100).iter().map(|unit| unit.queue_offset).collect();
    assert_eq!(offsets, [0, 1, 2, 4]);
    store.abandon();
}
