//! Crash after crash: what was not synced is lost, kept or torn at random; what was promised stays.
//!
//! `STORE_CAMPAIGN_RUNS` sets the number of runs, `STORE_CAMPAIGN_SEED` repeats one from its printed seed.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::HashMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use store::*;
use support::crash::PageCache;
use support::*;

/// What the producer was promised about one queue.
#[derive(Default)]
struct Promised {
    /// Bodies by queue offset, as answered; `true` when the answer said it is on the disk.
    answered: HashMap<i64, (String, bool)>,
}

fn run(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let dir = tempfile::tempdir().unwrap();
    let mut promised: [Promised; 3] = Default::default();
    let mut serial = 0;
    let sync = random.bool();
    for _ in 0..3 {
        let cache = Arc::new(PageCache::default());
        let store = open(StoreConfig {
            faults: Some(cache.clone()),
            flush_disk_type: if sync { FlushDiskType::Sync } else { FlushDiskType::Async },
            flush_interval_commit_log: Duration::from_millis(random.u64(1..20)),
            flush_commit_log_least_pages: 0,
            flush_interval_consume_queue: Duration::from_millis(random.u64(1..20)),
            flush_consume_queue_thorough_interval: Duration::from_millis(random.u64(1..50)),
            message_index_enable: false,
            ..config(dir.path())
        });
        check(&store, &mut promised, seed);
        let (done, results) = mpsc::channel();
        let mut waiting = 0;
        for _ in 0..random.usize(1..150) {
            serial += 1;
            let queue = random.usize(..3);
            let body = format!("{serial}:{}", "x".repeat(random.usize(..600)));
            let appended = store.append(&message("T", queue as i32, body.as_bytes(), b"TAGS\x01A\x02")).unwrap();
            store.write_out(appended.end).unwrap();
            promised[queue].answered.insert(appended.queue_offset, (body, false));
            if random.u8(..8) == 0 {
                let done = done.clone();
                store.when_flushed(appended.end, Box::new(move |r| drop(done.send((queue, appended.queue_offset, r)))));
                waiting += 1;
            }
        }
        let until = if random.bool() { waiting } else { 0 };
        for _ in 0..until {
            let (queue, offset, result) = results.recv_timeout(Duration::from_secs(20)).unwrap();
            assert_eq!(result, Ok(()), "seed {seed}");
            promised[queue].answered.get_mut(&offset).unwrap().1 = true;
        }
        let machine = random.bool();
        store.abandon();
        drop(store);
        while let Ok((queue, offset, Ok(()))) = results.try_recv() {
            promised[queue].answered.get_mut(&offset).unwrap().1 = true;
        }
        if machine {
            cache.crash(&mut random);
            // Another boot id: our marks must not be taken for the page cache's.
            forget_boot(dir.path());
        } else {
            // The process died: everything that was written counts as kept.
            promised.iter_mut().flat_map(|p| p.answered.values_mut()).for_each(|(_, safe)| *safe = true);
        }
    }
    let store = open(config(dir.path()));
    check(&store, &mut promised, seed);
}

fn check(store: &Store, promised: &mut [Promised; 3], seed: u64) {
    for (queue, promised) in promised.iter_mut().enumerate() {
        let found = read_all(store, "T", queue as i32);
        for (i, (offset, body)) in found.iter().enumerate() {
            assert_eq!(*offset, i as i64, "seed {seed}, queue {queue}: no gap");
            let (expected, _) =
                promised.answered.get(offset).unwrap_or_else(|| panic!("seed {seed}: unknown {offset}"));
            assert_eq!(body, expected, "seed {seed}, queue {queue}, offset {offset}");
        }
        let end = found.len() as i64;
        assert_eq!(store.max_offset("T", queue as i32), end, "seed {seed}");
        let lost = promised.answered.iter().filter(|(offset, (_, safe))| **offset >= end && *safe).count();
        assert_eq!(lost, 0, "seed {seed}, queue {queue}: ends at {end}, promised messages are lost");
        promised.answered.retain(|offset, _| *offset < end);
        // What came through the crash is on the disk now.
        promised.answered.values_mut().for_each(|(_, safe)| *safe = true);
    }
}

#[test]
fn nothing_promised_is_lost() {
    if let Ok(seed) = std::env::var("STORE_CAMPAIGN_SEED") {
        return run(seed.parse().unwrap());
    }
    let runs = std::env::var("STORE_CAMPAIGN_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    let mut seeds = fastrand::Rng::new();
    for _ in 0..runs {
        run(seeds.u64(..));
    }
}
