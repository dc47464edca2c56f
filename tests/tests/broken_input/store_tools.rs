//! `mqbroker store check|dump|rebuild` on stores that are in use, not there, not what they should be, without room, or killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rocketmq_tests::process::binary;
use rocketmq_tests::requests::{Send, batch_body, drain, ends, make_topic};
use rocketmq_tests::wire::Wire;
use rustix::process::Signal;

use crate::full_disk::SmallDisk;
use crate::rig::Rig;

const CONFIG: &str = "enableLmq=true\nenableMultiDispatch=true\nenableConsumeQueueExt=true\nmappedFileSizeCommitLog=1048576\n\
                      mappedFileSizeConsumeQueue=20000\nmappedFileSizeConsumeQueueExt=20000\nmapperFileSizeBatchConsumeQueue=4600\n\
                      maxHashSlotNum=1000\nmaxIndexNum=4000\n";
const TOPICS: [&str; 4] = ["Plain", "Batches", "Table", "%LMQ%a"];

type Content = Vec<((i64, i64), Vec<(i64, Vec<u8>)>)>;

/// A broker with messages of all kinds.
async fn filled(extra: &str, messages: usize) -> Result<(Rig, Content)> {
    let rig = Rig::start(&format!("{CONFIG}{extra}")).await?;
    let mut wire = Wire::connect(rig.broker.address)?;
    make_topic(&mut wire, "Plain", "")?;
    make_topic(&mut wire, "Batches", "+queue.type=BatchCQ")?;
    make_topic(&mut wire, "Table", "+cleanup.policy=COMPACTION")?;
    let items = batch_body([(&b"x"[..], ""), (b"y", "")])?;
    for at in 0..messages {
        let body = format!("{at} {}", "x".repeat(200));
        let properties = format!("TAGS\x01T\x02KEYS\x01k{at}\x02INNER_MULTI_DISPATCH\x01%LMQ%a\x02");
        Send::new("Plain", &properties, body.as_bytes()).sent(&mut wire)?;
        Send::batch("Batches", "UNIQ_KEY\x01u\x02", &items).sent(&mut wire)?;
        Send::new("Table", &format!("KEYS\x01k{}\x02", at % 50), body.as_bytes()).sent(&mut wire)?;
    }
    let content = content(&mut wire)?;
    Ok((rig, content))
}

fn content(wire: &mut Wire) -> Result<Content> {
    TOPICS.iter().map(|topic| Ok((ends(wire, topic, 0)?, drain(wire, topic, 0)?))).collect()
}

fn stop(rig: &mut Rig, signal: Signal) -> Result<()> {
    rig.broker.signal(signal)?;
    rig.broker.wait(Duration::from_secs(20))?;
    Ok(())
}

fn command(rig: &Rig, what: &str) -> Result<Command> {
    let mut command = Command::new("timeout");
    command.arg("60").arg(binary("mqbroker")?).args(["store", what, "-c"]);
    command.arg(rig.home.path().join("broker.properties")).env("HOME", rig.home.path());
    Ok(command)
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a tool that must end by itself and not by a panic; its exit code and what it said.
fn run(rig: &Rig, what: &str, more: &[&str]) -> Result<(i32, String)> {
    let output = command(rig, what)?.args(more).output()?;
    let said = text(&output);
    ensure!(!said.contains("panicked"), "{what} {more:?}: {said}");
    let code = output.status.code().with_context(|| format!("{what} {more:?} was killed: {said}"))?;
    ensure!(code != 124, "{what} {more:?} does not end");
    Ok((code, said))
}

/// What a rebuild may have left is put right by a start: all messages are there.
async fn whole(rig: &mut Rig, expected: &Content) -> Result<()> {
    rig.broker = rig.plan.start().with_context(|| rig.log("mqbroker").unwrap_or_default())?;
    let mut wire = Wire::connect(rig.broker.address)?;
    let found = content(&mut wire)?;
    for ((topic, found), expected) in TOPICS.iter().zip(&found).zip(expected) {
        ensure!(
            found == expected,
            "{topic}: {:?} with {} records, expected {:?} with {}: {}",
            found.0,
            found.1.len(),
            expected.0,
            expected.1.len(),
            rig.log("mqbroker")?
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_in_use_or_not_there() -> Result<()> {
    let (mut rig, expected) = filled("", 100).await?;
    for what in ["check", "dump", "rebuild"] {
        let (code, said) = run(&rig, what, &[])?;
        ensure!(code != 0 && said.contains("in use"), "{what} on a running broker: {code} {said}");
    }
    rig.unharmed(150, 100).await?;
    let file = rig.home.path().join("a-file");
    fs::write(&file, "x")?;
    let empty = rig.home.path().join("empty");
    fs::create_dir(&empty)?;
    for what in ["check", "dump", "rebuild"] {
        for place in [&file, &rig.home.path().join("missing"), Path::new("/proc/self/mem"), Path::new("")] {
            let (code, said) = run(&rig, what, &["--store-path", &place.to_string_lossy()])?;
            ensure!(code != 0, "{what} on {}: {said}", place.display());
        }
        let (code, said) = run(&rig, what, &["--store-path", &empty.to_string_lossy()])?;
        ensure!(code != 0 && said.contains("no store"), "{what} on an empty folder: {code} {said}");
        ensure!(fs::read_dir(&empty)?.next().is_none(), "{what} left something in an empty folder");
    }
    for more in [
        ["--offset", "18446744073709551615"],
        ["--offset", "9223372036854775807"],
        ["--offset", "x"],
        ["--to", "-1"],
        ["--queue", "0"],
        ["--topic", "../../etc"],
        ["--store-path", "\n"],
    ] {
        run(&rig, "dump", &more)?;
    }
    for topic in ["..", "/etc", "", "Unharmed", "%LMQ%a"] {
        for queue in ["0", "2147483648", "9223372036854775807"] {
            for from in ["0", "99", "9223372036854775807"] {
                run(&rig, "dump", &["--topic", topic, "--queue", queue, "--from", from, "--max", "3"])?;
            }
        }
    }
    stop(&mut rig, Signal::TERM)?;
    for topic in ["..", "/etc", "", "Unharmed", "Batches", "%LMQ%a"] {
        for queue in ["0", "2147483647", "2147483648"] {
            for from in ["0", "9223372036854775807"] {
                run(&rig, "dump", &["--topic", topic, "--queue", queue, "--from", from, "--max", "3"])?;
            }
        }
        run(&rig, "dump", &["--topic", topic, "--key", "\u{202e}"])?;
    }
    let (code, said) = run(&rig, "check", &[])?;
    ensure!(code == 0, "a good store: {said}");
    whole(&mut rig, &expected).await
}

/// Files and folders where others should be. The tools say what they find; after them and the start nothing is lost that was not
/// taken away, or the start says which file is in its way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn things_that_do_not_belong() -> Result<()> {
    let (mut rig, expected) = filled("", 300).await?;
    let store = &rig.plan.store();
    let size = |path: &str, len: u64| -> Result<()> { Ok(fs::File::create(store.join(path))?.set_len(len)?) };
    let folder = |path: &str| -> Result<()> { Ok(fs::create_dir_all(store.join(path))?) };
    let instead = |path: &str| -> Result<()> {
        fs::remove_dir_all(store.join(path))?;
        Ok(fs::write(store.join(path), "x")?)
    };
    type Change<'a> = (&'a str, Box<dyn Fn() -> Result<()> + 'a>);
    let changes: Vec<Change> = vec![
        ("an empty last commit log file", Box::new(|| size("commitlog/00000000000001048576", 0))),
        ("a folder in the commit log", Box::new(|| folder("commitlog/00000000000099999744"))),
        ("a folder in a queue", Box::new(|| folder("consumequeue/Plain/0/00000000000000099999"))),
        ("a folder among the index files", Box::new(|| folder("index/20200101000000000"))),
        ("a foreign file in a queue", Box::new(|| size("consumequeue/Plain/0/notes.txt", 3))),
        ("a foreign file in a batch queue", Box::new(|| size("batchconsumequeue/Batches/0/x", 3))),
        ("a foreign file in an extension", Box::new(|| size("consumequeue_ext/Plain/0/x", 3))),
        ("an empty index file", Box::new(|| size("index/20200101000000000", 0))),
        ("a foreign index file", Box::new(|| size("index/x", 5))),
        ("a file as a queue", Box::new(|| size("consumequeue/Plain/7", 5))),
        ("a file as a topic", Box::new(|| size("consumequeue/Odd", 5))),
        ("a queue with an absurd id", Box::new(|| folder("consumequeue/Plain/99999999999"))),
        ("a queue with a negative id", Box::new(|| folder("consumequeue/Plain/-1"))),
        ("an absurd unit file", Box::new(|| size("consumequeue/Plain/0/18446744073709540000", 20_000))),
        ("an absurd batch file", Box::new(|| size("batchconsumequeue/Batches/0/18446744073709551000", 4600))),
        ("an absurd extension file", Box::new(|| size("consumequeue_ext/Plain/0/18446744073709540000", 20_000))),
        ("an absurd index file", Box::new(|| size("index/99999999999999999999999999", 100))),
        ("no queues", Box::new(|| Ok(fs::remove_dir_all(store.join("consumequeue"))?))),
        ("a file instead of the batch queues", Box::new(|| instead("batchconsumequeue"))),
        ("a file instead of the queues", Box::new(|| instead("consumequeue"))),
        ("a file instead of the extension", Box::new(|| instead("consumequeue_ext"))),
        ("a file instead of the index", Box::new(|| instead("index"))),
        ("an empty checkpoint", Box::new(|| size("checkpoint", 0))),
        (
            "a folder as the checkpoint",
            Box::new(|| {
                fs::remove_file(store.join("checkpoint"))?;
                folder("checkpoint")
            }),
        ),
        ("a file as rebuild.old", Box::new(|| size("rebuild.old", 1))),
        ("a file as rebuild.tmp", Box::new(|| size("rebuild.tmp", 1))),
    ];
    stop(&mut rig, Signal::TERM)?;
    let good = rig.home.path().join("good");
    copy(store, &good)?;
    for (what, change) in &changes {
        for tool in ["none", "check", "rebuild"] {
            fs::remove_dir_all(store)?;
            copy(&good, store)?;
            change().with_context(|| (*what).to_owned())?;
            let said = if tool == "none" { String::new() } else { run(&rig, tool, &[])?.1 };
            let last = said.lines().last().unwrap_or_default();
            match rig.plan.start() {
                Ok(broker) => {
                    rig.broker = broker;
                    stop(&mut rig, Signal::KILL)?;
                    whole(&mut rig, &expected).await.with_context(|| format!("{what}, {tool}: {last}"))?;
                    stop(&mut rig, Signal::TERM)?;
                }
                Err(_) => {
                    let output = rig.plan.start_in_vain()?;
                    let text = text(&output);
                    println!("{what}, {tool}: {} | {last}", text.lines().last().unwrap_or_default());
                    ensure!(!text.contains("panic") && text.contains("store/"), "{what}, {tool}: {text}");
                }
            }
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    ensure!(done.success(), "cp: {done}");
    Ok(())
}

/// Neither a file system that cannot be written to nor missing rights keep `check` from looking, and `rebuild` says why it cannot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_may_be_written() -> Result<()> {
    let disk_at = tempfile::tempdir()?;
    let Some(disk) = SmallDisk::tmpfs(disk_at.path(), 64) else { return Ok(()) };
    let (mut rig, expected) = filled(&format!("storePathRootDir={}", disk_at.path().display()), 100).await?;
    stop(&mut rig, Signal::TERM)?;
    let remount =
        |how: &str| Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(disk_at.path()).status();
    remount("ro")?;
    let (code, said) = run(&rig, "check", &[])?;
    ensure!(code == 0, "check, read-only: {code} {said}");
    let (code, said) = run(&rig, "dump", &["--topic", "Plain", "--queue", "0"])?;
    ensure!(code == 0 && said.lines().count() == 100, "dump, read-only: {code} {said}");
    let (code, said) = run(&rig, "rebuild", &[])?;
    ensure!(code != 0 && said.contains(&*disk_at.path().to_string_lossy()), "rebuild, read-only: {code} {said}");
    ensure!(!rig.plan.start_in_vain()?.status.success(), "a start on a read-only disk");
    remount("rw")?;
    whole(&mut rig, &expected).await?;
    stop(&mut rig, Signal::TERM)?;
    // Another user, who may not look into the folder.
    fs::set_permissions(disk_at.path(), fs::Permissions::from_mode(0o700))?;
    fs::set_permissions(rig.home.path(), fs::Permissions::from_mode(0o755))?;
    let program = rig.home.path().join("mqbroker");
    fs::copy(binary("mqbroker")?, &program)?;
    for what in ["check", "rebuild"] {
        let output = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&program)
            .args(["store", what, "-c"])
            .arg(rig.home.path().join("broker.properties"))
            .env("HOME", "/nonexistent")
            .output()?;
        ensure!(!output.status.success() && !text(&output).contains("panic"), "{what}: {}", text(&output));
        println!("{what} without rights: {:?} {}", output.status.code(), text(&output));
    }
    whole(&mut rig, &expected).await?;
    drop(rig);
    drop(disk);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_room_for_a_rebuild() -> Result<()> {
    let disk_at = tempfile::tempdir()?;
    let Some(disk) = SmallDisk::tmpfs(disk_at.path(), 64) else { return Ok(()) };
    let extra = format!(
        "storePathRootDir={}\ndiskMaxUsedSpaceRatio=95\ncleanFileForciblyEnable=false\n                         diskSpaceWarningLevelRatio=99\ndiskSpaceCleanForciblyRatio=99",
        disk_at.path().display()
    );
    let (mut rig, expected) = filled(&extra, 2000).await?;
    stop(&mut rig, Signal::TERM)?;
    let ballast = disk_at.path().join("ballast");
    for left in [0, 8 << 10, 40 << 10, 120 << 10, 400 << 10] {
        let room = rustix::fs::statvfs(disk_at.path())?;
        let free = room.f_bavail * room.f_frsize;
        fs::write(&ballast, vec![0; free.saturating_sub(left) as usize])?;
        let (code, said) = run(&rig, "rebuild", &["--remove-old"])?;
        println!("{left} bytes left: {code} {}", said.lines().last().unwrap_or_default());
        fs::remove_file(&ballast)?;
        whole(&mut rig, &expected).await.with_context(|| format!("{left} bytes left: {code} {said}"))?;
        stop(&mut rig, Signal::TERM)?;
        let (code, said) = run(&rig, "check", &[])?;
        ensure!(code == 0, "{left} bytes left: {said}");
    }
    drop(rig);
    drop(disk);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_during_a_rebuild() -> Result<()> {
    let (mut rig, expected) = filled("", 2000).await?;
    for round in 0..20 {
        stop(&mut rig, if fastrand::bool() { Signal::TERM } else { Signal::KILL })?;
        for _ in 0..fastrand::usize(1..4) {
            let mut rebuild: Child = Command::new(binary("mqbroker")?)
                .args(["store", "rebuild", "-c"])
                .arg(rig.home.path().join("broker.properties"))
                .args(fastrand::bool().then_some("--remove-old"))
                .env("HOME", rig.home.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
            std::thread::sleep(Duration::from_micros(fastrand::u64(1_000..200_000)));
            rebuild.kill()?;
            rebuild.wait()?;
        }
        if fastrand::bool() {
            let (code, said) = run(&rig, "check", &[])?;
            ensure!(code <= 1, "round {round}: {said}");
        }
        whole(&mut rig, &expected).await.with_context(|| format!("round {round}"))?;
    }
    stop(&mut rig, Signal::TERM)?;
    let (code, said) = run(&rig, "check", &[])?;
    ensure!(code == 0, "{said}");
    Ok(())
}
