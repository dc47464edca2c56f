//! What a large store costs: to fill, to open after a clean stop and after a kill, to run.
//!
//! `store_scale DIR fill TOPICS QUEUES GIB [SIZE]` spreads messages over all queues, in Java's file sizes, and stops in order.
//! `store_scale DIR open`  opens it, says how long that took, reads one message of each of 1,000 queues, and stops in order.
//! `store_scale DIR run SECONDS`  opens it, then sends to and reads from all queues.
//! `store_scale DIR kill SECONDS`  the same, and dies as by `kill -9`.
//!
//! Every step prints resident memory and open files. To measure a cold start, drop the page cache before `open`.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{Append, GetRequest, Store, StoreConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        [dir, "fill", topics, queues, gib, rest @ ..] => {
            let size = rest.first().map_or(Ok(1024), |s| s.parse())?;
            fill(&open(dir)?, topics.parse()?, queues.parse()?, (gib.parse::<f64>()? * f64::from(1 << 30)) as u64, size)
        }
        [dir, "open"] => {
            let store = open(dir)?;
            let began = Instant::now();
            let mut found = 0;
            for topic in store.topics().iter().take(1000) {
                let queue = store.queue_ids(topic).first().copied().unwrap_or(0);
                found += read(&store, topic, queue, store.min_offset(topic, queue));
            }
            println!("read {found} messages of 1000 queues in {:?}", began.elapsed());
            close(&store)
        }
        [dir, "run", seconds] => {
            let store = open(dir)?;
            run(&store, Duration::from_secs(seconds.parse()?))?;
            close(&store)
        }
        [dir, "kill", seconds] => {
            run(&open(dir)?, Duration::from_secs(seconds.parse()?))?;
            std::process::abort()
        }
        _ => Err("see the head of this file for what to say".into()),
    }
}

fn open(dir: &str) -> Result<Arc<Store>, store::OpenError> {
    let config =
        StoreConfig { clean_file_forcibly: false, disk_max_used_space_ratio: 95, ..StoreConfig::new(Path::new(dir)) };
    let began = Instant::now();
    let store = Store::open(config, Arc::new(()), Box::new(()))?;
    let took = began.elapsed();
    let queues: usize = store.topics().iter().map(|t| store.queue_ids(t).len()).sum();
    let bytes = store.max_physical_offset() - store.min_physical_offset();
    println!("open: {took:?} for {queues} queues, {:.2} GiB", bytes as f64 / f64::from(1 << 30));
    resources();
    Ok(store)
}

fn close(store: &Store) -> Result<(), Box<dyn std::error::Error>> {
    let began = Instant::now();
    store.close();
    println!("close: {:?}", began.elapsed());
    Ok(())
}

fn fill(
    store: &Arc<Store>,
    topics: usize,
    queues: i32,
    bytes: u64,
    size: usize,
) -> Result<(), Box<dyn std::error::Error>> {
    let names: Vec<String> = (0..topics).map(|n| format!("Topic{n:06}")).collect();
    let began = Instant::now();
    let mut turn = 0;
    while store.max_physical_offset() < bytes || turn < topics * queues as usize {
        turn = send(store, &names, queues, turn, size)?;
    }
    println!("filled with {turn} messages in {:?}", began.elapsed());
    resources();
    close(store)
}

/// Sends to the next 64 queues in turn.
fn send(
    store: &Store,
    names: &[String],
    queues: i32,
    from: usize,
    size: usize,
) -> Result<usize, Box<dyn std::error::Error>> {
    let body = vec![b'x'; size];
    let mut end = 0;
    for turn in from..from + 64 {
        let host = ([127, 0, 0, 1], 10911).into();
        let key = format!("KEYS\x01key{turn}\x02TAGS\x01TagA\x02");
        let appended = store.append(&Append {
            topic: &names[turn % names.len()],
            queue_id: (turn / names.len()) as i32 % queues,
            flag: 0,
            sys_flag: 0,
            born_timestamp: 1_700_000_000_000,
            born_host: host,
            store_host: host,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body: &body,
            properties: key.as_bytes(),
            more_properties: &[],
        })?;
        end = appended.end;
    }
    store.write_out(end)?;
    Ok(from + 64)
}

fn run(store: &Arc<Store>, time: Duration) -> Result<(), Box<dyn std::error::Error>> {
    let names = store.topics();
    let queues = names.first().map_or(1, |t| store.queue_ids(t).len() as i32).max(1);
    let (mut turn, mut got) = (0, 0);
    let began = Instant::now();
    while began.elapsed() < time {
        for at in turn..turn + 64 {
            let (topic, queue) = (&names[at % names.len()], (at / names.len()) as i32 % queues);
            got += read(store, topic, queue, store.max_offset(topic, queue) - 1);
        }
        turn = send(store, &names, queues, turn, 256)?;
    }
    println!("ran: {turn} messages sent, {got} read in {:?}", began.elapsed());
    resources();
    Ok(())
}

fn read(store: &Store, topic: &str, queue: i32, offset: i64) -> usize {
    let request =
        GetRequest { topic, queue, offset, max_messages: 1, max_bytes: 1 << 20, filter: None, may_block: true };
    store.get(&request).messages.len()
}

fn resources() {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines = status.lines().filter(|l| l.starts_with("VmRSS") || l.starts_with("RssAnon"));
    let memory: Vec<String> = lines.map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let entries = |dir| fs::read_dir(dir).map_or(0, Iterator::count);
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default().lines().count();
    println!("  {}; {} files open, {maps} mappings", memory.join(", "), entries("/proc/self/fd"));
}
