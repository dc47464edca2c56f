//! Crash after crash: what was not synced is lost, kept or torn at random, calls fail; what was promised stays.
//!
//! `STORE_CAMPAIGN_RUNS` sets the number of runs, `STORE_CAMPAIGN_SEED` repeats one from its printed seed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod disk;
mod promises;
#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use disk::{Disk, Trouble};
use fastrand::Rng;
use promises::{Queue, Told, check_key};
use protocol::record::properties;
use store::*;
use support::*;

/// The queues of a run. Messages of the last topic are deleted now and then.
const QUEUES: [(&str, i32); 6] = [("A", 0), ("A", 1), ("B", 3), ("SCHEDULE_TOPIC_XXXX", 2), ("D", 0), ("D", 1)];
const DELETED: &str = "D";

struct Run {
    random: Rng,
    dir: PathBuf,
    sync: bool,
    index: bool,
    serial: u64,
    queues: Vec<Queue>,
}

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Closed,
    Killed,
    /// The machine dies, with or without the process having ended in order before.
    Crashed,
}

impl Run {
    fn new(seed: u64, dir: &Path) -> Self {
        let mut random = Rng::with_seed(seed);
        let (sync, index) = (random.bool(), random.u8(..3) > 0);
        Run { random, dir: dir.to_path_buf(), sync, index, serial: 0, queues: vec![Queue::default(); QUEUES.len()] }
    }

    fn config(&mut self) -> StoreConfig {
        let long = Duration::from_secs(1000);
        StoreConfig {
            commit_log_file_size: 8 << 10,
            flush_disk_type: if self.sync { FlushDiskType::Sync } else { FlushDiskType::Async },
            flush_interval_commit_log: Duration::from_millis(self.random.u64(1..20)),
            flush_commit_log_least_pages: self.random.u64(..3),
            // What the clock does elsewhere is done when the seed says.
            flush_interval_consume_queue: long,
            flush_consume_queue_thorough_interval: long,
            clean_resource_interval: long,
            message_index_enable: self.index,
            max_hash_slot_num: 50,
            max_index_num: 30,
            delete_when: vec![],
            file_reserved_time: Duration::ZERO,
            delete_file_batch_max: self.random.usize(1..3),
            delete_commit_log_files_interval: Duration::ZERO,
            ..config(&self.dir)
        }
    }

    /// One life of a process.
    fn live(&mut self, last: bool) -> Result<(), String> {
        // Often the machine dies in the middle of a call, also of those of a start or of an end.
        let calls = if last || self.random.bool() { u64::MAX } else { self.random.u64(..400) };
        let disk = Arc::new(Disk::new(&self.dir, calls, self.random.u64(..)));
        let mut settings = self.config();
        settings.faults = Some(disk.clone());
        tracing::info!(sync = self.sync, calls, "a life begins");
        let store = match Store::open(settings, Arc::new(()), Box::new(())) {
            Ok(store) => store,
            Err(_) if disk.is_dead() => {
                self.end(&disk, End::Crashed);
                return Ok(());
            }
            Err(error) => return Err(format!("it does not open: {error}")),
        };
        self.check(&store, &disk)?;
        let troubles = [Trouble::Full, Trouble::BadWrite, Trouble::BadSync, Trouble::NoFiles];
        let trouble = if self.random.u8(..3) == 0 { troubles[self.random.usize(..4)] } else { Trouble::None };
        disk.set_trouble(trouble);
        for _ in 0..self.random.usize(1..100) {
            self.step(&store, &disk);
        }
        disk.set_trouble(Trouble::None);
        let mut end = [End::Closed, End::Killed, End::Crashed, End::Crashed][self.random.usize(..4)];
        if self.random.u8(..3) == 0 && (end == End::Closed || end == End::Crashed) {
            store.close();
            if !disk.is_dead()
                && store.stats().flushed_offset == store.max_physical_offset()
                && trouble == Trouble::None
            {
                self.queues.iter_mut().flat_map(Queue::all).for_each(|told| told.safe |= told.written);
            }
        } else {
            store.abandon();
            end = if end == End::Closed { End::Killed } else { end };
        }
        drop(store);
        self.end(&disk, end);
        Ok(())
    }

    fn end(&mut self, disk: &Disk, end: End) {
        tracing::info!(?end, dead = disk.is_dead(), "a life ends");
        match end {
            End::Crashed => {
                disk.crash();
                // Our marks must not be taken for the page cache's.
                if self.dir.join("checkpoint").metadata().is_ok_and(|m| m.len() == 4096) {
                    forget_boot(&self.dir);
                }
            }
            End::Closed | End::Killed => {
                disk.kill();
                self.queues.iter_mut().flat_map(Queue::all).for_each(|told| told.safe |= told.written);
            }
        }
    }

    fn check(&mut self, store: &Store, disk: &Disk) -> Result<(), String> {
        for (queue, (topic, id)) in self.queues.iter_mut().zip(QUEUES) {
            let known = queue.check(store, topic, id).map_err(|what| format!("{topic}/{id}: {what}"))?;
            for _ in 0..if self.index { 4.min(known.len()) } else { 0 } {
                let told = &known[self.random.usize(..known.len())];
                match check_key(store, topic, told) {
                    Err(what) if !disk.is_dead() => return Err(format!("{topic}/{id}: {what}")),
                    _ => {}
                }
            }
            if topic == "SCHEDULE_TOPIC_XXXX" {
                for unit in store.units(topic, id, 0, usize::MAX) {
                    let stored = store.store_time_at(topic, id, unit.queue_offset);
                    if unit.tags_code != stored + 10_000 {
                        return Err(format!("deliver time {} of a message stored at {stored}", unit.tags_code));
                    }
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, store: &Store, disk: &Disk) {
        match self.random.u8(..100) {
            0..70 => self.send(store, disk),
            70..80 => self.send_batch(store, disk),
            80..86 => self.read(store, disk),
            86..90 => store.pass(false),
            90..94 => store.pass(true),
            94..97 => _ = store.delete_expired_now(),
            _ => {
                let done = store.delete_topic(DELETED).is_ok();
                let certain = done && !disk.is_dead() && !disk.has_trouble();
                let of_topic = self.queues.iter_mut().zip(QUEUES).filter(|(_, (topic, _))| *topic == DELETED);
                of_topic.for_each(|(queue, _)| if done { queue.delete(certain) } else { queue.doubt() });
                tracing::info!(done, certain, "deleted");
            }
        }
    }

    fn told(&mut self, appended: u64) -> Told {
        self.serial += 1;
        let body = format!("{}:{}", self.serial, "x".repeat(self.random.usize(..600)));
        Told { body, key: format!("k{}", self.serial), physical: appended, written: false, safe: false }
    }

    fn properties(told: &Told, topic: &str) -> Vec<u8> {
        let delay = if topic == "SCHEDULE_TOPIC_XXXX" { Some(("DELAY", "3")) } else { None };
        properties::from_pairs([("TAGS", "A"), ("KEYS", told.key.as_str())].into_iter().chain(delay))
    }

    /// Some single messages of several queues, written out together.
    fn send(&mut self, store: &Store, disk: &Disk) {
        let mut places = Vec::new();
        let mut end = 0;
        for _ in 0..[1, 1, 1, 3][self.random.usize(..4)] {
            let at = self.random.usize(..QUEUES.len());
            let (topic, id) = QUEUES[at];
            let told = self.told(0);
            let text = Self::properties(&told, topic);
            let Ok(appended) = store.append(&message(topic, id, told.body.as_bytes(), &text)) else { break };
            self.queues[at].tell(appended.queue_offset, Told { physical: appended.physical_offset, ..told });
            places.push((at, appended.queue_offset));
            end = appended.end;
        }
        self.finish(store, disk, end, &places);
    }

    fn send_batch(&mut self, store: &Store, disk: &Disk) {
        let at = self.random.usize(..QUEUES.len());
        let (topic, id) = QUEUES[at];
        let told: Vec<Told> = (0..self.random.usize(1..6)).map(|_| self.told(0)).collect();
        let texts: Vec<Vec<u8>> = told.iter().map(|t| Self::properties(t, topic)).collect();
        let items: Vec<BatchItem<'_>> = told
            .iter()
            .zip(&texts)
            .map(|(t, text)| BatchItem { flag: 0, body: t.body.as_bytes(), properties: text })
            .collect();
        let batch = AppendBatch {
            topic,
            queue_id: id,
            sys_flag: 0,
            born_timestamp: 1,
            born_host: host(1),
            store_host: host(2),
            reconsume_times: 0,
            items: &items,
        };
        let Ok(appended) = store.append_batch(&batch) else { return };
        let mut places = Vec::new();
        for ((told, physical), offset) in told.into_iter().zip(&appended.physical_offsets).zip(appended.queue_offset..)
        {
            self.queues[at].tell(offset, Told { physical: *physical, ..told });
            places.push((at, offset));
        }
        self.finish(store, disk, appended.end, &places);
    }

    /// Writes out and, for some, waits for the disk; notes what is promised then. A dead machine's answers reach nobody.
    fn finish(&mut self, store: &Store, disk: &Disk, end: u64, places: &[(usize, i64)]) {
        if places.is_empty() || store.write_out(end).is_err() || disk.is_dead() {
            return;
        }
        self.promise(places, |told| told.written = true);
        if self.random.u8(..if self.sync { 2 } else { 10 }) > 0 {
            return;
        }
        let (done, result) = mpsc::channel();
        store.when_flushed(end, Box::new(move |r| drop(done.send(r))));
        let flushed = result.recv_timeout(Duration::from_secs(20)).expect("an answer");
        if flushed.is_ok() && !disk.is_dead() {
            self.promise(places, |told| told.safe = true);
        }
    }

    fn promise(&mut self, places: &[(usize, i64)], what: impl Fn(&mut Told)) {
        for (at, offset) in places {
            if let Some(told) = self.queues[*at].told.get_mut(offset).and_then(|there| there.last_mut()) {
                what(told);
            }
        }
    }

    /// Under SYNC_FLUSH readers see only what is on the disk.
    fn read(&mut self, store: &Store, disk: &Disk) {
        let at = self.random.usize(..QUEUES.len());
        let (topic, id) = QUEUES[at];
        let end = store.max_offset(topic, id);
        if self.sync && !disk.is_dead() {
            self.queues[at].seen = self.queues[at].seen.max(end);
        }
    }
}

/// In memory when there is such a folder: thousands of runs take minutes then.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn run(seed: u64) {
    let dir = folder();
    let mut run = Run::new(seed, &dir.path().join("store"));
    std::fs::create_dir(&run.dir).unwrap();
    let lives = run.random.usize(2..7);
    for life in 0..=lives {
        if let Err(what) = run.live(life == lives) {
            let kept = std::env::var_os("STORE_CAMPAIGN_SEED").map(|_| dir.keep());
            println!("{kept:?}");
            panic!("STORE_CAMPAIGN_SEED={seed}, life {life} of {lives}, sync {}: {what}", run.sync);
        }
    }
}

#[test]
fn nothing_promised_is_lost() {
    if let Ok(seed) = std::env::var("STORE_CAMPAIGN_SEED") {
        // A repeated one is to be understood.
        tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).init();
        return run(seed.parse().unwrap());
    }
    let runs = std::env::var("STORE_CAMPAIGN_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let mut seeds = Rng::new();
    for _ in 0..runs {
        run(seeds.u64(..));
    }
}
