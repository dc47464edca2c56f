//! One file of a store is hurt at a random place in a random way, and the store opens: nothing panics, everything that the harm
//! did not touch is served, and what can be built again is.
//!
//! `STORE_HARM_RUNS` sets the number of runs, `STORE_HARM_SEED` repeats one from its printed seed.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use protocol::record::RecordView;
use store::*;
use support::*;

const MESSAGES: usize = 300;

/// How the store ended before it was hurt.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Clean,
    Killed,
    MachineDied,
}

/// Place, size and body of each message of the two queues of T.
type Sent = BTreeMap<(i32, i64), (u64, u32, String)>;

/// A store of each end, made once: the files and what was sent.
fn base(end: End) -> &'static (tempfile::TempDir, Sent) {
    static BASES: [OnceLock<(tempfile::TempDir, Sent)>; 3] = [OnceLock::new(), OnceLock::new(), OnceLock::new()];
    BASES[end as usize].get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let store = open(config(dir.path()));
        let mut sent = Sent::new();
        for i in 0..MESSAGES {
            let (queue, body, key) = ((i % 2) as i32, format!("m{i} {}", "x".repeat(i % 90)), format!("k{i}"));
            let appended = send_with(&store, "T", queue, &body, &[("TAGS", "A"), ("KEYS", &key)]);
            sent.insert((queue, appended.queue_offset), (appended.physical_offset, appended.len, body));
            if i + 1 == MESSAGES {
                flush(&store, &appended);
            }
        }
        assert_eq!(store.query_key("T", "k7", 9, 0, i64::MAX).messages.len(), 1);
        match end {
            End::Clean => store.close(),
            End::Killed | End::MachineDied => {
                // Some units are in files, as after a while of running.
                let wanted = dir.path().join("consumequeue/T/1/00000000000000002000");
                let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
                while !wanted.exists() {
                    assert!(std::time::Instant::now() < deadline, "units were not written");
                    std::thread::yield_now();
                }
                store.abandon();
            }
        }
        drop(store);
        if end == End::MachineDied {
            forget_boot(dir.path());
        }
        (dir, sent)
    })
}

fn files(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, into) } else { into.push(path) }
    }
}

/// What was done to a file: the bytes that are not what they were, and whether its length changed.
struct Harm {
    what: String,
    from: u64,
    to: u64,
    resized: bool,
}

fn hurt(path: &Path, random: &mut fastrand::Rng) -> Harm {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let len = file.metadata().unwrap().len();
    let at = random.u64(..len.max(1));
    let many = random.u64(1..200).min(len - at.min(len));
    let (name, to, resized) = match random.u8(..5) {
        0 => {
            let mut byte = [0];
            let got = file.read_at(&mut byte, at).unwrap();
            byte[0] ^= 1 << random.u8(..8);
            file.write_all_at(&byte[..got], at).unwrap();
            ("a bit flipped", at + 1, false)
        }
        1 => {
            file.write_all_at(&vec![0; many as usize], at).unwrap();
            ("bytes zeroed", at + many, false)
        }
        2 => {
            let garbage: Vec<u8> = (0..many).map(|_| random.u8(..)).collect();
            file.write_all_at(&garbage, at).unwrap();
            ("garbage", at + many, false)
        }
        3 => {
            file.set_len(at).unwrap();
            ("cut", len, true)
        }
        _ => {
            fs::remove_file(path).unwrap();
            ("removed", len, true)
        }
    };
    Harm { what: format!("{name} {at}..{to} in {}", path.display()), from: if resized { 0 } else { at }, to, resized }
}

fn run(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let end = [End::Clean, End::Killed, End::MachineDied][random.usize(..3)];
    let (dir, sent) = base(end);
    let copy = tempfile::tempdir().unwrap();
    copy_dir(dir.path(), copy.path());
    let mut all = Vec::new();
    files(copy.path(), &mut all);
    all.sort();
    let path = all.swap_remove(random.usize(..all.len()));
    let harm = hurt(&path, &mut random);
    let name = path.strip_prefix(copy.path()).unwrap().display().to_string();
    let context = format!("seed {seed}, {end:?}, {}", harm.what);
    let opened = Store::open(config(copy.path()), std::sync::Arc::new(()), Box::new(()));
    if name.starts_with("commitlog") && harm.resized && path.exists() && path.metadata().unwrap().len() > 0 {
        // A log file of another length is for a human to look at; the message says which.
        let error = opened.err().unwrap_or_else(|| panic!("{context}: opened")).to_string();
        assert!(error.contains(path.to_str().unwrap()), "{context}: {error}");
        return;
    }
    let store = opened.unwrap_or_else(|error| panic!("{context}: {error}"));
    verify(&store, sent, &name, &harm, &context);
    // It takes messages and comes back with them.
    let before = (store.max_offset("T", 0), store.max_offset("T", 1));
    let next = send(&store, "T", 1, "after").queue_offset;
    assert_eq!(next, before.1, "{context}");
    store.close();
    let store = open(config(copy.path()));
    assert_eq!(
        (store.max_offset("T", 0), store.max_offset("T", 1)),
        (before.0, before.1 + 1),
        "{context}: second start"
    );
    assert_eq!(whole(&store, 1).pop().map(|(_, body)| body).as_deref(), Some("after"), "{context}");
}

/// Everything the harm did not touch is there, once, in order, and nothing else is.
fn verify(store: &Store, sent: &Sent, name: &str, harm: &Harm, context: &str) {
    let in_log = name.strip_prefix("commitlog/").map(|start| start.parse::<u64>().unwrap());
    let touched = |(queue, offset): &(i32, i64), (place, size, _): &(u64, u32, String)| match in_log {
        Some(start) => start + harm.from < place + u64::from(*size) && *place < start + harm.to,
        // A hurt unit that still looks like one hides its message; a file that cannot be loaded is built again.
        None => {
            let unit =
                name.strip_prefix(&format!("consumequeue/T/{queue}/")).map(|start| start.parse::<u64>().unwrap());
            let at = *offset as u64 * 20;
            // Without its first file a queue looks as after retention; `store check` tells the difference.
            let first_removed = harm.what.starts_with("removed") && unit == Some(0);
            let resized = harm.resized && !first_removed;
            unit.is_some_and(|start| !resized && start + harm.from < at + 20 && at < start + harm.to)
        }
    };
    let mut found = BTreeSet::new();
    for queue in [0, 1] {
        let mut last = -1;
        for (offset, body) in whole(store, queue) {
            let (number, _) = sent.iter().find(|((q, _), (.., b))| *q == queue && *b == body).unwrap_or_else(|| {
                panic!("{context}: queue {queue} has an unknown message {body:?} at {offset}");
            });
            assert!(number.1 > last, "{context}: queue {queue} has {body:?} again or too late");
            last = number.1;
            found.insert(*number);
        }
    }
    for (number, message) in sent {
        assert!(touched(number, message) || found.contains(number), "{context}: message {number:?} is lost");
    }
    for i in (0..MESSAGES).step_by(17) {
        let number = ((i % 2) as i32, (i / 2) as i64);
        let keys = store.query_key("T", &format!("k{i}"), 9, 0, i64::MAX).messages;
        let has = keys.iter().any(|m| RecordView::parse(m).is_ok_and(|m| m.property("KEYS") == Some(&format!("k{i}"))));
        let excused = touched(&number, &sent[&number]) || name.starts_with("index") && !harm.resized;
        assert!(has || excused, "{context}: k{i} is not found");
    }
}

/// A queue's messages whose bodies are whole, read to its very end.
fn whole(store: &Store, queue: i32) -> Vec<(i64, String)> {
    let mut all = Vec::new();
    let mut offset = store.min_offset("T", queue);
    while offset < store.max_offset("T", queue) {
        let got = store.get(&request("T", queue, offset));
        assert!(got.next_offset > offset, "{:?} at {offset}", got.status);
        let views = got.messages.iter().filter_map(|record| RecordView::parse(record).ok());
        all.extend(
            views
                .filter(|view| view.body_crc_matches())
                .map(|view| (view.queue_offset, String::from_utf8_lossy(view.body).into_owned())),
        );
        offset = got.next_offset;
    }
    all
}

#[test]
fn any_byte_of_any_file_may_be_hurt() {
    if let Ok(seed) = std::env::var("STORE_HARM_SEED") {
        return run(seed.parse().unwrap());
    }
    let runs = std::env::var("STORE_HARM_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    let mut seeds = fastrand::Rng::new();
    for _ in 0..runs {
        run(seeds.u64(..));
    }
}
