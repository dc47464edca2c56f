//! What a message costs in the store, without a network.
//!
//! `store_bench [--dir D] [--threads N] [--seconds S] [--size BYTES] [--group N] [--queues N] [--keys] [--sync]`
//!
//! Prints messages per second and CPU microseconds per message (all threads of the process, background ones included) for
//! appending in groups and for reading in batches of 32, and beside the synced run the disk's own `fdatasync` rate.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use store::{Append, FlushDiskType, GetRequest, Store, StoreConfig};

#[derive(Clone)]
struct Options {
    dir: Option<PathBuf>,
    threads: usize,
    seconds: u64,
    size: usize,
    group: usize,
    queues: i32,
    keys: bool,
    sync: bool,
}

fn options() -> Result<Options, String> {
    let mut o =
        Options { dir: None, threads: 2, seconds: 3, size: 1024, group: 16, queues: 8, keys: false, sync: false };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let mut value = || args.next().ok_or(format!("{name} needs a value"));
        let number = |text: String| text.parse::<usize>().map_err(|e| format!("{text}: {e}"));
        match name.as_str() {
            "--dir" => o.dir = Some(value()?.into()),
            "--threads" => o.threads = number(value()?)?,
            "--seconds" => o.seconds = number(value()?)? as u64,
            "--size" => o.size = number(value()?)?,
            "--group" => o.group = number(value()?)?.max(1),
            "--queues" => o.queues = number(value()?)?.max(1) as i32,
            "--keys" => o.keys = true,
            "--sync" => o.sync = true,
            _ => return Err(format!("{name}: unknown")),
        }
    }
    Ok(o)
}

/// CPU time of the process so far, in ticks of 10 ms.
fn cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<u64> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2).flat_map(str::parse).collect();
    Duration::from_millis(fields.iter().sum::<u64>() * 10)
}

struct Measured {
    messages: u64,
    wall: Duration,
    cpu: Duration,
}

impl Measured {
    fn print(&self, what: &str) {
        let rate = self.messages as f64 / self.wall.as_secs_f64();
        let each = self.cpu.as_secs_f64() * 1e6 / self.messages.max(1) as f64;
        println!("{what:<28} {rate:>10.0} msg/s  {each:>7.3} CPU us/msg");
    }
}

fn measure(run: impl FnOnce() -> u64) -> Measured {
    let (begin, cpu_begin) = (Instant::now(), cpu());
    let messages = run();
    Measured { messages, wall: begin.elapsed(), cpu: cpu() - cpu_begin }
}

fn produce(store: &Arc<Store>, o: &Options) -> u64 {
    let stop = AtomicBool::new(false);
    let sent = AtomicU64::new(0);
    let host: SocketAddr = ([127, 0, 0, 1], 10911).into();
    std::thread::scope(|scope| {
        for t in 0..o.threads {
            let (stop, sent, store) = (&stop, &sent, store.clone());
            scope.spawn(move || {
                let body = vec![b'x'; o.size];
                let properties = b"WAIT\x01true\x02TAGS\x01TagA\x02".as_slice();
                let mut more =
                    b"UNIQ_KEY\x017F0000010BB863947C6B7C1E8D5A0000\x02CLUSTER\x01DefaultCluster\x02".to_vec();
                if !o.keys {
                    more = b"MSG_REGION\x01DefaultRegion\x02CLUSTER\x01DefaultCluster\x02".to_vec();
                }
                let (done, results) = mpsc::channel();
                let mut n = t as u64;
                while !stop.load(Ordering::Relaxed) {
                    let mut end = 0;
                    for _ in 0..o.group {
                        n += 1;
                        if o.keys {
                            let digits = format!("{n:016X}");
                            more[25..41].copy_from_slice(digits.as_bytes());
                        }
                        let appended = store.append(&Append {
                            topic: "BenchmarkTest",
                            queue_id: (n % o.queues as u64) as i32,
                            flag: 0,
                            sys_flag: 0,
                            born_timestamp: 1_700_000_000_000,
                            born_host: host,
                            store_host: host,
                            reconsume_times: 0,
                            prepared_transaction_offset: 0,
                            body: &body,
                            properties,
                            more_properties: &more,
                        });
                        match appended {
                            Ok(appended) => end = appended.end,
                            Err(error) => return eprintln!("append: {error}"),
                        }
                    }
                    if let Err(error) = store.write_out(end) {
                        return eprintln!("write: {error}");
                    }
                    if o.sync {
                        let done = done.clone();
                        store.when_flushed(end, Box::new(move |r| drop(done.send(r))));
                        if !matches!(results.recv(), Ok(Ok(()))) {
                            return eprintln!("flush failed");
                        }
                    }
                    sent.fetch_add(o.group as u64, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(Duration::from_secs(o.seconds));
        stop.store(true, Ordering::Relaxed);
    });
    sent.load(Ordering::Relaxed)
}

fn consume(store: &Store, o: &Options) -> u64 {
    let mut read = 0;
    let mut checksum = 0_u64;
    let deadline = Instant::now() + Duration::from_secs(o.seconds);
    while Instant::now() < deadline {
        for queue in 0..o.queues {
            let mut offset = store.min_offset("BenchmarkTest", queue);
            loop {
                let got = store.get(&GetRequest {
                    topic: "BenchmarkTest",
                    queue,
                    offset,
                    max_messages: 32,
                    max_bytes: 1 << 20,
                    filter: None,
                    may_block: true,
                });
                // The network layer would touch every byte in the kernel; here one per message shows that it is there.
                checksum += got.messages.iter().map(|m| u64::from(m[m.len() - 1])).sum::<u64>();
                read += got.messages.len() as u64;
                if got.messages.is_empty() || Instant::now() > deadline {
                    break;
                }
                offset = got.next_offset;
            }
        }
    }
    std::hint::black_box(checksum);
    read
}

fn disk_syncs(dir: &std::path::Path) -> std::io::Result<f64> {
    let file = fs::File::create(dir.join("sync-probe"))?;
    file.set_len(64 << 20)?;
    let data = vec![1; 17_000];
    let begin = Instant::now();
    let mut count = 0;
    while begin.elapsed() < Duration::from_secs(1) {
        file.write_all_at(&data, count % 3000 * 17_000)?;
        file.sync_data()?;
        count += 1;
    }
    Ok(count as f64 / begin.elapsed().as_secs_f64())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let o = options()?;
    let temporary = std::env::temp_dir().join(format!("store-bench-{}", std::process::id()));
    let dir = o.dir.clone().unwrap_or(temporary);
    fs::create_dir_all(&dir)?;
    let config = StoreConfig {
        flush_disk_type: if o.sync { FlushDiskType::Sync } else { FlushDiskType::Async },
        message_index_enable: o.keys,
        clean_file_forcibly: false,
        ..StoreConfig::new(dir.join("store"))
    };
    if o.sync {
        println!("disk alone: {:.0} fdatasync/s after writes of 17 KB", disk_syncs(&dir)?);
    }
    let begin = Instant::now();
    let store = Store::open(config.clone(), Arc::new(()), Box::new(()))?;
    println!("open, empty: {:?}", begin.elapsed());
    measure(|| produce(&store, &o)).print(&format!("append, {} threads x {}", o.threads, o.group));
    let stats = store.stats();
    println!(
        "  {} groups, {:.1} messages each",
        stats.groups_written,
        stats.messages_appended as f64 / stats.groups_written.max(1) as f64
    );
    measure(|| consume(&store, &o)).print("get, batches of 32");
    let begin = Instant::now();
    store.close();
    println!("close: {:?}", begin.elapsed());
    let begin = Instant::now();
    let store = Store::open(config.clone(), Arc::new(()), Box::new(()))?;
    println!("open after close: {:?}", begin.elapsed());
    produce(&store, &Options { seconds: 1, ..o.clone() });
    store.abandon();
    drop(store);
    let begin = Instant::now();
    let store = Store::open(config, Arc::new(()), Box::new(()))?;
    println!("open after kill: {:?}", begin.elapsed());
    store.close();
    fs::remove_dir_all(&dir)?;
    Ok(())
}
