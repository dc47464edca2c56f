//! Many at once: no gap, no reorder, no torn read.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};

use protocol::record::RecordView;
use store::*;
use support::*;

#[test]
fn eight_writers_and_four_readers_agree() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(StoreConfig { commit_log_file_size: 256 << 10, ..config(dir.path()) });
    let stop = AtomicBool::new(false);
    const EACH: usize = 3000;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|t| {
                let store = &store;
                scope.spawn(move || {
                    for i in 0..EACH {
                        // Groups of several appends before one write, sizes all over.
                        let body = format!("{t}:{i}:{}", "x".repeat((i * 37 + t * 11) % 700));
                        let appended = store.append(&message("T", (i % 4) as i32, body.as_bytes(), b"")).unwrap();
                        if i % 5 == 0 || i == EACH - 1 {
                            store.write_out(appended.end).unwrap();
                        }
                    }
                })
            })
            .collect();
        for queue in 0..4 {
            let (store, stop) = (&store, &stop);
            scope.spawn(move || {
                let mut offset = 0;
                let mut last = [-1_i64; 8];
                loop {
                    let finished = stop.load(Ordering::Acquire);
                    let got = store.get(&request("T", queue, offset));
                    for record in &got.messages {
                        let view = RecordView::parse(record).unwrap();
                        assert!(view.body_crc_matches());
                        assert_eq!(view.queue_offset, offset, "queue {queue}");
                        let text = std::str::from_utf8(view.body).unwrap();
                        let mut parts = text.split(':');
                        let writer: usize = parts.next().unwrap().parse().unwrap();
                        let number: i64 = parts.next().unwrap().parse().unwrap();
                        assert!(last[writer] < number, "a writer's messages stay in order");
                        last[writer] = number;
                        offset += 1;
                    }
                    if finished && got.messages.is_empty() {
                        break;
                    }
                }
                assert_eq!(offset, (8 * EACH / 4) as i64);
            });
        }
        for writer in writers {
            writer.join().unwrap();
        }
        store.write_out(store.append(&message("other", 0, b"", b"")).unwrap().end).unwrap();
        stop.store(true, Ordering::Release);
    });
    store.close();
    let store = open(StoreConfig { commit_log_file_size: 256 << 10, ..config(dir.path()) });
    for queue in 0..4 {
        assert_eq!(store.max_offset("T", queue), (8 * EACH / 4) as i64);
    }
}

#[test]
fn open_files_and_old_units_stay_within_their_limits() {
    let dir = tempfile::tempdir().unwrap();
    let settings = StoreConfig { max_open_queue_files: 16, ..config(dir.path()) };
    let store = open(settings.clone());
    for i in 0..30 {
        for queue in 0..100 {
            let appended = store.append(&message("T", queue, format!("m{i}").as_bytes(), b"")).unwrap();
            store.write_out(appended.end).unwrap();
        }
    }
    store.close();
    let store = open(settings);
    for queue in 0..100 {
        assert_eq!(read_all(&store, "T", queue), numbered(0..30, "m"));
    }
    let open_queue_files = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok())
        .filter(|path| path.starts_with(dir.path().join("consumequeue")))
        .count();
    assert!(open_queue_files <= 16, "{open_queue_files} files are open");
}
