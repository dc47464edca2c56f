//! Compacted topics: odd keys, rounds that are killed, deleted under or without room, and files that are not what they should be.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rocketmq_tests::wire::Wire;
use rustix::process::Signal;

use crate::full_disk::SmallDisk;
use crate::rig::Rig;
use rocketmq_tests::requests::{Send, batch_body, delete_topic, drain, ends, make_topic, pull};

const TABLE: &str = "Table";
/// Small files and a round every half second.
const SMALL: &str = "compactionMappedFileSize=30000\ncompactionCqMappedFileSize=4600\ncompactionScheduleInternal=500\n\
                     flushIntervalCommitLog=50\n";

async fn rig(extra: &str) -> Result<(Rig, Wire)> {
    let rig = Rig::start(&format!("{SMALL}{extra}")).await?;
    let mut wire = Wire::connect(rig.broker.address)?;
    let (code, remark) = make_topic(&mut wire, TABLE, "+cleanup.policy=COMPACTION")?;
    ensure!(code == 0, "{remark}");
    Ok((rig, wire))
}

fn put(wire: &mut Wire, key: &str, value: &str) -> Result<i64> {
    Send::new(TABLE, &format!("KEYS\x01{key}\x02"), value.as_bytes()).sent(wire)
}

fn killed(rig: &mut Rig) -> Result<Wire> {
    rig.broker.signal(Signal::KILL)?;
    rig.broker.wait(Duration::from_secs(20))?;
    rig.broker = rig.plan.start()?;
    Wire::connect(rig.broker.address)
}

fn logs(store: &Path) -> PathBuf {
    store.join("compaction/compactionLog").join(TABLE).join("0")
}

/// Rounds that have dropped something since the start.
fn rounds(rig: &Rig) -> Result<usize> {
    Ok(rig.log("mqbroker")?.matches("dropped=").count())
}

/// Waits until there were more than `seen` such rounds.
async fn compacted(rig: &Rig, seen: usize) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(20);
    while rounds(rig)? <= seen {
        ensure!(Instant::now() < deadline, "no round in 20 s: {}", rig.log("mqbroker")?);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// A reader from the beginning comes to the last value of each key, in the order of their offsets.
fn check(wire: &mut Wire, expected: &HashMap<String, String>, offsets: &HashMap<String, i64>) -> Result<()> {
    let found = drain(wire, TABLE, 0)?;
    for pair in found.windows(2) {
        ensure!(pair[0].0 < pair[1].0, "offset {} follows {}", pair[1].0, pair[0].0);
    }
    let at: HashMap<i64, &[u8]> = found.iter().map(|(offset, body)| (*offset, &body[..])).collect();
    for (key, value) in expected {
        let offset = offsets[key];
        ensure!(at.get(&offset) == Some(&value.as_bytes()), "key {:.40?} at {offset} is gone or another", key);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_keys_offsets_and_tombstones() -> Result<()> {
    let (mut rig, mut wire) = rig("maxOffsetMapSize=2000").await?;
    let long = "k".repeat(30_000);
    let keys = [
        long.as_str(),
        "a",
        "a b",
        "b a",
        " a",
        "名 字",
        "\u{202e}",
        "a\0b",
        "a#b",
        "a_0",
        "\"}",
        "TAGS",
        "\u{3000}k",
        "../../x",
    ];
    let (mut expected, mut offsets) = (HashMap::new(), HashMap::new());
    for round in 0..20 {
        for key in keys {
            // The largest does not always fit into a file of this size.
            let value = format!("{round} {}", "v".repeat(fastrand::usize(0..400)));
            let offset = put(&mut wire, key, &value)?;
            let key = key.trim_ascii().to_owned();
            if key.len() < 1000 {
                expected.insert(key.clone(), value);
                offsets.insert(key, offset);
            }
        }
    }
    for blank in ["", "KEYS\x01\x02", "KEYS\x01 \x02", "KEYS\x01\u{3000}\x02", "a\x01b\x02"] {
        ensure!(Send::new(TABLE, blank, b"x").ask(&mut wire)?.0 != 0, "without a key: {blank:?}");
    }
    compacted(&rig, 0).await?;
    check(&mut wire, &expected, &offsets)?;
    let (first, end) = ends(&mut wire, TABLE, 0)?;
    for offset in [-1, i64::MIN, 0, first - 1, first, first + 1, end - 1, end, end + 1, i64::MAX - 1, i64::MAX] {
        let pulled = pull(&mut wire, TABLE, 0, offset)?;
        ensure!((0..=end).contains(&pulled.next), "a pull at {offset} of {end} goes on at {}", pulled.next);
        ensure!(pulled.records.iter().all(|(at, _)| *at >= offset), "a pull at {offset} goes back");
    }
    // A message without a body takes its key away; a producer can send one as part of a batch.
    let tombstones = batch_body([(&b""[..], "KEYS\x01a\x02"), (b"", "KEYS\x01a b\x02")])?;
    Send::batch(TABLE, "KEYS\x01x\x02", &tombstones).sent(&mut wire)?;
    let seen = rounds(&rig)?;
    for round in 0..400 {
        put(&mut wire, "filler", &format!("{round} {}", "f".repeat(200)))?;
    }
    compacted(&rig, seen).await?;
    rig.unharmed(200, 200).await
}

/// Keys are asked for of every message of a batch: one without would be in no compacted log, with a line for each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_without_keys() -> Result<()> {
    let (mut rig, mut wire) = rig("").await?;
    let bodies: Vec<(&[u8], &str)> = (0..500).map(|_| (&b"x"[..], "")).collect();
    let none = batch_body(bodies)?;
    for properties in ["", "KEYS\x01k\x02", "KEYS\x01k\x02UNIQ_KEY\x01u\x02"] {
        let (code, remark) = Send::batch(TABLE, properties, &none).ask(&mut wire)?;
        ensure!(code == 13, "{properties:?}: {code} {remark}");
    }
    let good = batch_body([(&b"x"[..], "KEYS\x01a\x02"), (b"y", "KEYS\x01b\x02")])?;
    Send::batch(TABLE, "", &good).sent(&mut wire)?;
    ensure!(drain(&mut wire, TABLE, 0)?.len() == 2, "a batch with keys");
    rig.unharmed(150, 100).await
}

/// More keys than the table of a round holds, and kills in the middle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_during_rounds() -> Result<()> {
    let (mut rig, mut wire) = rig("compactionScheduleInternal=20\nmaxOffsetMapSize=20000").await?;
    let (mut expected, mut offsets) = (HashMap::new(), HashMap::new());
    for round in 0..12 {
        for at in 0..1500 {
            let (key, value) = (format!("{}", fastrand::u32(..2000)), format!("{round} {at} {}", "v".repeat(50)));
            offsets.insert(key.clone(), put(&mut wire, &key, &value)?);
            expected.insert(key, value);
        }
        if fastrand::bool() {
            drain(&mut wire, TABLE, 0)?;
        }
        tokio::time::sleep(Duration::from_millis(fastrand::u64(..1500))).await;
        wire = killed(&mut rig)?;
        check(&mut wire, &expected, &offsets)
            .with_context(|| format!("after kill {round}: {:?}", rig.log("mqbroker")))?;
    }
    compacted(&rig, 0).await?;
    check(&mut wire, &expected, &offsets)?;
    ensure!(drain(&mut wire, TABLE, 0)?.len() < 18_000, "nothing was dropped");
    rig.unharmed(250, 400).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_during_rounds() -> Result<()> {
    let (mut rig, mut wire) = rig("compactionScheduleInternal=1").await?;
    for round in 0..15 {
        for at in 0..1000 {
            put(&mut wire, &format!("{}", at % 10), &format!("{round} {at} {}", "v".repeat(100)))?;
        }
        if fastrand::bool() {
            drain(&mut wire, TABLE, 0)?;
        }
        tokio::time::sleep(Duration::from_millis(fastrand::u64(..1200))).await;
        ensure!(delete_topic(&mut wire, TABLE)? == 0, "round {round}: not deleted");
        ensure!(!logs(&rig.plan.store()).exists(), "round {round}: the compacted log stays");
        let kill = round % 5 == 4;
        if kill {
            wire = killed(&mut rig)?;
        }
        make_topic(&mut wire, TABLE, "+cleanup.policy=COMPACTION")?;
        // Recovery finds the messages of the last moments in the commit log, as Java's does.
        ensure!(drain(&mut wire, TABLE, 0)?.is_empty() || kill, "round {round}: messages of the deleted topic");
    }
    rig.unharmed(250, 400).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_room_for_rounds() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let Some(disk) = SmallDisk::tmpfs(folder.path(), 32) else { return Ok(()) };
    let extra = format!(
        "storePathRootDir={}\nmappedFileSizeCommitLog=1048576\nmappedFileSizeConsumeQueue=60000\nmessageIndexEnable=false\n\
         diskMaxUsedSpaceRatio=95\ncleanFileForciblyEnable=false\ndiskSpaceWarningLevelRatio=99\ndiskSpaceCleanForciblyRatio=99\n\
         compactionMappedFileSize=1000000\ncompactionCqMappedFileSize=100000",
        folder.path().display()
    );
    let (mut rig, mut wire) = rig(&extra).await?;
    let ballast = folder.path().join("ballast");
    fs::write(&ballast, vec![0; 18 << 20])?;
    let (mut expected, mut offsets) = (HashMap::new(), HashMap::new());
    let mut refused = 0;
    for at in 0..14_000 {
        let (key, value) = (format!("{}", at % 4000), format!("{at} {}", "v".repeat(500)));
        let answer = Send::new(TABLE, &format!("KEYS\x01{key}\x02"), value.as_bytes()).command();
        let answer = wire.ask(&answer)?;
        if answer.code == 0 {
            offsets.insert(key.clone(), rocketmq_tests::requests::number(&answer, "queueOffset"));
            expected.insert(key, value);
        } else {
            refused += 1;
            if refused > 50 {
                break;
            }
        }
        if at % 2000 == 1999 {
            let _ = pull(&mut wire, TABLE, 0, at / 2);
            tokio::time::sleep(Duration::from_millis(700)).await;
        }
    }
    println!("{refused} refused, {} keys", expected.len());
    tokio::time::sleep(Duration::from_secs(2)).await;
    ensure!(rig.broker.is_alive(), "the broker died: {}", rig.log("mqbroker")?);
    wire = killed(&mut rig).context("a start without room")?;
    fs::remove_file(&ballast)?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    check(&mut wire, &expected, &offsets)?;
    let lines = rig.log("mqbroker")?.lines().count();
    ensure!(lines < 300, "{lines} lines of log: {}", rig.log("mqbroker")?);
    drop(rig);
    drop(disk);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_not_what_they_should_be() -> Result<()> {
    let (mut rig, mut wire) = rig("").await?;
    let (mut expected, mut offsets) = (HashMap::new(), HashMap::new());
    let store = &rig.plan.store();
    let pairs = || -> Result<Vec<String>> {
        let names = fs::read_dir(logs(store))?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.len() == 20).collect();
        names.sort();
        Ok(names)
    };
    let queues = store.join("compaction/compactionCq").join(TABLE).join("0");
    type Damage<'a> = (&'a str, Box<dyn Fn(&[String]) -> Result<()> + 'a>);
    let checkpoint = |text: &'static str| {
        let write = move |_: &[String]| Ok(fs::write(store.join("compaction/position-checkpoint"), text)?);
        Box::new(write) as Box<dyn Fn(&[String]) -> Result<()> + '_>
    };
    let damages: Vec<Damage> = vec![
        ("no checkpoint", Box::new(|_| Ok(fs::remove_file(store.join("compaction/position-checkpoint"))?))),
        ("an empty checkpoint", checkpoint("")),
        ("a checkpoint far ahead", checkpoint("{\"queueOffsetMap\":{\"Table_0\":9223372036854775807}}")),
        ("a negative checkpoint", checkpoint("{\"queueOffsetMap\":{\"Table_0\":-9223372036854775808,\"x\":1}}")),
        ("a checkpoint of another shape", checkpoint("{\"queueOffsetMap\":[]}")),
        ("the first units gone", Box::new(|names| Ok(fs::remove_file(queues.join(&names[0]))?))),
        ("the last records gone", Box::new(|names| Ok(fs::remove_file(logs(store).join(&names[names.len() - 1]))?))),
        ("a middle pair gone", Box::new(|names| Ok(fs::remove_file(logs(store).join(&names[names.len() / 2]))?))),
        ("units of zeros", Box::new(|names| Ok(fs::write(queues.join(&names[1]), vec![0; 4600])?))),
        ("units of ones", Box::new(|names| Ok(fs::write(queues.join(&names[0]), vec![0xFF; 4600])?))),
        (
            "records of ones",
            Box::new(|names| {
                let path = logs(store).join(&names[0]);
                let len = fs::metadata(&path)?.len() as usize;
                Ok(fs::write(path, vec![0xFF; len])?)
            }),
        ),
        (
            "two files changed places",
            Box::new(|names| {
                let (a, b) = (logs(store).join(&names[0]), logs(store).join(&names[1]));
                let spare = store.join("spare");
                fs::rename(&a, &spare)?;
                fs::rename(&b, &a)?;
                Ok(fs::rename(&spare, &b)?)
            }),
        ),
        (
            "foreign files",
            Box::new(|_| {
                fs::write(logs(store).join("README"), "x")?;
                fs::write(queues.join(".hidden"), "x")?;
                fs::create_dir_all(logs(store).join("folder"))?;
                fs::write(store.join("compaction/compactionLog/file"), "x")?;
                fs::write(store.join("compaction/compactionLog").join(TABLE).join("1"), "x")?;
                fs::create_dir_all(store.join("compaction/compactionLog").join(TABLE).join("-5"))?;
                Ok(fs::create_dir_all(store.join("compaction/compactionLog").join(TABLE).join("x"))?)
            }),
        ),
        (
            "leftovers of a round",
            Box::new(|names| {
                fs::create_dir_all(logs(store).join("compacting"))?;
                Ok(fs::copy(logs(store).join(&names[0]), logs(store).join("compacting").join(&names[0])).map(|_| ())?)
            }),
        ),
    ];
    for (what, damage) in &damages {
        for kill in [false, true] {
            for at in 0..400 {
                let (key, value) = (format!("{}", fastrand::u32(..150)), format!("{what} {at} {}", "v".repeat(300)));
                offsets.insert(key.clone(), put(&mut wire, &key, &value)?);
                expected.insert(key, value);
            }
            drain(&mut wire, TABLE, 0)?;
            compacted(&rig, 0).await?;
            rig.broker.signal(if kill { Signal::KILL } else { Signal::TERM })?;
            rig.broker.wait(Duration::from_secs(20))?;
            let names = pairs()?;
            ensure!(names.len() > 2, "{what}: only {names:?}");
            damage(&names).with_context(|| (*what).to_owned())?;
            rig.broker =
                rig.plan.start().with_context(|| format!("{what}: {}", rig.log("mqbroker").unwrap_or_default()))?;
            wire = Wire::connect(rig.broker.address)?;
            check(&mut wire, &expected, &offsets)
                .with_context(|| format!("{what}, kill {kill}: {}", rig.log("mqbroker").unwrap_or_default()))?;
        }
    }
    rig.unharmed(200, 200).await
}

/// Names and sizes that would lead arithmetic astray: the start refuses, naming the file, or goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_with_absurd_names() -> Result<()> {
    for name in [
        "18446744073709551615",
        "18446744073709551600",
        "00000000000000000001",
        "9223372036854775807",
        "+5",
        "00000000000000004600",
    ] {
        for folder in [
            "commitlog",
            "consumequeue/Table/0",
            "compaction/compactionLog/Table/0",
            "compaction/compactionCq/Table/0",
            "index",
        ] {
            for empty in [false, true] {
                let (mut rig, mut wire) = rig("").await?;
                for at in 0..50 {
                    put(&mut wire, &format!("{at}"), &"v".repeat(1000))?;
                }
                drain(&mut wire, TABLE, 0)?;
                rig.broker.signal(Signal::TERM)?;
                rig.broker.wait(Duration::from_secs(20))?;
                let dir = rig.plan.store().join(folder);
                let len =
                    fs::read_dir(&dir)?.flatten().filter_map(|e| e.metadata().ok()).map(|m| m.len()).max().unwrap_or(0);
                fs::File::create(dir.join(name))?.set_len(if empty { 0 } else { len })?;
                let output = std::process::Command::new(rocketmq_tests::process::binary("mqbroker")?)
                    .args(["store", "check", "-c"])
                    .arg(rig.home.path().join("broker.properties"))
                    .env("HOME", rig.home.path())
                    .output()?;
                let text =
                    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
                ensure!(
                    output.status.code().is_some_and(|code| code <= 2) && !text.contains("panic"),
                    "check with {folder}/{name}: {text}"
                );
                match rig.plan.start() {
                    Ok(broker) => {
                        rig.broker = broker;
                        let mut wire = Wire::connect(rig.broker.address)?;
                        let found =
                            drain(&mut wire, TABLE, 0).with_context(|| format!("{folder}/{name} empty {empty}"))?;
                        ensure!(
                            found.len() == 50,
                            "{folder}/{name} empty {empty}: {} messages: {}",
                            found.len(),
                            rig.log("mqbroker")?
                        );
                        rig.unharmed(150, 100).await.with_context(|| format!("{folder}/{name} empty {empty}"))?;
                    }
                    Err(_) => {
                        let text = String::from_utf8_lossy(&rig.plan.start_in_vain()?.stderr).into_owned();
                        println!("{folder}/{name} empty {empty}: {}", text.lines().last().unwrap_or_default());
                        ensure!(text.contains(folder) && !text.contains("panic"), "{folder}/{name}: {text}");
                    }
                }
            }
        }
    }
    Ok(())
}
