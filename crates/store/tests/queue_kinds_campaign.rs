//! Crash after crash over batch queues, extended queues and light queues together. The extension comes and goes, by its switch
//! and by hand.
//!
//! `STORE_CAMPAIGN_RUNS` sets the number of runs, `STORE_CAMPAIGN_SEED` repeats one from its printed seed.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use protocol::record::{RecordView, java_hash, properties};
use store::*;
use support::crash::PageCache;
use support::*;

const TAGS: [&str; 3] = ["A", "B", "C"];

/// What was stored in one queue: messages, body and tag by offset, and whether it must survive.
type Stored = BTreeMap<i64, (i64, String, &'static str, bool)>;
/// By topic; every topic has one queue here.
type Promised = BTreeMap<&'static str, Stored>;

fn settings(dir: &Path, random: &mut fastrand::Rng) -> StoreConfig {
    StoreConfig {
        enable_consume_queue_ext: random.bool(),
        consume_queue_ext_file_size: 1000,
        enable_lmq: true,
        enable_multi_dispatch: true,
        flush_interval_commit_log: Duration::from_millis(random.u64(1..20)),
        flush_commit_log_least_pages: 0,
        flush_interval_consume_queue: Duration::from_millis(random.u64(1..20)),
        flush_consume_queue_thorough_interval: Duration::from_millis(random.u64(1..50)),
        message_index_enable: false,
        ..config(dir)
    }
}

/// Sends a message of some kind and returns the queues and offsets it is at.
fn send_some(store: &Store, serial: i64, random: &mut fastrand::Rng, promised: &mut Promised) -> Appended {
    let body = format!("{serial}:{}", "x".repeat(random.usize(..300)));
    let tag = TAGS[random.usize(..3)];
    let light: &[&'static str] = [&[][..], &["%LMQ%a"], &["%LMQ%a", "%LMQ%b"]][random.usize(..3)];
    let (batch, count) = (random.bool(), random.i64(1..6));
    let mut text = properties::from_pairs([("TAGS", tag)]);
    if !batch && !light.is_empty() {
        properties::append(&mut text, "INNER_MULTI_DISPATCH", &light.join(","));
    }
    let to = |topic| message(topic, 0, body.as_bytes(), &text);
    let (topic, count, appended) = match (batch, count) {
        (true, 1) => ("BatchT", 1, store.append(&to("BatchT"))),
        (true, _) => ("BatchT", count, store.append_inner_batch(&to("BatchT"), count as i16)),
        (false, _) => ("T", 1, store.append(&to("T"))),
    };
    let appended = appended.unwrap();
    store.write_out(appended.end).unwrap();
    let mut note = |topic, offset| {
        promised.entry(topic).or_default().insert(offset, (count, body.clone(), tag, false));
    };
    note(topic, appended.queue_offset);
    let record = store.record_at(appended.physical_offset).unwrap();
    if let Some(offsets) = RecordView::parse(&record).unwrap().property("INNER_MULTI_QUEUE_OFFSET") {
        light.iter().zip(offsets.split(',')).for_each(|(topic, offset)| note(topic, offset.parse().unwrap()));
    }
    appended
}

fn run(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let dir = tempfile::tempdir().unwrap();
    let mut promised = Promised::new();
    let mut serial = 0;
    for _ in 0..8 {
        let cache = Arc::new(PageCache::default());
        let config = StoreConfig { faults: Some(cache.clone()), ..settings(dir.path(), &mut random) };
        let store = open_batch(config);
        check(&store, &mut promised, seed);
        let (done, flushed) = mpsc::channel();
        for _ in 0..random.usize(1..150) {
            serial += 1;
            let appended = send_some(&store, serial, &mut random, &mut promised);
            if random.u8(..20) == 0 {
                let done = done.clone();
                store.when_flushed(appended.end, Box::new(move |result| drop(done.send(result))));
                assert_eq!(flushed.recv_timeout(Duration::from_secs(20)), Ok(Ok(())), "seed {seed}");
                keep(&mut promised);
            }
        }
        let end = random.u8(..3);
        // Only after a stop the next start takes the queues as they are, units from before and after a switch beside each other.
        if end == 0 {
            store.close()
        } else {
            store.abandon()
        }
        drop(store);
        if end == 1 {
            cache.crash(&mut random);
            forget_boot(dir.path());
        } else {
            keep(&mut promised);
        }
        lose_extension(dir.path(), &mut random);
    }
    check(&open_batch(settings(dir.path(), &mut random)), &mut promised, seed);
}

/// What may become of files that can be done without: all, the last one, or what is in it goes.
fn lose_extension(dir: &Path, random: &mut fastrand::Rng) {
    let root = dir.join("consumequeue_ext");
    let files = fs::read_dir(root.join("T/0")).into_iter().flatten().map(|entry| entry.unwrap().path());
    let Some(last) = files.max() else { return };
    match random.u8(..5) {
        0 => fs::remove_dir_all(root).unwrap(),
        1 => fs::remove_file(last).unwrap(),
        2 => fs::write(last, [random.u8(0..=1) * 0xFF; 1000]).unwrap(),
        _ => {}
    }
}

/// Everything so far must survive.
fn keep(promised: &mut Promised) {
    promised.values_mut().flat_map(|stored| stored.values_mut()).for_each(|(.., safe)| *safe = true);
}

fn check(store: &Store, promised: &mut Promised, seed: u64) {
    for (topic, stored) in promised.iter_mut() {
        let mut offset = 0;
        while offset < store.max_offset(topic, 0) {
            let at = format!("seed {seed}, {topic} at {offset}");
            let got = store.get(&GetRequest { max_messages: 1, ..request(topic, 0, offset) });
            let [record] = got.messages.as_slice() else { panic!("{at}: {:?}", got.status) };
            let (count, body, tag, _) = stored.get(&offset).unwrap_or_else(|| panic!("{at}: nobody sent it"));
            assert_eq!(RecordView::parse(record).unwrap().body, body.as_bytes(), "{at}");
            assert_eq!(got.next_offset, offset + count, "{at}");
            let units = store.units(topic, 0, offset, 1);
            assert_eq!(units[0].tags_code, i64::from(java_hash(tag)), "{at}");
            offset = got.next_offset;
        }
        let lost = stored.range(offset..).filter(|(_, (.., safe))| *safe).count();
        assert_eq!(lost, 0, "seed {seed}: {topic} ends at {offset}, promised messages are lost");
        stored.retain(|at, _| *at < offset);
    }
    keep(promised);
}

#[test]
fn nothing_promised_is_lost_in_any_kind_of_queue() {
    if let Ok(seed) = std::env::var("STORE_CAMPAIGN_SEED") {
        return run(seed.parse().unwrap());
    }
    let runs = std::env::var("STORE_CAMPAIGN_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(30);
    let mut seeds = fastrand::Rng::new();
    for _ in 0..runs {
        run(seeds.u64(..));
    }
}
