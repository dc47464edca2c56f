//! The counterpart of `tests/java/StorePeer.java`: the same commands, the same lines.
//!
//! `store_peer ROOT [put N | report | kill]…`

use std::path::Path;
use std::sync::Arc;

use protocol::record::properties;
use store::{Append, GetRequest, Store, StoreConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let root = args.next().ok_or("a root is needed")?;
    let config = StoreConfig {
        commit_log_file_size: 1 << 20,
        consume_queue_file_size: 20 * 1000,
        max_hash_slot_num: 5000,
        max_index_num: 20_000,
        clean_file_forcibly: false,
        disk_max_used_space_ratio: 95,
        ..StoreConfig::new(Path::new(&root))
    };
    let store = Store::open(config, Arc::new(()), Box::new(()))?;
    while let Some(command) = args.next() {
        match command.as_str() {
            "put" => put(&store, args.next().ok_or("put needs a number")?.parse()?)?,
            "report" => report(&store),
            // As a kill -9 would.
            "kill" => std::process::abort(),
            other => return Err(format!("{other}: unknown").into()),
        }
    }
    store.close();
    Ok(())
}

fn put(store: &Store, count: usize) -> Result<(), Box<dyn std::error::Error>> {
    for i in 0..count {
        let (topic, body) = (format!("T{}", i % 3), format!("rust {i} {}", "0123456789".repeat(i % 50)));
        let (keys, tags) = (format!("rust{i} all{}", i % 100), format!("Tag{}", i % 5));
        let properties = properties::from_pairs([("KEYS", keys.as_str()), ("TAGS", tags.as_str())]);
        let appended = store.append(&Append {
            topic: &topic,
            queue_id: (i % 8) as i32,
            flag: 0,
            sys_flag: 0,
            born_timestamp: 1_700_000_000_000,
            born_host: ([127, 0, 0, 1], 10_000).into(),
            store_host: ([127, 0, 0, 1], 10_911).into(),
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body: body.as_bytes(),
            properties: &properties,
            more_properties: &[],
        })?;
        store.write_out(appended.end)?;
    }
    Ok(())
}

fn report(store: &Store) {
    println!("log {} {}", store.min_physical_offset(), store.max_physical_offset());
    let mut topics = store.topics();
    topics.sort();
    for topic in &topics {
        for queue in store.queue_ids(topic) {
            let (min, max) = (store.min_offset(topic, queue), store.max_offset(topic, queue));
            let (mut offset, mut count, mut crc) = (min, 0, crc32fast::Hasher::new());
            while offset < max {
                let got = store.get(&GetRequest {
                    topic,
                    queue,
                    offset,
                    max_messages: 32,
                    max_bytes: 1 << 20,
                    filter: None,
                    may_block: true,
                });
                for record in &got.messages {
                    crc.update(record);
                    count += 1;
                }
                if got.next_offset <= offset {
                    break;
                }
                offset = got.next_offset;
            }
            println!("{topic} {queue} {min} {max} {count} {}", crc.finalize());
        }
    }
    for key in ["key0", "key77", "all5", "all99", "rust3", "none"] {
        for topic in &topics {
            let found = store.query_key(topic, key, 64, 0, i64::MAX);
            let mut crc = crc32fast::Hasher::new();
            found.messages.iter().for_each(|m| crc.update(m));
            println!("key {topic} {key} {} {}", found.messages.len(), crc.finalize());
        }
    }
}
