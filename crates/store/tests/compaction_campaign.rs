//! Compacted topics through stop after stop: in order, killed, or with the machine. Readers always find the last message of
//! each key, and never one that was not sent.
//!
//! `STORE_CAMPAIGN_RUNS` sets the number of runs, `STORE_CAMPAIGN_SEED` repeats one from its printed seed.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use protocol::record::RecordView;
use store::*;
use support::crash::PageCache;
use support::*;

struct Kinds;

impl TopicKinds for Kinds {
    fn is_compaction(&self, topic: &str) -> bool {
        topic == "C"
    }
}

fn open_small(root: &Path, cache: &Arc<PageCache>, random: &mut fastrand::Rng) -> Arc<Store> {
    let config = StoreConfig {
        faults: Some(cache.clone()),
        flush_interval_commit_log: Duration::from_millis(random.u64(1..20)),
        flush_commit_log_least_pages: 0,
        flush_interval_consume_queue: Duration::from_millis(random.u64(1..20)),
        flush_consume_queue_thorough_interval: Duration::from_millis(random.u64(1..50)),
        message_index_enable: false,
        file_reserved_time: Duration::ZERO,
        delete_when: Vec::new(),
        delete_commit_log_files_interval: Duration::ZERO,
        compaction_queue_file_size: 46 * 20,
        compaction_file_size: 6000,
        // Some rounds cannot hold all keys.
        compaction_threads: 1,
        max_offset_map_size: random.usize(300..4000),
        ..config(root)
    };
    Store::open(config, Arc::new(Kinds), Box::new(())).unwrap()
}

/// Keys and bodies by offset, as they were answered.
type Sent = Vec<(String, String)>;

/// Reads everything from 0 on and compares it with what was sent.
fn check(store: &Store, sent: &Sent, what: &str) {
    let mut found: Vec<i64> = Vec::new();
    let mut offset = 0;
    loop {
        let got = store.get(&request("C", 0, offset));
        for record in &got.messages {
            let record = RecordView::parse(record).unwrap();
            let (key, body) = sent.get(record.queue_offset as usize).unwrap_or_else(|| panic!("{what}: never sent"));
            assert_eq!(record.property("KEYS"), Some(key.as_str()), "{what}");
            assert_eq!(record.body, body.as_bytes(), "{what}");
            assert!(found.last().is_none_or(|last| *last < record.queue_offset), "{what}: out of order");
            found.push(record.queue_offset);
        }
        if got.next_offset <= offset {
            break;
        }
        offset = got.next_offset;
    }
    assert_eq!(offset, sent.len() as i64, "{what}: {found:?}");
    let mut last: HashMap<&str, i64> = HashMap::new();
    for (offset, (key, _)) in sent.iter().enumerate() {
        last.insert(key, offset as i64);
    }
    for (key, offset) in last {
        let is_tombstone = sent[offset as usize].1.is_empty();
        assert!(is_tombstone || found.binary_search(&offset).is_ok(), "{what}: {key} at {offset} is lost: {found:?}");
    }
}

fn send_some(store: &Store, sent: &mut Sent, random: &mut fastrand::Rng) -> Option<Appended> {
    let mut last = None;
    for _ in 0..random.usize(1..80) {
        let (key, serial) = (format!("k{}", random.u32(..30)), sent.len());
        let body =
            if random.u8(..10) == 0 { String::new() } else { format!("{serial} {}", "x".repeat(random.usize(..300))) };
        let appended = send_with(store, "C", 0, &body, &[("KEYS", &key)]);
        assert_eq!(appended.queue_offset, serial as i64);
        sent.push((key, body));
        last = Some(appended);
    }
    last
}

fn run(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let dir = tempfile::tempdir().unwrap();
    let mut sent = Sent::new();
    for life in 0..5 {
        let what = format!("seed {seed}, life {life}");
        let cache = Arc::new(PageCache::default());
        let store = open_small(dir.path(), &cache, &mut random);
        check(&store, &sent, &format!("{what}, at the start"));
        let (mut safe, mut last) = (sent.len(), None);
        for _ in 0..random.usize(1..8) {
            match random.u8(..5) {
                0 | 1 => last = send_some(&store, &mut sent, &mut random),
                2 => drop(store.compact_now().unwrap()),
                3 => {
                    if let Some(last) = &last {
                        flush(&store, last);
                    }
                    safe = sent.len();
                    // Whole files go, and with them what had not been read yet.
                    store.delete_expired_now();
                }
                _ => check(&store, &sent, &what),
            }
        }
        match random.u8(..3) {
            0 => store.close(),
            1 => store.abandon(),
            _ => {
                store.abandon();
                drop(store);
                cache.crash(&mut random);
                forget_boot(dir.path());
                // The messages behind the last flush may be gone, from some offset on.
                let store = open_small(dir.path(), &Arc::default(), &mut random);
                let end = store.max_offset("C", 0) as usize;
                assert!((safe..=sent.len()).contains(&end), "{what}: ends at {end}, {safe} were flushed");
                sent.truncate(end);
                store.close();
            }
        }
    }
    let store = open_small(dir.path(), &Arc::default(), &mut random);
    check(&store, &sent, &format!("seed {seed}, at the end"));
}

#[test]
fn no_key_loses_its_last_message() {
    if let Ok(seed) = std::env::var("STORE_CAMPAIGN_SEED") {
        return run(seed.parse().unwrap());
    }
    let runs = std::env::var("STORE_CAMPAIGN_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let mut seeds = fastrand::Rng::new();
    for _ in 0..runs {
        run(seeds.u64(..));
    }
}
