//! Compacted topics: what readers see, what rounds leave, and what crashes and damage do to the files.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use protocol::record::{RecordView, properties};
use store::*;
use support::*;

/// Topics whose names begin with C are compacted.
struct Kinds;

impl TopicKinds for Kinds {
    fn is_compaction(&self, topic: &str) -> bool {
        topic.starts_with('C')
    }
}

/// Ten units a file, and a log of 2760 bytes, which holds more messages than that.
fn small(root: &Path) -> StoreConfig {
    StoreConfig { compaction_queue_file_size: 46 * 10, compaction_file_size: 2300, ..config(root) }
}

fn open_small(root: &Path) -> Arc<Store> {
    open_with(small(root))
}

fn open_with(config: StoreConfig) -> Arc<Store> {
    Store::open(config, Arc::new(Kinds), Box::new(())).unwrap()
}

/// Sends bodies under keys `k0`, `k1`, …; offsets follow the order. Every ten are flushed.
fn send_keyed(store: &Store, range: std::ops::Range<i64>, keys: i64) {
    for i in range {
        let last = send_with(store, "C", 0, &format!("v{i}"), &[("KEYS", &format!("k{}", i % keys)), ("TAGS", "A")]);
        if i % 10 == 9 {
            flush(store, &last);
        }
    }
}

/// Some files of the commit log with messages of another topic, flushed.
fn fill_with_others(store: &Store) {
    let sent: Vec<_> = (0..200).map(|_| send(store, "Plain", 0, &"x".repeat(200))).collect();
    flush(store, sent.last().unwrap());
}

/// All messages a reader finds from an offset on: offset, key, body. The store's own range is not asked.
fn read_from(store: &Store, mut offset: i64) -> Vec<(i64, String, String)> {
    let mut all = Vec::new();
    loop {
        let got = store.get(&request("C", 0, offset));
        for record in &got.messages {
            let view = RecordView::parse(record).unwrap();
            assert!(view.body_crc_matches());
            let key = properties::get(view.properties, "KEYS").unwrap().to_owned();
            all.push((view.queue_offset, key, String::from_utf8_lossy(view.body).into_owned()));
        }
        if got.next_offset <= offset {
            return all;
        }
        offset = got.next_offset;
    }
}

fn offsets(messages: &[(i64, String, String)]) -> Vec<i64> {
    messages.iter().map(|(offset, ..)| *offset).collect()
}

fn names(dir: &Path) -> BTreeSet<String> {
    fs::read_dir(dir).map_or_else(
        |_| BTreeSet::new(),
        |entries| entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect(),
    )
}

fn log_dir(root: &Path) -> std::path::PathBuf {
    root.join("compaction/compactionLog/C/0")
}

fn queue_dir(root: &Path) -> std::path::PathBuf {
    root.join("compaction/compactionCq/C/0")
}

#[test]
fn a_round_leaves_the_last_message_of_each_key_and_no_offset_changes() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_small(dir.path());
    send_keyed(&store, 0..60, 5);
    assert_eq!(offsets(&read_from(&store, 0)), (0..60).collect::<Vec<_>>(), "everything before the first round");
    let last_file = names(&log_dir(dir.path())).last().unwrap().clone();

    let round = store.compact_now().unwrap();
    let left = offsets(&read_from(&store, 0));
    // Nine messages a file: one unit is the end mark's. The seventh file, with 54 to 59, is still written.
    assert_eq!(left, [49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59]);
    assert_eq!(round, CompactionRound { kept: 5, dropped: 49 });
    assert_eq!(names(&log_dir(dir.path())), BTreeSet::from(["00000000000000000000".into(), last_file.clone()]));
    assert_eq!(names(&queue_dir(dir.path())), BTreeSet::from(["00000000000000000000".into(), last_file]));
    let position = fs::read_to_string(dir.path().join("compaction/position-checkpoint")).unwrap();
    let position: serde_json::Value = serde_json::from_str(&position).unwrap();
    assert_eq!(position["queueOffsetMap"]["C_0"], 53);

    assert_eq!(store.compact_now().unwrap(), CompactionRound::default(), "nothing new, nothing to do");
    send_keyed(&store, 60..70, 5);
    store.close();
    let store = open_small(dir.path());
    assert_eq!(offsets(&read_from(&store, 0)), (49..70).collect::<Vec<_>>());
    store.compact_now().unwrap();
    assert_eq!(offsets(&read_from(&store, 0)), (58..70).collect::<Vec<_>>());
}

#[test]
fn a_message_without_a_body_takes_its_key_away() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_small(dir.path());
    for (key, body) in [("a", "1"), ("b", "1"), ("a b", "1"), ("a", ""), ("c", "1")] {
        send_with(&store, "C", 0, body, &[("KEYS", key)]);
    }
    send_keyed(&store, 5..30, 1);
    store.compact_now().unwrap();
    let left = read_from(&store, 0);
    assert_eq!(offsets(&left)[..3], [1, 2, 4], "a is gone, b, \"a b\" and c are there");
}

#[test]
fn readers_get_java_s_answers() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_small(dir.path());
    let status = |offset| {
        let got = store.get(&request("C", 0, offset));
        (got.status, got.next_offset, got.messages.len(), got.min_offset, got.max_offset)
    };
    assert_eq!(status(0), (GetStatus::NoMatchedLogicQueue, 0, 0, 0, 0));
    send_keyed(&store, 0..60, 5);
    assert_eq!(status(61), (GetStatus::OffsetOverflowBadly, 0, 0, 0, 60), "back to the first message, as it is 0");
    store.compact_now().unwrap();
    assert_eq!(status(0), (GetStatus::Found, 60, 11, 49, 60), "below the first one is no error");
    assert_eq!(status(51), (GetStatus::Found, 60, 9, 49, 60));
    assert_eq!(status(60), (GetStatus::OffsetOverflowOne, 60, 0, 49, 60));
    assert_eq!(status(61), (GetStatus::OffsetOverflowBadly, 60, 0, 49, 60));

    struct Nothing;
    impl RecordFilter for Nothing {
        fn tags_code_matches(&self, _: i64) -> bool {
            false
        }
    }
    let got = store.get(&GetRequest { filter: Some(&Nothing), max_messages: 3, ..request("C", 0, 0) });
    assert_eq!((got.status, got.messages.len(), got.next_offset), (GetStatus::Found, 3, 52), "no filter is applied");
    let got = store.get(&GetRequest { max_bytes: 1, ..request("C", 0, 0) });
    assert_eq!((got.messages.len(), got.next_offset), (1, 50), "one message whatever its size");
    let got = store.get(&GetRequest { may_block: false, ..request("C", 0, 0) });
    assert!(got.cold && got.messages.is_empty());
    let got = store.get(&GetRequest { may_block: false, ..request("C", 0, 60) });
    assert_eq!((got.cold, got.status), (false, GetStatus::OffsetOverflowOne), "a reader at the end can be parked");
}

#[test]
fn what_retention_takes_from_the_commit_log_stays_readable() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_with(StoreConfig { file_reserved_time: Duration::ZERO, ..small(dir.path()) });
    send_keyed(&store, 0..60, 5);
    let sent: Vec<_> = (0..400).map(|i| send(&store, "Plain", 0, &format!("{i} {}", "x".repeat(200)))).collect();
    assert!(names(&log_dir(dir.path())).is_empty(), "nobody has read, so nothing was copied yet");
    flush(&store, sent.last().unwrap());
    while store.delete_expired_now() > 0 {}
    assert!(store.min_physical_offset() > 0 && store.min_offset("Plain", 0) > 0);
    assert_eq!(offsets(&read_from(&store, 0)), (0..60).collect::<Vec<_>>());
    assert_eq!((store.min_offset("C", 0), store.max_offset("C", 0)), (0, 60));
    store.compact_now().unwrap();
    assert_eq!((store.min_offset("C", 0), store.max_offset("C", 0)), (49, 60));
    let time = store.store_time_at("C", 0, 55);
    assert!(time > 0 && store.earliest_time("C", 0) <= time);
    assert_eq!(store.store_time_at("C", 0, 10), -1);
    let found = store.offset_by_time("C", 0, time, Boundary::Lower);
    assert_eq!(store.store_time_at("C", 0, found), time);
    assert_eq!(store.offset_by_time("C", 0, 0, Boundary::Lower), 49);
    assert_eq!(store.offset_by_time("C", 0, i64::MAX - 1, Boundary::Lower), 60);
    assert_eq!(store.offset_by_time("C", 0, i64::MAX - 1, Boundary::Upper), 59);

    assert_eq!(store.clean_expired_queues(&|_| false), 0, "its offsets must go on");
    store.close();
    // Even when the consume queue lost its end, or was thrown away to be built again.
    let units = dir.path().join("consumequeue/C/0");
    let cut = || {
        for name in names(&units) {
            fs::File::options()
                .write(true)
                .open(units.join(name))
                .unwrap()
                .write_all_at(&[0; 20 * 20], 20 * 30)
                .unwrap();
        }
    };
    for damage in [&cut as &dyn Fn(), &|| fs::remove_dir_all(&units).unwrap()] {
        let copy = tempfile::tempdir().unwrap();
        damage();
        copy_dir(dir.path(), copy.path());
        let store = open_small(copy.path());
        assert_eq!(offsets(&read_from(&store, 0)), (49..60).collect::<Vec<_>>());
        assert_eq!(store.max_offset("C", 0), 60);
        assert_eq!(send_with(&store, "C", 0, "v60", &[("KEYS", "k0")]).queue_offset, 60);
        assert_eq!(offsets(&read_from(&store, 0)), (49..61).collect::<Vec<_>>());
        store.close();
        let store = open_small(copy.path());
        assert_eq!(offsets(&read_from(&store, 0)), (49..61).collect::<Vec<_>>());
    }
}

/// Fails the syncs of compacted logs while it is told to.
#[derive(Default)]
struct FailsSyncs(AtomicBool);

impl Faults for FailsSyncs {
    fn before_sync(&self, path: &Path) -> io::Result<()> {
        let fails = self.0.load(Ordering::Acquire) && path.to_string_lossy().contains("compactionLog");
        if fails { Err(io::Error::other("no")) } else { Ok(()) }
    }
}

#[test]
fn a_failed_sync_keeps_the_commit_log_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Arc::new(FailsSyncs::default());
    let store = open_with(StoreConfig {
        file_reserved_time: Duration::ZERO,
        faults: Some(faults.clone()),
        ..small(dir.path())
    });
    send_keyed(&store, 0..60, 5);
    fill_with_others(&store);
    while store.delete_expired_now() > 0 {}
    store.compact_now().unwrap();
    send_keyed(&store, 60..63, 5);
    fill_with_others(&store);
    let (min, content) = (store.min_physical_offset(), read_from(&store, 0));
    faults.0.store(true, Ordering::Release);
    assert_eq!(store.delete_expired_now(), 0, "what is not safe elsewhere stays");
    assert_eq!(read_from(&store, 0), content, "also what only the compacted log has");
    faults.0.store(false, Ordering::Release);
    while store.delete_expired_now() > 0 {}
    assert!(store.min_physical_offset() > min);
    assert_eq!(read_from(&store, 0), content);
}

#[test]
fn messages_that_went_before_they_were_copied_hold_nothing_up() {
    let dir = tempfile::tempdir().unwrap();
    let expiring = StoreConfig { file_reserved_time: Duration::ZERO, ..small(dir.path()) };
    let store = open_with(StoreConfig { enable_compaction: false, ..expiring.clone() });
    send_keyed(&store, 0..20, 5);
    fill_with_others(&store);
    while store.delete_expired_now() > 0 {}
    assert_eq!((store.min_offset("C", 0), store.max_offset("C", 0)), (20, 20));
    store.close();
    let store = open_with(expiring);
    fill_with_others(&store);
    assert!(store.delete_expired_now() > 0, "retention goes on");
    assert_eq!(read_from(&store, 0), []);
    send_keyed(&store, 20..30, 5);
    assert_eq!(offsets(&read_from(&store, 0)), (20..30).collect::<Vec<_>>());
}

#[test]
fn a_deleted_topic_leaves_no_files_and_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_small(dir.path());
    send_keyed(&store, 0..60, 5);
    store.compact_now().unwrap();
    assert!(store.delete_topic("C").unwrap());
    assert!(!dir.path().join("compaction/compactionLog/C").exists());
    assert!(!dir.path().join("compaction/compactionCq/C").exists());
    let position = fs::read_to_string(dir.path().join("compaction/position-checkpoint")).unwrap();
    assert!(!position.contains("C_0"), "{position}");
    send_keyed(&store, 0..20, 3);
    assert_eq!(offsets(&read_from(&store, 0)), (0..20).collect::<Vec<_>>());
}

#[test]
fn what_java_left_of_a_deleted_topic_is_not_taken_for_the_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_small(dir.path());
    send_keyed(&store, 0..30, 5);
    store.compact_now().unwrap();
    let aside = dir.path().join("aside");
    copy_dir(&dir.path().join("compaction"), &aside);
    store.delete_topic("C").unwrap();
    std::thread::sleep(Duration::from_millis(2));
    send_keyed(&store, 0..40, 7);
    let new = read_from(&store, 0);
    store.close();
    fs::remove_dir_all(dir.path().join("compaction")).unwrap();
    copy_dir(&aside, &dir.path().join("compaction"));
    let store = open_small(dir.path());
    assert_eq!(read_from(&store, 0), new);
}

/// A store of 60 messages under 5 keys, compacted, closed; then 12 more that are not.
fn prepared(root: &Path) -> Vec<(i64, String, String)> {
    let store = open_small(root);
    send_keyed(&store, 0..60, 5);
    store.compact_now().unwrap();
    send_keyed(&store, 60..72, 5);
    let content = read_from(&store, 0);
    store.close();
    content
}

#[test]
fn a_torn_tail_is_copied_again() {
    let dir = tempfile::tempdir().unwrap();
    let content = prepared(dir.path());
    let last = names(&log_dir(dir.path())).last().unwrap().clone();
    // A lost sector of the log is zeros: the file was empty there.
    for (file, step, with) in [(log_dir(dir.path()).join(&last), 7, 0), (queue_dir(dir.path()).join(&last), 3, 0x5A)] {
        let whole = fs::read(&file).unwrap();
        let used = whole.iter().rposition(|b| *b != 0).unwrap() + 1;
        for cut in (0..used).step_by(step) {
            let torn = fs::File::options().write(true).open(&file).unwrap();
            torn.write_all_at(&vec![if cut % 2 == 0 { 0 } else { with }; used - cut], cut as u64).unwrap();
            let store = open_small(dir.path());
            assert_eq!(read_from(&store, 0), content, "{} cut at {cut}", file.display());
            store.close();
        }
    }
}

#[test]
fn missing_and_damaged_files_are_built_again_as_far_as_the_commit_log_goes() {
    let dir = tempfile::tempdir().unwrap();
    let content = prepared(dir.path());
    let check = |what: &str, damage: &dyn Fn(&Path)| {
        let copy = tempfile::tempdir().unwrap();
        copy_dir(dir.path(), copy.path());
        damage(copy.path());
        let store = open_small(copy.path());
        let mut found = read_from(&store, 0);
        while offsets(&found).last() != offsets(&content).last() {
            // The reader met the damage; the next one finds it repaired.
            found = read_from(&store, 0);
        }
        // What a round had dropped may be back, as the commit log still has it.
        for message in &content {
            assert!(found.contains(message), "{what}: {message:?} is missing");
        }
        assert!(offsets(&found).windows(2).all(|pair| pair[0] < pair[1]), "{what}");
        store.compact_now().unwrap();
        let again = read_from(&store, 0);
        let newest = |all: &[(i64, String, String)], key: &str| all.iter().rfind(|(_, k, _)| k == key).cloned();
        for key in ["k0", "k1", "k2", "k3", "k4"] {
            assert_eq!(newest(&again, key), newest(&content, key), "{what}");
        }
    };
    let first = "00000000000000000000";
    check("everything is gone", &|root| fs::remove_dir_all(root.join("compaction")).unwrap());
    check("the log is gone", &|root| fs::remove_dir_all(root.join("compaction/compactionLog")).unwrap());
    check("the queue is gone", &|root| fs::remove_dir_all(root.join("compaction/compactionCq")).unwrap());
    check("a file of the log is gone", &|root| fs::remove_file(log_dir(root).join(first)).unwrap());
    check("a file of the queue is gone", &|root| fs::remove_file(queue_dir(root).join(first)).unwrap());
    check("a record is damaged", &|root| {
        let file = fs::File::options().write(true).open(log_dir(root).join(first)).unwrap();
        file.write_all_at(&[0xFF; 30], 20).unwrap();
        fs::write(root.join("abort"), "1").unwrap();
    });
    check("units are damaged", &|root| {
        let file = fs::File::options().write(true).open(queue_dir(root).join(first)).unwrap();
        file.write_all_at(&[0x11; 60], 46).unwrap();
    });
    check("the positions are no JSON", &|root| fs::write(root.join("compaction/position-checkpoint"), "{").unwrap());
}

#[test]
fn damage_costs_only_the_damaged_message_where_the_commit_log_has_gone() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_with(StoreConfig { file_reserved_time: Duration::ZERO, ..small(dir.path()) });
    send_keyed(&store, 0..30, 30);
    fill_with_others(&store);
    while store.delete_expired_now() > 0 {}
    assert_eq!(offsets(&read_from(&store, 0)), (0..30).collect::<Vec<_>>());
    store.close();
    let files: Vec<String> = names(&log_dir(dir.path())).into_iter().collect();
    assert_eq!(files.len(), 4, "nine messages in a file");
    // The fifth message of the second file, and the second one of the last.
    let places = [(&files[1], 4, 13), (&files[3], 1, 28)];
    for ((file, unit, lost), with_unit) in places.into_iter().flat_map(|place| [(place, false), (place, true)]) {
        let copy = tempfile::tempdir().unwrap();
        copy_dir(dir.path(), copy.path());
        let units = fs::read(queue_dir(copy.path()).join(file)).unwrap();
        let place = u64::from_be_bytes(units[46 * unit..][..8].try_into().unwrap());
        let start: u64 = file.parse().unwrap();
        let log = fs::File::options().write(true).open(log_dir(copy.path()).join(file)).unwrap();
        log.write_all_at(&[0xEE; 20], place - start + 30).unwrap();
        if with_unit {
            // A unit before it as well, whose record is good.
            let queue = fs::File::options().write(true).open(queue_dir(copy.path()).join(file)).unwrap();
            queue.write_all_at(&[0x11; 46], 0).unwrap();
        }
        let left: Vec<i64> = (0..30).filter(|offset| *offset != lost).collect();
        let store = open_small(copy.path());
        // The reader that meets the damage gets what is before; the next one finds it left out.
        read_from(&store, 0);
        assert_eq!(offsets(&read_from(&store, 0)), left);
        store.compact_now().unwrap();
        assert_eq!(send_with(&store, "C", 0, "v30", &[("KEYS", "k0")]).queue_offset, 30);
        store.abandon();
        let store = open_small(copy.path());
        let left: Vec<i64> = left.into_iter().chain([30]).collect();
        assert_eq!(offsets(&read_from(&store, 0)), left, "also after a crash");
    }
}

#[test]
fn files_of_another_size_are_an_error_and_stay() {
    let dir = tempfile::tempdir().unwrap();
    prepared(dir.path());
    let before = names(&log_dir(dir.path()));
    let config = StoreConfig { compaction_file_size: 9200, ..small(dir.path()) };
    let error = Store::open(config, Arc::new(Kinds), Box::new(())).err().unwrap().to_string();
    assert!(error.contains("2760"), "{error}");
    assert_eq!(names(&log_dir(dir.path())), before);
}

/// Lets so many calls pass, then fails everything: a process that dies at that call.
struct DiesAt(AtomicI64);

impl DiesAt {
    fn step(&self) -> io::Result<()> {
        if self.0.fetch_sub(1, Ordering::AcqRel) > 0 { Ok(()) } else { Err(io::Error::other("dead")) }
    }
}

impl Faults for DiesAt {
    fn before_write(&self, path: &Path, _: u64, data: &[u8]) -> io::Result<usize> {
        if path.to_string_lossy().contains("compaction") {
            self.step()?;
        }
        Ok(data.len())
    }
    fn before_sync(&self, path: &Path) -> io::Result<()> {
        if path.to_string_lossy().contains("compaction") { self.step() } else { Ok(()) }
    }
    fn before_create(&self, path: &Path) -> io::Result<()> {
        if path.to_string_lossy().contains("compaction") { self.step() } else { Ok(()) }
    }
    fn before_change(&self, _: &Path) -> io::Result<()> {
        self.step()
    }
}

#[test]
fn a_crash_at_any_step_of_a_round_leaves_the_old_or_the_new_files() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_small(dir.path());
    send_keyed(&store, 0..60, 15);
    let old = read_from(&store, 0);
    store.close();
    let new: Vec<_> = old.iter().filter(|(offset, ..)| *offset >= 39).cloned().collect();
    let (mut was_old, mut was_new) = (0, 0);
    for step in 0.. {
        let copy = tempfile::tempdir().unwrap();
        copy_dir(dir.path(), copy.path());
        let faults = Arc::new(DiesAt(AtomicI64::new(i64::MAX)));
        let store = open_with(StoreConfig { faults: Some(faults.clone()), ..small(copy.path()) });
        read_from(&store, 0);
        faults.0.store(step, Ordering::Release);
        let result = store.compact_now();
        store.abandon();
        drop(store);
        let store = open_small(copy.path());
        let found = read_from(&store, 0);
        assert!(found == old || found == new, "step {step}: {:?}", offsets(&found));
        if found == old {
            was_old += 1
        } else {
            was_new += 1
        }
        store.compact_now().unwrap();
        assert_eq!(read_from(&store, 0), new, "step {step}, then a whole round");
        assert!(!log_dir(copy.path()).join("compacting").exists() && !log_dir(copy.path()).join("swap").exists());
        if result.is_ok() {
            break;
        }
    }
    assert!(was_old > 5 && was_new > 5, "{was_old} {was_new}");
}

#[test]
fn units_that_stay_unreadable_hold_up_neither_retention_nor_what_is_behind_them() {
    let dir = tempfile::tempdir().unwrap();
    let expiring = StoreConfig { file_reserved_time: Duration::ZERO, ..small(dir.path()) };
    let store = open_with(StoreConfig { enable_compaction: false, ..expiring.clone() });
    send_keyed(&store, 0..60, 60);
    fill_with_others(&store);
    store.close();
    drop(store);
    let units = dir.path().join("consumequeue/C/0/00000000000000000000");
    fs::File::options().write(true).open(units).unwrap().write_all_at(&[0; 20 * 5], 20 * 10).unwrap();
    let store = open_with(expiring);
    assert_eq!(store.delete_expired_now(), 0, "it may be readable later");
    for _ in 0..60 {
        store.compact_now().unwrap();
    }
    while store.delete_expired_now() > 0 {}
    assert!(store.min_physical_offset() > 0, "retention goes on");
    assert_eq!(offsets(&read_from(&store, 0)), (0..10).chain(15..60).collect::<Vec<_>>());
    assert_eq!(send_with(&store, "C", 0, "v60", &[("KEYS", "k0")]).queue_offset, 60);
    assert_eq!(offsets(&read_from(&store, 15)), (15..61).collect::<Vec<_>>());
}

/// Once: a sync of a compacted log fails, and what was not on the disk is gone.
#[derive(Default)]
struct LosesPages(AtomicBool);

impl Faults for LosesPages {
    fn before_sync(&self, path: &Path) -> io::Result<()> {
        let name = path.to_string_lossy();
        if !name.contains("compactionLog") || path.is_dir() || !self.0.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let file = fs::File::options().write(true).open(path)?;
        file.write_all_at(&vec![0; file.metadata()?.len() as usize], 0)?;
        Err(io::Error::other("no"))
    }
}

#[test]
fn what_was_copied_before_a_failed_sync_of_a_full_file_is_copied_again() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Arc::new(LosesPages::default());
    let expiring = StoreConfig { file_reserved_time: Duration::ZERO, ..small(dir.path()) };
    let store = open_with(StoreConfig { faults: Some(faults.clone()), ..expiring });
    send_keyed(&store, 0..60, 60);
    fill_with_others(&store);
    store.get(&GetRequest { max_messages: 5, ..request("C", 0, 0) });
    faults.0.store(true, Ordering::Release);
    while faults.0.load(Ordering::Acquire) {
        // It makes the log follow, but reads nothing.
        store.get(&request("C", 0, 60));
    }
    while store.delete_expired_now() > 0 {}
    assert_eq!(offsets(&read_from(&store, 0)), (0..60).collect::<Vec<_>>());
}

/// A disk on which each write into a compacted log takes its time.
struct SlowWrites(Duration);

impl Faults for SlowWrites {
    fn before_write(&self, path: &Path, _: u64, data: &[u8]) -> io::Result<usize> {
        if path.to_string_lossy().contains("compactionLog") {
            std::thread::sleep(self.0);
        }
        Ok(data.len())
    }
}

#[test]
fn a_stop_does_not_wait_for_all_that_is_left_to_copy() {
    let dir = tempfile::tempdir().unwrap();
    let slow = Arc::new(SlowWrites(Duration::from_millis(150)));
    let store = open_with(StoreConfig { faults: Some(slow), ..small(dir.path()) });
    send_keyed(&store, 0..1000, 1000);
    let begin = std::time::Instant::now();
    // All of it takes sixteen seconds.
    store.close();
    assert!(begin.elapsed() < Duration::from_secs(11), "{:?}", begin.elapsed());
    drop(store);
    assert!(names(&log_dir(dir.path())).len() < 100, "not all was copied");
    let store = open_small(dir.path());
    assert_eq!(offsets(&read_from(&store, 0)), (0..1000).collect::<Vec<_>>());
}

/// C is compacted from some time on.
struct Later(AtomicBool);

impl TopicKinds for Later {
    fn is_compaction(&self, topic: &str) -> bool {
        topic == "C" && self.0.load(Ordering::Acquire)
    }
}

#[test]
fn a_topic_that_becomes_a_compaction_topic_is_compacted_without_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let kinds = Arc::new(Later(AtomicBool::new(false)));
    let store = Store::open(small(dir.path()), kinds.clone(), Box::new(())).unwrap();
    send_keyed(&store, 0..60, 5);
    assert_eq!(offsets(&read_from(&store, 0)), (0..60).collect::<Vec<_>>());
    assert_eq!(store.compact_now().unwrap(), CompactionRound::default());
    kinds.0.store(true, Ordering::Release);
    store.topic_changed("C").unwrap();
    assert_eq!(store.compact_now().unwrap(), CompactionRound { kept: 5, dropped: 49 });
    assert_eq!(offsets(&read_from(&store, 0)), (49..60).collect::<Vec<_>>());
}
