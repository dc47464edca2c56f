//! `mqbroker store`, as an operator runs it.

#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use serde_json::{Value, json};
use store::{Append, Store, StoreConfig};

fn config(dir: &Path) -> StoreConfig {
    StoreConfig { commit_log_file_size: 16 << 10, max_hash_slot_num: 500, max_index_num: 400, ..StoreConfig::new(dir) }
}

/// Puts messages into queue 0 of T; returns their places.
fn fill(store: &Store, bodies: &[&[u8]]) -> Vec<u64> {
    let put = |body: &&[u8]| {
        let appended = store.append(&Append {
            topic: "T",
            queue_id: 0,
            flag: 7,
            sys_flag: 0,
            born_timestamp: 1_700_000_000_000,
            born_host: ([127, 0, 0, 1], 10_000).into(),
            store_host: ([127, 0, 0, 1], 10_911).into(),
            reconsume_times: 2,
            prepared_transaction_offset: 0,
            body,
            properties: b"KEYS\x01k1\x02TAGS\x01A\x02",
            more_properties: &[],
        });
        let appended = appended.unwrap();
        store.write_out(appended.end).unwrap();
        appended.physical_offset
    };
    bodies.iter().map(put).collect()
}

fn open(dir: &Path) -> Arc<Store> {
    Store::open(config(dir), Arc::new(()), Box::new(())).unwrap()
}

fn run(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mqbroker"))
        .arg("store")
        .args(arguments)
        .arg("--store-path")
        .arg(dir)
        .args(["-D", "mappedFileSizeCommitLog=16384", "-D", "maxHashSlotNum=500", "-D", "maxIndexNum=400"])
        .output()
        .unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn check_says_what_is_wrong_and_ends_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let places = fill(&store, &[b"one", b"two", b"three"]);
    let busy = run(dir.path(), &["check"]);
    assert_eq!(busy.status.code(), Some(255));
    assert!(String::from_utf8_lossy(&busy.stderr).contains("in use by a running broker"), "{busy:?}");
    store.close();
    let good = run(dir.path(), &["check"]);
    assert_eq!(good.status.code(), Some(0), "{good:?}");
    let text = String::from_utf8_lossy(&good.stdout);
    assert!(text.starts_with("checked 3 records in 1 commit log files") && text.ends_with("no faults\n"), "{text}");
    let log = File::options().write(true).open(dir.path().join(format!("commitlog/{:020}", 0))).unwrap();
    log.write_all_at(b"X", places[1] + 88).unwrap();
    let bad = run(dir.path(), &["check"]);
    assert_eq!(bad.status.code(), Some(1), "{bad:?}");
    let text = String::from_utf8_lossy(&bad.stdout);
    let first = text.lines().find(|line| line.starts_with("damage in the commit log: 1, ")).unwrap();
    assert!(first.contains(&format!("byte {0}, offset {0}", places[1])), "{first}");
    assert!(first.ends_with("[data is lost]"), "{first}");
}

#[test]
fn dump_shows_all_of_a_record() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let places = fill(&store, &[b"one", &[0xFF, 0xFE], b"three"]);
    store.close();
    let all = lines(&run(dir.path(), &["dump"]));
    assert_eq!(all.len(), 3);
    let first = &all[0];
    assert_eq!(first["storeTimestamp"].as_i64().unwrap() / 1_000_000_000_000, 1);
    let expected = json!({
        "offset": 0, "size": 91 + 3 + 1 + 15, "version": 1, "msgId": "7F00000100002A9F0000000000000000", "topic": "T",
        "queueId": 0, "queueOffset": 0, "flag": 7, "sysFlag": 0, "transaction": "none", "compressed": false,
        "bornTimestamp": 1_700_000_000_000_i64, "bornHost": "127.0.0.1:10000", "storeHost": "127.0.0.1:10911",
        "reconsumeTimes": 2, "preparedTransactionOffset": 0, "bodyCrcMatches": true, "bodySize": 3,
        "propertiesSize": 15, "properties": {"KEYS": "k1", "TAGS": "A"}, "body": "one",
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&first[name], value, "{name}");
    }
    assert_eq!(all[1]["bodyBase64"], "//4=");
    let queue = lines(&run(dir.path(), &["dump", "--topic", "T", "--queue", "0", "--from", "2"]));
    assert_eq!((queue.len(), &queue[0]["body"]), (1, &json!("three")));
    let one = lines(&run(dir.path(), &["dump", "--offset", &places[1].to_string(), "--to", &places[2].to_string()]));
    assert_eq!((one.len(), &one[0]["queueOffset"]), (1, &json!(1)));
    assert_eq!(lines(&run(dir.path(), &["dump", "--topic", "T", "--key", "k1"])).len(), 3);
    assert_eq!(run(dir.path(), &["dump", "--key", "k1"]).status.code(), Some(1), "a key is one of a topic");
}

#[test]
fn rebuild_makes_a_store_whole() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    fill(&store, &[b"one", b"two", b"three"]);
    store.close();
    std::fs::remove_dir_all(dir.path().join("consumequeue")).unwrap();
    assert_eq!(run(dir.path(), &["check"]).status.code(), Some(1));
    let built = run(dir.path(), &["rebuild", "--remove-old"]);
    let text = String::from_utf8_lossy(&built.stdout);
    assert!(text.contains("rebuilt 1 queues with 3 messages and 1 index files with 6 entries"), "{built:?}");
    assert_eq!(run(dir.path(), &["check"]).status.code(), Some(0));
    assert_eq!(lines(&run(dir.path(), &["dump", "--topic", "T", "--queue", "0"])).len(), 3);
}
