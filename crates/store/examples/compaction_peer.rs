//! The counterpart of `tests/java/CompactionPeer.java`: the same commands, the same lines.
//!
//! `compaction_peer ROOT [put N | compact | report]…`

use std::path::Path;
use std::sync::Arc;

use protocol::record::properties;
use store::{Append, GetRequest, Store, StoreConfig, TopicKinds};

const TOPIC: &str = "Compacted";

struct Kinds;

impl TopicKinds for Kinds {
    fn is_compaction(&self, topic: &str) -> bool {
        topic == TOPIC
    }
}

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
        compaction_queue_file_size: 4600,
        compaction_file_size: 46_000,
        flush_commit_log_least_pages: 0,
        ..StoreConfig::new(Path::new(&root))
    };
    let store = Store::open(config, Arc::new(Kinds), Box::new(()))?;
    while let Some(command) = args.next() {
        match command.as_str() {
            "put" => put(&store, args.next().ok_or("put needs a number")?.parse()?)?,
            "compact" => {
                flush(&store);
                store.compact_now()?;
            }
            "report" => report(&store),
            other => return Err(format!("{other}: unknown").into()),
        }
    }
    store.close();
    Ok(())
}

fn flush(store: &Store) {
    while store.stats().flush_behind_bytes > 0 {
        std::thread::yield_now();
    }
}

fn put(store: &Store, count: usize) -> Result<(), Box<dyn std::error::Error>> {
    for i in 0..count {
        let body = if i % 11 == 0 { String::new() } else { format!("rust {i} {}", "0123456789".repeat(i % 40)) };
        let keys = format!("key{}{}", i * 7 % 90, if i % 13 == 0 { " more" } else { "" });
        let properties = properties::from_pairs([("KEYS", keys.as_str()), ("TAGS", &format!("Tag{}", i % 5))]);
        let appended = store.append(&Append {
            topic: TOPIC,
            queue_id: (i % 2) as i32,
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
    for queue in 0..2 {
        let (mut offset, mut count, mut crc) = (0, 0, crc32fast::Hasher::new());
        loop {
            let got = store.get(&GetRequest {
                topic: TOPIC,
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
                println!("queue {queue} {} {} {count} {}", got.min_offset, got.max_offset, crc.finalize());
                break;
            }
            offset = got.next_offset;
        }
    }
}
