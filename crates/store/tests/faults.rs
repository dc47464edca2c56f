//! Writes and flushes that fail: refused, never acknowledged and lost.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use store::*;
use support::*;

const FINE: u8 = 0;
const NO_SPACE: u8 = 1;
const BROKEN: u8 = 2;
const SHORT_THEN_NO_SPACE: u8 = 3;
const NO_SYNC: u8 = 4;
const NO_QUEUE_SYNC: u8 = 5;

/// Fails as it is told, commit log only; a sync of consume queues once.
#[derive(Default)]
struct Disk(AtomicU8);

impl Disk {
    fn set(&self, mode: u8) {
        self.0.store(mode, Ordering::SeqCst);
    }
}

fn full() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

impl Faults for Disk {
    fn before_write(&self, path: &Path, _: u64, data: &[u8]) -> io::Result<usize> {
        if !path.to_string_lossy().contains("commitlog") {
            return Ok(data.len());
        }
        match self.0.load(Ordering::SeqCst) {
            NO_SPACE => Err(full()),
            BROKEN => Err(io::Error::other("broken")),
            SHORT_THEN_NO_SPACE => {
                self.set(NO_SPACE);
                Ok(data.len() / 2)
            }
            _ => Ok(data.len()),
        }
    }

    fn before_sync(&self, path: &Path) -> io::Result<()> {
        let fails = match self.0.load(Ordering::SeqCst) {
            NO_SYNC => path.to_string_lossy().contains("commitlog"),
            NO_QUEUE_SYNC => {
                let queue = path.to_string_lossy().contains("consumequeue");
                if queue {
                    self.set(FINE);
                }
                queue
            }
            _ => false,
        };
        if fails { Err(io::Error::other("no sync")) } else { Ok(()) }
    }
}

fn with_disk(dir: &Path, change: impl Fn(&mut StoreConfig)) -> (Arc<Disk>, Arc<Store>) {
    let disk = Arc::new(Disk::default());
    let mut config = StoreConfig { faults: Some(disk.clone()), ..config(dir) };
    change(&mut config);
    (disk, open(config))
}

/// Tries until the store takes the message again.
fn send_when_possible(store: &Store, body: &str) -> Appended {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Ok(appended) = store.append(&message("T", 0, body.as_bytes(), b""))
            && store.write_out(appended.end).is_ok()
        {
            return appended;
        }
        assert!(Instant::now() < deadline, "the store does not take messages again");
        std::thread::yield_now();
    }
}

#[test]
fn a_full_disk_refuses_and_recovers_by_itself() {
    for mode in [NO_SPACE, SHORT_THEN_NO_SPACE] {
        let dir = tempfile::tempdir().unwrap();
        let (disk, store) = with_disk(dir.path(), |_| {});
        for i in 0..10 {
            send(&store, "T", 0, &format!("m{i}"));
        }
        disk.set(mode);
        let first = store.append(&message("T", 0, b"refused 1", b"")).unwrap();
        let second = store.append(&message("T", 0, b"refused 2", b"")).unwrap();
        assert_eq!((first.queue_offset, second.queue_offset), (10, 11));
        assert_eq!(store.write_out(second.end), Err(WriteError::DiskFull));
        assert_eq!(store.write_out(first.end), Err(WriteError::DiskFull), "a follower learns it too");
        assert!(matches!(store.append(&message("T", 0, b"x", b"")), Err(PutError::DiskFull)));
        assert!(store.stats().disk_full);
        assert_eq!(read_all(&store, "T", 0), numbered(0..10, "m"), "reads go on");
        disk.set(FINE);
        let next = send_when_possible(&store, "m10");
        assert_eq!((next.queue_offset, next.physical_offset), (10, first.physical_offset));
        assert_eq!(store.write_out(first.end), Err(WriteError::DiskFull), "the old ticket stays refused");
        assert_eq!(read_all(&store, "T", 0), numbered(0..11, "m"));
        store.abandon();
        let store = open(config(dir.path()));
        assert_eq!(read_all(&store, "T", 0), numbered(0..11, "m"));
    }
}

#[test]
fn a_write_error_stops_the_store_until_it_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, store) = with_disk(dir.path(), |_| {});
    send(&store, "T", 0, "m0");
    disk.set(BROKEN);
    let appended = store.append(&message("T", 0, b"refused", b"")).unwrap();
    assert!(matches!(store.write_out(appended.end), Err(WriteError::Stopped(_))));
    disk.set(FINE);
    let refused = store.append(&message("T", 0, b"x", b"")).unwrap_err();
    assert_eq!(refused.put_status(), PutStatus::ServiceNotAvailable);
    assert!(refused.to_string().contains("broken"), "{refused}");
    assert_eq!(read_all(&store, "T", 0), numbered(0..1, "m"));
    store.close();
    assert!(dir.path().join("abort").exists(), "not a clean stop");
    let store = open(config(dir.path()));
    assert_eq!(send(&store, "T", 0, "m1").queue_offset, 1);
    assert_eq!(read_all(&store, "T", 0), numbered(0..2, "m"));
}

fn flushed(store: &Store, end: u64) -> Result<(), FlushError> {
    let (done, result) = mpsc::channel();
    store.when_flushed(end, Box::new(move |r| done.send(r).unwrap()));
    result.recv_timeout(Duration::from_secs(20)).expect("an answer")
}

#[test]
fn a_failed_flush_stops_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, store) = with_disk(dir.path(), |c| c.flush_disk_type = FlushDiskType::Sync);
    let first = send(&store, "T", 0, "m0");
    assert_eq!(flushed(&store, first.end), Ok(()));
    disk.set(NO_SYNC);
    let second = store.append(&message("T", 0, b"m1", b"")).unwrap();
    store.write_out(second.end).unwrap();
    assert!(matches!(flushed(&store, second.end), Err(FlushError::Failed(_))));
    disk.set(FINE);
    assert!(matches!(store.append(&message("T", 0, b"x", b"")), Err(PutError::Stopped(_))));
    assert!(flushed(&store, second.end).is_err(), "a flush is not tried again");
    assert_eq!(read_all(&store, "T", 0), numbered(0..1, "m"), "what was not flushed is not shown");
}

#[test]
fn units_that_could_not_be_synced_once_are_built_again_at_the_next_start() {
    for kill in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (disk, store) = with_disk(dir.path(), |config| config.flush_consume_queue_least_pages = 0);
        disk.set(NO_QUEUE_SYNC);
        for i in 0..10 {
            send(&store, "T", 0, &format!("m{i}"));
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        while disk.0.load(Ordering::SeqCst) != FINE {
            assert!(Instant::now() < deadline, "nobody syncs consume queues");
            std::thread::yield_now();
        }
        for i in 10..20 {
            send(&store, "T", 0, &format!("m{i}"));
        }
        if kill {
            store.abandon()
        } else {
            store.close()
        }
        // The disk never got what the failed sync should have brought there, whatever later ones said.
        let file = dir.path().join("consumequeue/T/0").join(format!("{:020}", 0));
        std::fs::File::options().write(true).open(file).unwrap().write_all_at(&[0; 200], 0).unwrap();
        let store = open(config(dir.path()));
        assert_eq!(read_all(&store, "T", 0), numbered(0..20, "m"), "killed: {kill}");
        assert_eq!(send(&store, "T", 0, "m20").queue_offset, 20);
    }
}

#[test]
fn sync_flush_shows_messages_only_after_the_flush_and_answers_all_that_wait() {
    let dir = tempfile::tempdir().unwrap();
    let (_, store) = with_disk(dir.path(), |c| c.flush_disk_type = FlushDiskType::Sync);
    let (done, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for t in 0..8 {
            let (store, done) = (&store, done.clone());
            scope.spawn(move || {
                for i in 0..50 {
                    let body = format!("{t}/{i}");
                    let appended = store.append(&message("T", t, body.as_bytes(), b"")).unwrap();
                    store.write_out(appended.end).unwrap();
                    let done = done.clone();
                    let at = appended.queue_offset;
                    store.when_flushed(appended.end, Box::new(move |r| done.send((t, at, r)).unwrap()));
                }
            });
        }
    });
    for _ in 0..400 {
        let (queue, offset, result) = results.recv_timeout(Duration::from_secs(20)).expect("an answer");
        assert_eq!(result, Ok(()));
        assert!(store.max_offset("T", queue) > offset, "flushed, so readable");
    }
    let stats = store.stats();
    assert_eq!(stats.confirm_offset, stats.commit_log_max_offset);
    assert_eq!(stats.flushed_offset, stats.commit_log_max_offset);
    store.abandon();
    let store = open(config(dir.path()));
    for t in 0..8 {
        assert_eq!(read_all(&store, "T", t), numbered(0..50, &format!("{t}/")));
    }
}

#[test]
fn a_deletion_of_a_topic_that_cannot_be_made_sure_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, store) = with_disk(dir.path(), |_| {});
    disk.set(NO_SYNC);
    send(&store, "T", 0, "m0");
    assert!(store.delete_topic("T").is_err());
    assert!(store.clean_unused_topics(&|_| false).is_empty());
    store.abandon();
    let store = open(config(dir.path()));
    assert_eq!(read_all(&store, "T", 0), numbered(0..1, "m"), "so it is still there");
    assert!(store.delete_topic("T").unwrap());
    store.close();
}

/// Holds every sync back until told.
#[derive(Default)]
struct SlowDisk(parking_lot::Mutex<()>);

impl Faults for SlowDisk {
    fn before_sync(&self, _: &Path) -> io::Result<()> {
        drop(self.0.lock());
        Ok(())
    }
}

#[test]
fn a_slow_flush_times_out_but_the_message_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(SlowDisk::default());
    let store = open(StoreConfig {
        faults: Some(disk.clone()),
        flush_disk_type: FlushDiskType::Sync,
        sync_flush_timeout: Duration::from_millis(50),
        ..config(dir.path())
    });
    let held = disk.0.lock();
    let appended = send(&store, "T", 0, "m0");
    assert_eq!(flushed(&store, appended.end), Err(FlushError::Timeout));
    // By now every thread that syncs something is held up.
    assert_eq!(flushed(&store, appended.end), Err(FlushError::Timeout));
    assert_eq!(store.max_offset("T", 0), 0, "not shown before the flush");
    drop(held);
    assert_eq!(flushed(&store, appended.end), Ok(()));
    assert_eq!(read_all(&store, "T", 0), numbered(0..1, "m"));
}

/// No new commit log file while it is set.
#[derive(Default)]
struct NoFiles(std::sync::atomic::AtomicBool);

impl Faults for NoFiles {
    fn before_create(&self, path: &Path) -> io::Result<()> {
        let refused = self.0.load(Ordering::SeqCst) && path.to_string_lossy().contains("commitlog");
        if refused { Err(io::Error::other("no more files")) } else { Ok(()) }
    }
}

#[test]
fn a_next_file_that_cannot_be_made_is_said_and_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(NoFiles::default());
    let store = open(StoreConfig { faults: Some(disk.clone()), ..config(dir.path()) });
    disk.0.store(true, Ordering::SeqCst);
    let body = "x".repeat(1000);
    let refused = (0..40).find_map(|_| {
        let appended = store.append(&message("T", 0, body.as_bytes(), b"")).ok()?;
        store.write_out(appended.end).err()
    });
    // Java's names for it: the sender hears code 1, "create mapped file failed, server is busy or broken."
    let refused = refused.map(|error| (error.put_status(), error.to_string()));
    let expected = "cannot create the next commit log file: no more files".to_owned();
    // The first file is made at the first message.
    assert_eq!(refused, Some((PutStatus::CreateMappedFileFailed, expected)));
    let at_once = store.append(&message("T", 0, b"x", b"")).unwrap_err();
    assert_eq!(at_once.put_status(), PutStatus::CreateMappedFileFailed);
    let before = read_all(&store, "T", 0).len();
    disk.0.store(false, Ordering::SeqCst);
    send_when_possible(&store, "after");
    assert_eq!(read_all(&store, "T", 0).len(), before + 1);
}

#[test]
fn a_slaves_store_takes_messages_from_nobody_else() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(StoreConfig { slave: true, ..config(dir.path()) });
    let refused = store.append(&message("T", 0, b"x", b"")).unwrap_err();
    assert_eq!((refused.put_status(), refused), (PutStatus::ServiceNotAvailable, PutError::Slave));
    assert!(!store.stats().writable);
}

/// Syncs of the commit log take as long as somebody holds the lock.
#[derive(Default)]
struct HangingDisk(std::sync::Mutex<()>);

impl Faults for HangingDisk {
    fn before_sync(&self, path: &std::path::Path) -> std::io::Result<()> {
        if path.to_string_lossy().contains("commitlog") {
            drop(self.0.lock().unwrap());
        }
        Ok(())
    }
}

#[test]
fn senders_that_do_not_wait_for_a_hanging_flush_are_refused_before_the_memory_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let disk = std::sync::Arc::new(HangingDisk::default());
    let store = open(StoreConfig {
        flush_disk_type: FlushDiskType::Sync,
        max_unflushed_bytes: 10 << 10,
        faults: Some(disk.clone()),
        ..config(dir.path())
    });
    let hangs = disk.0.lock().unwrap();
    let body = [b'x'; 400];
    let mut last = None;
    let error = (0..100).find_map(|_| match store.append(&message("T", 0, &body, b"")) {
        Ok(appended) => {
            store.write_out(appended.end).unwrap();
            last = Some(appended);
            None
        }
        Err(error) => Some(error),
    });
    assert_eq!(error, Some(PutError::Busy));
    drop(hangs);
    flush(&store, &last.unwrap());
    send(&store, "T", 0, "goes on");
}
