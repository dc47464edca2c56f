//! The tools for stopped stores: what they find, show and build, and that they leave alone what they only look at.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use store::offline::*;
use store::*;
use support::*;

/// Two queues of T with 200 messages each, keys and tags, over several files of each type; returns the places of queue 0's.
fn filled(dir: &Path) -> Vec<u64> {
    let store = open(config(dir));
    let mut places = Vec::new();
    for i in 0..200 {
        let key = format!("k{i}");
        places.push(send_with(&store, "T", 0, &format!("m{i}"), &[("TAGS", "A"), ("KEYS", &key)]).physical_offset);
        send_with(&store, "T", 1, &format!("n{i}"), &[("KEYS", "all")]);
    }
    store.close();
    places
}

fn check(dir: &Path) -> Findings {
    OfflineStore::open(config(dir)).unwrap().check().unwrap()
}

/// Kinds with their counts and remedies.
fn kinds(found: &Findings) -> Vec<(&'static str, u64, Remedy)> {
    found.first_of_each_kind().map(|(first, count)| (first.kind, count, first.remedy)).collect()
}

fn patch(dir: &Path, file: &str, at: u64, bytes: &[u8]) {
    File::options().write(true).open(dir.join(file)).unwrap().write_all_at(bytes, at).unwrap();
}

/// File and byte of a commit log offset.
fn in_log(offset: u64) -> (String, u64) {
    let start = offset - offset % (16 << 10);
    (format!("commitlog/{start:020}"), offset - start)
}

/// Every file with its bytes and time of change.
fn tree(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.insert(path.clone(), (Vec::new(), path.metadata().unwrap().modified().unwrap()));
            all.extend(tree(&path));
        } else {
            all.insert(path.clone(), (fs::read(&path).unwrap(), path.metadata().unwrap().modified().unwrap()));
        }
    }
    all
}

fn dump(dir: &Path, selection: &Selection) -> Vec<String> {
    let mut lines = Vec::new();
    let store = OfflineStore::open(config(dir)).unwrap();
    store
        .dump(selection, &mut |dumped| {
            lines.push(match dumped {
                Dumped::Record(r) => String::from_utf8_lossy(r.body).into_owned(),
                Dumped::Damage(d) => format!("damage at {}, next {:?}", d.offset, d.next),
            });
            Ok(())
        })
        .unwrap();
    lines
}

#[test]
fn a_good_store_has_no_faults_and_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    fs::create_dir(dir.path().join("config")).unwrap();
    fs::write(dir.path().join("config/consumerOffset.json"), "{\"offsetTable\":{\"T@g\":{0:12,1:9}}}").unwrap();
    let before = tree(dir.path());
    let found = check(dir.path());
    assert_eq!(kinds(&found), []);
    let totals = found.totals;
    assert_eq!((totals.records, totals.queues, totals.units, totals.config_files), (400, 2, 400, 1));
    assert_eq!(totals.index_entries, 600, "keys of both queues, tags of one");
    dump(dir.path(), &Selection::Offsets { from: 0, to: u64::MAX });
    dump(dir.path(), &Selection::Queue { topic: "T".into(), queue: 0, from: 0, max: 9 });
    dump(dir.path(), &Selection::Key { topic: "T".into(), key: "all".into() });
    assert_eq!(tree(dir.path()), before);
}

#[test]
fn a_killed_store_is_repaired_by_the_next_start_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    for i in 0..100 {
        send(&store, "T", 0, &format!("m{i}"));
    }
    let end = store.max_physical_offset();
    store.abandon();
    // The last record is torn.
    let (file, at) = in_log(end - 20);
    patch(dir.path(), &file, at, &[0; 20]);
    let found = check(dir.path());
    assert!(found.first_of_each_kind().any(|(first, _)| first.kind == "torn end of the commit log"));
    for (kind, _, remedy) in kinds(&found) {
        assert_eq!(remedy, Remedy::NextStart, "{kind}");
    }
    open(config(dir.path())).close();
    assert_eq!(kinds(&check(dir.path())), []);
}

#[test]
fn a_running_store_is_refused_and_a_look_keeps_a_start_away() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    assert!(matches!(OfflineStore::open(config(dir.path())), Err(OpenError::Locked(_))));
    assert!(matches!(rebuild(&config(dir.path()), true), Err(OpenError::Locked(_))));
    store.close();
    let look = OfflineStore::open(config(dir.path())).unwrap();
    let start = Store::open(config(dir.path()), std::sync::Arc::new(()), Box::new(()));
    assert!(matches!(start, Err(OpenError::Locked(_))));
    drop(look);
    open(config(dir.path())).close();
}

/// A harm, and the fault it must be found as.
type Harm<'a> = (&'a dyn Fn(&Path), &'static str, u64, Remedy);

#[test]
fn each_fault_is_found_with_its_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let places = filled(dir.path());
    let second = "consumequeue/T/1/00000000000000001000";
    let index = fs::read_dir(dir.path().join("index")).unwrap().next().unwrap().unwrap().file_name();
    let index = format!("index/{}", index.to_str().unwrap());
    let entries = 40 + 500 * 4;
    let (record, at) = in_log(places[9]);
    let harms: [Harm<'_>; 21] = [
        (&|d| patch(d, &record, at + 88, b"X"), "damage in the commit log", 1, Remedy::Lost),
        (&|d| patch(d, &record, at + 35, b"X"), "damage in the commit log", 1, Remedy::Lost),
        (&|d| patch(d, &record, at + 4, &[0; 4]), "damage in the commit log", 1, Remedy::Lost),
        (&|d| fs::remove_file(d.join(in_log(16 << 10).0)).unwrap(), "missing commit log file", 1, Remedy::Lost),
        (
            &|d| fs::write(d.join("commitlog/note.txt"), "x").unwrap(),
            "foreign file among the commit log",
            1,
            Remedy::ByHand,
        ),
        (&|d| shorten(&d.join(in_log(0).0)), "commit log file of another size", 1, Remedy::ByHand),
        (&|d| patch(d, second, 7, &[1]), "unit that points to no record", 1, Remedy::Rebuild),
        (&|d| patch(d, second, 8, &[0, 0, 0, 1]), "unit with a wrong size", 1, Remedy::Rebuild),
        (&|d| patch(d, second, 19, &[1]), "unit with a wrong tags code", 1, Remedy::Rebuild),
        (&|d| patch(d, second, 0, &places[50].to_be_bytes()), "unit of another queue's record", 1, Remedy::Rebuild),
        (&|d| patch(d, second, 8, &[0; 4]), "hole in a consume queue", 1, Remedy::Rebuild),
        (
            &|d| patch(d, "consumequeue/T/1/00000000000000003000", 980, &[0; 20]),
            "units missing at the end of a consume queue",
            1,
            Remedy::Rebuild,
        ),
        (
            &|d| fs::remove_file(d.join("consumequeue/T/1/00000000000000000000")).unwrap(),
            "units missing at the beginning of a consume queue",
            1,
            Remedy::Rebuild,
        ),
        (&|d| fs::remove_file(d.join(second)).unwrap(), "consume queue that cannot be loaded", 1, Remedy::NextStart),
        (&|d| fs::remove_dir_all(d.join("consumequeue/T/1")).unwrap(), "missing consume queue", 1, Remedy::NextStart),
        (&|d| patch(d, &index, entries + 20 + 16, &[9]), "broken chain in an index file", 1, Remedy::Rebuild),
        (
            &|d| patch(d, &index, entries + 20 + 4, &places[50].to_be_bytes()),
            "index entry without its message",
            1,
            Remedy::Rebuild,
        ),
        (&|d| shorten(&d.join(&index)), "index file that cannot be loaded", 1, Remedy::NextStart),
        (&|d| patch(d, "checkpoint", 1024 + 20, &[0xAA]), "damaged marks in the checkpoint", 1, Remedy::NextStart),
        (&|d| patch(d, "checkpoint", 0, &[0x7F]), "time in the checkpoint", 1, Remedy::NextStart),
        (&|d| fs::remove_file(d.join("checkpoint")).unwrap(), "checkpoint that cannot be read", 1, Remedy::NextStart),
    ];
    for (harm, kind, count, remedy) in harms {
        let copy = tempfile::tempdir().unwrap();
        copy_dir(dir.path(), copy.path());
        harm(copy.path());
        let found = kinds(&check(copy.path()));
        assert!(found.contains(&(kind, count, remedy)), "expected {kind}, found {found:?}");
    }
}

fn shorten(path: &Path) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() - 100).unwrap();
}

#[test]
fn faults_say_where_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let places = filled(dir.path());
    let (file, at) = in_log(places[9]);
    patch(dir.path(), &file, at + 88, b"X");
    let found = check(dir.path());
    let (first, _) = found.first_of_each_kind().find(|(f, _)| f.kind == "damage in the commit log").unwrap();
    assert_eq!((first.path.clone(), first.position, first.offset), (dir.path().join(file), at, Some(places[9])));
    assert!(first.what.contains("CRC"), "{}", first.what);
}

#[test]
fn tables_are_read_as_the_broker_reads_them() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let tables = dir.path().join("config");
    fs::create_dir(&tables).unwrap();
    let cases = [
        (Some("{\"a\":{0:1}}"), Some("{}"), None),
        (Some("{\"a\""), Some("{}"), Some(Remedy::NextStart)),
        (Some("{\"a\""), None, Some(Remedy::Lost)),
        (Some("{\"a\""), Some("]"), Some(Remedy::ByHand)),
        (None, Some("]"), Some(Remedy::ByHand)),
        (Some("{}"), Some("]"), Some(Remedy::NextStart)),
        (Some(""), Some("{}"), None),
    ];
    for (main, backup, remedy) in cases {
        for (name, text) in [("topics.json", main), ("topics.json.bak", backup)] {
            match text {
                Some(text) => fs::write(tables.join(name), text).unwrap(),
                None => drop(fs::remove_file(tables.join(name))),
            }
        }
        let found: Vec<Remedy> = kinds(&check(dir.path())).into_iter().map(|(_, _, remedy)| remedy).collect();
        assert_eq!(found, Vec::from_iter(remedy), "{main:?} {backup:?}");
    }
}

#[test]
fn records_are_shown_by_offset_queue_and_key() {
    let dir = tempfile::tempdir().unwrap();
    let places = filled(dir.path());
    let all = dump(dir.path(), &Selection::Offsets { from: 0, to: u64::MAX });
    assert_eq!(all.len(), 400);
    assert_eq!(all[..4], ["m0", "n0", "m1", "n1"]);
    let some = dump(dir.path(), &Selection::Offsets { from: places[5], to: places[6] });
    assert_eq!(some, ["m5", "n5"]);
    let queue = |from, max| dump(dir.path(), &Selection::Queue { topic: "T".into(), queue: 1, from, max });
    assert_eq!(queue(198, 10), ["n198", "n199"]);
    assert_eq!(queue(49, 3), ["n49", "n50", "n51"], "over the border of two files");
    assert_eq!(queue(0, u64::MAX).len(), 200);
    let key = |key: &str| dump(dir.path(), &Selection::Key { topic: "T".into(), key: key.into() });
    assert_eq!(key("k77"), ["m77"]);
    assert_eq!(key("all").len(), 200);
    assert_eq!(key("none").len(), 0);
}

#[test]
fn a_dump_goes_on_behind_damage() {
    let dir = tempfile::tempdir().unwrap();
    let places = filled(dir.path());
    let (file, at) = in_log(places[5]);
    patch(dir.path(), &file, at, &[0xEE; 60]);
    let shown = dump(dir.path(), &Selection::Offsets { from: places[4], to: places[7] });
    let next = places[5] + (places[6] - places[5]) / 2;
    assert_eq!(shown[..2], ["m4", "n4"]);
    assert!(shown[2].starts_with(&format!("damage at {}, next Some(", places[5])), "{shown:?} {next}");
    assert_eq!(shown[3..], ["n5", "m6", "n6"]);
    let queue = dump(dir.path(), &Selection::Queue { topic: "T".into(), queue: 0, from: 4, max: 3 });
    assert_eq!(queue, ["m4", &format!("damage at {}, next None", places[5]), "m6"]);
    // An offset in the middle of a record begins with the damage it is.
    let middle = dump(dir.path(), &Selection::Offsets { from: places[100] + 1, to: places[101] });
    assert_eq!(middle.len(), 2, "{middle:?}");
    assert_eq!(middle[1], "n100");
}

#[test]
fn queues_and_index_are_built_again() {
    let harms: [&dyn Fn(&Path); 4] = [
        &|_| {},
        &|d| patch(d, "consumequeue/T/0/00000000000000001000", 3, &[0xFF; 300]),
        &|d| fs::remove_dir_all(d.join("index")).unwrap(),
        // What a rebuild that died left behind.
        &|d| {
            fs::create_dir_all(d.join("rebuild.tmp/consumequeue/T/0")).unwrap();
            fs::remove_dir_all(d.join("consumequeue")).unwrap();
        },
    ];
    for (i, harm) in harms.iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        filled(dir.path());
        harm(dir.path());
        let keep = i % 2 == 0;
        let rebuilt = rebuild(&config(dir.path()), keep).unwrap();
        assert_eq!((rebuilt.queues, rebuilt.units, rebuilt.index_entries), (2, 400, 600), "harm {i}");
        assert_eq!(rebuilt.kept.is_some_and(|kept| kept.is_dir()), keep);
        assert!(!dir.path().join("rebuild.tmp").exists() && !dir.path().join("abort").exists());
        assert_eq!(kinds(&check(dir.path())), [], "harm {i}");
        let store = open(config(dir.path()));
        assert_eq!(read_all(&store, "T", 0), numbered(0..200, "m"));
        assert_eq!(read_all(&store, "T", 1), numbered(0..200, "n"));
        assert_eq!(store.query_key("T", "k150", 5, 0, i64::MAX).messages.len(), 1);
        assert_eq!(send(&store, "T", 0, "m200").queue_offset, 200);
    }
}

#[test]
fn a_killed_store_is_recovered_by_a_rebuild() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    let places: Vec<u64> = (0..100).map(|i| send(&store, "T", 0, &format!("m{i}")).physical_offset).collect();
    store.abandon();
    let (file, at) = in_log(places[40]);
    patch(dir.path(), &file, at, &[0xEE; 30]);
    let rebuilt = rebuild(&config(dir.path()), false).unwrap();
    assert_eq!(rebuilt.units, 100, "the place of the damaged one is empty");
    let store = open(config(dir.path()));
    assert_eq!(store.max_offset("T", 0), 100);
    let expected: Vec<_> = numbered(0..100, "m").into_iter().filter(|(offset, _)| *offset != 40).collect();
    assert_eq!(read_all(&store, "T", 0), expected);
}

#[test]
fn what_a_rebuild_cuts_off_the_commit_log_is_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let quiet = std::time::Duration::from_secs(3600);
    let store = open(StoreConfig { flush_interval_commit_log: quiet, ..config(dir.path()) });
    let places: Vec<u64> = (0..50).map(|i| send(&store, "T", 0, &format!("m{i}")).physical_offset).collect();
    let end = store.max_physical_offset();
    store.abandon();
    forget_boot(dir.path());
    patch(dir.path(), &in_log(0).0, places[5], &[0xEE; 40]);
    let before = fs::read(dir.path().join(in_log(0).0)).unwrap();
    assert!(end < before.len() as u64);
    assert_eq!(rebuild(&config(dir.path()), false).unwrap().units, 5);
    let kept = fs::read_dir(dir.path().join("commitlog.cut")).unwrap().next().unwrap().unwrap().path();
    let kept = fs::read(kept.join(format!("{:020}", places[5]))).unwrap();
    assert_eq!(kept[..(end - places[5]) as usize], before[places[5] as usize..end as usize]);
}

/// A store with a batch topic, a plain topic with an extension, and light queues.
fn filled_in_all_kinds(dir: &Path) -> StoreConfig {
    let config = StoreConfig {
        enable_consume_queue_ext: true,
        consume_queue_ext_file_size: 1000,
        enable_lmq: true,
        enable_multi_dispatch: true,
        ..config(dir)
    };
    fs::create_dir_all(dir.join("config")).unwrap();
    let topics = r#"{"dataVersion":{},"topicConfigTable":{"T":{"topicName":"T"},
        "BatchT":{"topicName":"BatchT","attributes":{"queue.type":"BatchCQ"}}}}"#;
    fs::write(dir.join("config/topics.json"), topics).unwrap();
    let store = open_batch(config.clone());
    for i in 0..100 {
        let tag = if i % 2 == 0 { "A" } else { "B" };
        send_with(&store, "T", 0, &format!("m{i}"), &[("TAGS", tag), ("INNER_MULTI_DISPATCH", "%LMQ%a")]);
        send_inner(&store, "BatchT", 0, &format!("b{i}"), 3);
    }
    store.close();
    config
}

#[test]
fn queues_of_all_kinds_are_checked_shown_and_built_again() {
    let dir = tempfile::tempdir().unwrap();
    let config = filled_in_all_kinds(dir.path());
    let look = || OfflineStore::open(config.clone()).unwrap();
    let found = look().check().unwrap();
    assert_eq!((kinds(&found), found.totals.queues, found.totals.units), (vec![], 3, 300));
    let show = |topic: &str, from| {
        let selection = Selection::Queue { topic: topic.into(), queue: 0, from, max: 2 };
        dump(dir.path(), &selection)
    };
    assert_eq!(show("BatchT", 100), ["b33", "b34"], "from the record that holds the offset");
    assert_eq!(show("%LMQ%a", 7), ["m7", "m8"]);

    for harm in ["batchconsumequeue", "consumequeue_ext", "nothing"] {
        match harm {
            // The count of messages in the sixth unit.
            "batchconsumequeue" => {
                patch(dir.path(), "batchconsumequeue/BatchT/0/00000000000000000000", 5 * 46 + 37, &[9])
            }
            "consumequeue_ext" => fs::remove_dir_all(dir.path().join(harm)).unwrap(),
            _ => {}
        }
        let found = look().check().unwrap();
        let faults = kinds(&found);
        assert_eq!(
            faults.first().map(|fault| fault.0),
            match harm {
                "batchconsumequeue" => Some("unit with a wrong number of messages"),
                "consumequeue_ext" => Some("unit without its extension"),
                _ => None,
            }
        );
        let rebuilt = rebuild(&config, false).unwrap();
        assert_eq!((rebuilt.queues, rebuilt.units), (3, 500), "{harm}");
        assert_eq!(kinds(&look().check().unwrap()), [], "{harm}");
        let store = open_batch(config.clone());
        let tags: Vec<i64> = store.units("T", 0, 0, 100).iter().map(|unit| unit.tags_code).collect();
        assert_eq!(tags, (0..100).map(|i| 65 + i % 2).collect::<Vec<i64>>(), "{harm}: the hashes of A and B");
        assert_eq!(store.units("BatchT", 0, 0, 1000).len(), 100);
        assert_eq!(read_all(&store, "%LMQ%a", 0), numbered(0..100, "m"));
        store.close();
    }
}

#[test]
fn a_queue_of_another_kind_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let config = filled_in_all_kinds(dir.path());
    fs::write(dir.path().join("config/topics.json"), r#"{"topicConfigTable":{"T":{},"BatchT":{}}}"#).unwrap();
    let found = OfflineStore::open(config).unwrap().check().unwrap();
    assert!(kinds(&found).contains(&("consume queue of another kind", 1, Remedy::ByHand)), "{:?}", kinds(&found));
}

/// Batch topic B, compacted topic C, and the extension of T's queue.
fn all_kinds(dir: &Path) -> StoreConfig {
    fs::create_dir_all(dir.join("config")).unwrap();
    let topics = r#"{"topicConfigTable":{
        "B":{"topicName":"B","attributes":{"queue.type":"BatchCQ"}},
        "C":{"topicName":"C","attributes":{"cleanup.policy":"COMPACTION"}},
        "T":{"topicName":"T"}}}"#;
    fs::write(dir.join("config/topics.json"), topics).unwrap();
    let config = StoreConfig {
        batch_consume_queue_file_size: 46 * 10,
        enable_consume_queue_ext: true,
        consume_queue_ext_file_size: 1000,
        compaction_queue_file_size: 46 * 10,
        compaction_file_size: 2300,
        ..config(dir)
    };
    let store = open_known(&config);
    for i in 0..60 {
        send_inner(&store, "B", 0, &format!("b{i}"), 1 + i % 4);
        send_with(&store, "C", 0, &format!("c{i}"), &[("KEYS", &format!("k{}", i % 7))]);
        send_with(&store, "T", 0, &format!("t{i}"), &[("TAGS", "A")]);
    }
    // A reader makes the compacted log follow.
    assert!(!read_all(&store, "C", 0).is_empty());
    store.close();
    config
}

fn open_known(config: &StoreConfig) -> std::sync::Arc<Store> {
    let topics = std::sync::Arc::new(KnownTopics::read(&config.root));
    Store::open(config.clone(), topics, Box::new(())).unwrap()
}

#[test]
fn compacted_logs_are_checked_and_stay_when_the_rest_is_built_again() {
    let dir = tempfile::tempdir().unwrap();
    let config = all_kinds(dir.path());
    let check = || OfflineStore::open(config.clone()).unwrap().check().unwrap();
    let found = check();
    assert_eq!(kinds(&found), []);
    assert_eq!((found.totals.queues, found.totals.units), (3, 180));
    assert!(found.totals.compacted > 0);
    let mut shown = Vec::new();
    let selection = Selection::Queue { topic: "B".into(), queue: 0, from: 2, max: 3 };
    let line = &mut |dumped: Dumped<'_>| match dumped {
        Dumped::Record(record) => {
            shown.push(String::from_utf8_lossy(record.body).into_owned());
            Ok(())
        }
        Dumped::Damage(damage) => Err(std::io::Error::other(damage.reason.clone())),
    };
    OfflineStore::open(config.clone()).unwrap().dump(&selection, line).unwrap();
    assert_eq!(shown, ["b1", "b2", "b3"], "number 2 is in the second record");

    patch(dir.path(), "batchconsumequeue/B/0/00000000000000000000", 46 + 36, &[0, 9]);
    patch(dir.path(), "consumequeue_ext/T/0/00000000000000000000", 9, &[0x55]);
    let found = check();
    assert!(
        kinds(&found).contains(&("unit with a wrong number of messages", 1, Remedy::Rebuild)),
        "{:?}",
        kinds(&found)
    );
    assert!(kinds(&found).contains(&("unit without its extension", 1, Remedy::Rebuild)), "{:?}", kinds(&found));
    let rebuilt = rebuild(&config, false).unwrap();
    assert_eq!((rebuilt.queues, rebuilt.log_end), (3, found.totals.log_end));
    assert_eq!(kinds(&check()), []);

    patch(dir.path(), "compaction/compactionLog/C/0/00000000000000000000", 90, &[0x55]);
    assert_eq!(kinds(&check()), [("damage in a compacted log", 1, Remedy::NextStart)]);
    let store = open_known(&config);
    assert!(!read_all(&store, "C", 0).is_empty());
    store.close();
    let topics = fs::read_to_string(dir.path().join("config/topics.json")).unwrap();
    fs::write(dir.path().join("config/topics.json"), topics.replace("BatchCQ", "SimpleCQ")).unwrap();
    assert!(kinds(&check()).contains(&("consume queue of another kind", 1, Remedy::ByHand)));
}
