//! The counterpart of `tests/java/StorePeer.java`: the same commands, the same lines.

mod report;
mod workload;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use store::{QueueType, Store, StoreConfig, TopicKinds};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const RESERVED: Duration = Duration::from_secs(24 * 3600);

struct Kinds;

impl TopicKinds for Kinds {
    fn queue_type(&self, topic: &str) -> QueueType {
        if topic == workload::BATCH_QUEUES { QueueType::Batch } else { QueueType::Simple }
    }

    fn is_compaction(&self, topic: &str) -> bool {
        topic == workload::COMPACTED
    }
}

fn main() -> Outcome {
    let mut args = std::env::args().skip(1).peekable();
    let mut config = StoreConfig {
        clean_file_forcibly: false,
        disk_max_used_space_ratio: 95,
        max_msgs_num_batch: 1_000_000,
        // `clean` alone removes files: for the store's own rounds all are too young.
        file_reserved_time: RESERVED,
        delete_when: (0..24).collect(),
        delete_commit_log_files_interval: Duration::ZERO,
        clean_resource_interval: Duration::from_secs(24 * 3600),
        compaction_interval: Duration::from_secs(24 * 3600),
        ..StoreConfig::new(args.next().ok_or("a root is needed")?)
    };
    while let Some(setting) = args.next_if(|a| ["small", "crc", "ext"].contains(&a.as_str())) {
        match setting.as_str() {
            "small" => small(&mut config),
            "crc" => config.append_prop_crc = true,
            "ext" => {
                config.enable_consume_queue_ext = true;
                config.enable_lmq = true;
                config.enable_multi_dispatch = true;
            }
            other => return Err(format!("{other}: unknown").into()),
        }
    }
    let light = config.enable_lmq;
    let store = Store::open(config, Arc::new(Kinds), Box::new(()))?;
    while let Some(command) = args.next() {
        let mut number = || -> Result<usize, Box<dyn std::error::Error>> {
            Ok(args.next().ok_or("the command needs a number")?.parse()?)
        };
        match command.as_str() {
            "report" => report::print(&store, number()?),
            "clean" => {
                let later = (SystemTime::now() + 2 * RESERVED).duration_since(UNIX_EPOCH)?.as_millis() as i64;
                for _ in 0..number()? {
                    store.delete_expired(later);
                }
            }
            "put" => {
                let round = args.next().ok_or("put needs the name of a round")?;
                workload::put(&store, &round, args.next().ok_or("put needs a number")?.parse()?, light)?;
            }
            "compact" => {
                store.compact_now()?;
            }
            // As a kill -9 would.
            "kill" => std::process::abort(),
            other => return Err(format!("{other}: unknown").into()),
        }
    }
    store.close();
    Ok(())
}

fn small(config: &mut StoreConfig) {
    config.commit_log_file_size = 1 << 20;
    config.consume_queue_file_size = 20 * 1000;
    config.max_hash_slot_num = 5000;
    config.max_index_num = 20_000;
    config.consume_queue_ext_file_size = 64 << 10;
    config.batch_consume_queue_file_size = 46 * 1000;
    config.compaction_queue_file_size = 46 * 500;
    config.compaction_file_size = 256 << 10;
}
