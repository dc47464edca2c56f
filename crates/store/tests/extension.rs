//! The extension of consume queues: tags codes live in files of their own.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use protocol::record::java_hash;
use store::*;
use support::*;

struct Tag(&'static str);

impl RecordFilter for Tag {
    fn tags_code_matches(&self, tags_code: i64) -> bool {
        tags_code == i64::from(java_hash(self.0))
    }
}

fn with_ext(dir: &Path, on: bool) -> StoreConfig {
    StoreConfig { enable_consume_queue_ext: on, consume_queue_ext_file_size: 1000, ..config(dir) }
}

/// Sends messages with tags A, B, C, A, …
fn fill(store: &Store, range: std::ops::Range<i64>) {
    for i in range {
        let tag = ["A", "B", "C"][i as usize % 3];
        send_with(store, "T", 0, &format!("m{i}"), &[("TAGS", tag)]);
    }
}

/// What a subscription to one tag gets of `range`.
fn check(store: &Store, range: std::ops::Range<i64>, when: &str) {
    assert_eq!((store.min_offset("T", 0), store.max_offset("T", 0)), (range.start, range.end), "{when}");
    let mut offset = range.start;
    let mut found = Vec::new();
    while offset < range.end {
        let got = store.get(&GetRequest { filter: Some(&Tag("B")), ..request("T", 0, offset) });
        found.extend(got.messages.iter().map(|r| protocol::record::RecordView::parse(r).unwrap().queue_offset));
        assert!(got.next_offset > offset, "{when}: {:?} at {offset}", got.status);
        offset = got.next_offset;
    }
    let expected: Vec<i64> = range.clone().filter(|i| i % 3 == 1).collect();
    assert_eq!(found, expected, "{when}");
    let codes = store.units("T", 0, range.start, 1 << 20);
    let hash = |i: i64| i64::from(java_hash(["A", "B", "C"][i as usize % 3]));
    assert!(codes.iter().zip(range).all(|(unit, i)| unit.tags_code == hash(i)), "{when}");
}

fn ext_files(dir: &Path) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(dir.join("consumequeue_ext/T/0")) else { return Vec::new() };
    let mut names: Vec<u64> = entries.map(|e| e.unwrap().file_name().into_string().unwrap().parse().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn filters_see_the_real_tags_after_each_kind_of_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut sent = 0;
    for end in ["stop", "kill", "machine", "lost extension", "lost queue", "switched off", "on again"] {
        let store = open(with_ext(dir.path(), end != "switched off"));
        if sent > 0 {
            check(&store, 0..sent, &format!("before {end}"));
        }
        fill(&store, sent..sent + 130);
        sent += 130;
        check(&store, 0..sent, &format!("in {end}"));
        if end.contains("kill") {
            store.abandon()
        } else {
            store.close()
        }
        match end {
            "machine" => {
                fs::write(dir.path().join("abort"), "1").unwrap();
                forget_boot(dir.path());
            }
            "lost extension" => fs::remove_dir_all(dir.path().join("consumequeue_ext")).unwrap(),
            "lost queue" => fs::remove_dir_all(dir.path().join("consumequeue/T")).unwrap(),
            _ => {}
        }
    }
    let store = open(with_ext(dir.path(), true));
    check(&store, 0..sent, "at last");
    assert!(ext_files(dir.path()).len() > 2);
}

/// An address that is given again would show old messages with the tags of new ones.
#[test]
fn what_is_lost_while_switched_off_is_not_mistaken_for_something_else() {
    type Loss = fn(&Path);
    let losses: [(&str, Loss); 5] = [
        ("nothing", |_| ()),
        ("everything", |ext| fs::remove_dir_all(ext).unwrap()),
        ("the queue's folder", |ext| fs::remove_dir_all(ext.join("T/0")).unwrap()),
        ("the last file", |ext| fs::remove_file(ext.join("T/0/00000000000000002000")).unwrap()),
        ("what is in the last file", |ext| fs::write(ext.join("T/0/00000000000000002000"), [0; 1000]).unwrap()),
    ];
    for (what, lose) in losses {
        let dir = tempfile::tempdir().unwrap();
        let mut sent = 0;
        for (on, count) in [(true, 130), (false, 10), (true, 61), (true, 40)] {
            let store = open(with_ext(dir.path(), on));
            check(&store, 0..sent, &format!("{what} is lost, {on} after {sent}"));
            fill(&store, sent..sent + count);
            sent += count;
            check(&store, 0..sent, &format!("{what} is lost, {on} until {sent}"));
            store.close();
            if !on {
                lose(&dir.path().join("consumequeue_ext"));
            }
        }
    }
}

#[test]
fn the_files_are_javas() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(with_ext(dir.path(), true));
    fill(&store, 0..120);
    let time = store.store_time_at("T", 0, 49);
    store.close();
    // 49 units and the mark fit into 1000 bytes.
    assert_eq!(ext_files(dir.path()), [0, 1000, 2000]);
    let queue = fs::read(dir.path().join("consumequeue/T/0/00000000000000000000")).unwrap();
    let code = |i: usize| i64::from_be_bytes(queue[i * 20 + 12..i * 20 + 20].try_into().unwrap());
    assert_eq!((code(0), code(1), code(48), code(49)), (i64::MIN, i64::MIN + 20, i64::MIN + 960, i64::MIN + 1000));
    let first = fs::read(dir.path().join("consumequeue_ext/T/0/00000000000000000000")).unwrap();
    assert_eq!((first.len(), &first[980..982]), (1000, &[0xFF, 0xFF][..]));
    let second = fs::read(dir.path().join("consumequeue_ext/T/0/00000000000000001000")).unwrap();
    let mut unit = vec![0, 20];
    unit.extend(i64::from(java_hash("B")).to_be_bytes());
    unit.extend(time.to_be_bytes());
    unit.extend([0, 0]);
    assert_eq!(second[..20], unit);
}

#[test]
fn an_address_that_leads_nowhere_is_not_given_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(with_ext(dir.path(), true));
    fill(&store, 0..60);
    store.close();
    drop(store);
    // As if the second file's bytes had not reached the disk.
    let file = fs::File::options().write(true).open(dir.path().join("consumequeue_ext/T/0/00000000000000001000"));
    file.unwrap().write_all_at(&[0; 1000], 0).unwrap();
    let store = open(with_ext(dir.path(), true));
    check(&store, 0..60, "with holes");
    fill(&store, 60..100);
    check(&store, 0..100, "written on");
    store.close();
    drop(store);
    check(&open(with_ext(dir.path(), false)), 0..100, "switched off");
}

#[test]
fn old_files_and_deleted_topics_go() {
    let dir = tempfile::tempdir().unwrap();
    let settings = StoreConfig {
        file_reserved_time: std::time::Duration::ZERO,
        delete_when: vec![],
        delete_commit_log_files_interval: std::time::Duration::ZERO,
        ..with_ext(dir.path(), true)
    };
    let store = open(settings.clone());
    fill(&store, 0..600);
    store.close();
    drop(store);
    let store = open(settings);
    let before = ext_files(dir.path());
    while store.delete_expired_now() > 0 {}
    let after = ext_files(dir.path());
    assert!(after.len() < before.len() && after.last() == before.last(), "{before:?} {after:?}");
    check(&store, store.min_offset("T", 0)..600, "after the cleaning");
    fill(&store, 600..610);
    check(&store, store.min_offset("T", 0)..610, "written on");
    assert!(store.delete_topic("T").unwrap());
    assert!(!dir.path().join("consumequeue_ext/T").exists());
    fill(&store, 0..5);
    check(&store, 0..5, "made anew");
}
