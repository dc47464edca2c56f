//! The disk fills up: sends are refused, reads go on, and writes go on when there is room again.

use std::io::Write;
use std::path::Path;
use std::process::Command as Process;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use client::{Message, Producer, PullConsumer, PullOptions};
use rustix::process::Signal;

use crate::rig::{Rig, TOPIC};

/// A small file system, gone when dropped.
pub(crate) struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    /// In memory.
    pub(crate) fn tmpfs(at: &'a Path, mib: u32) -> Option<Self> {
        run("mount", &["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs", &at.to_string_lossy()])?;
        Some(Self(at))
    }

    /// As on a disk: ext4 in the file `image`.
    pub(crate) fn ext4(at: &'a Path, image: &Path, mib: u32) -> Option<Self> {
        let image = image.to_string_lossy();
        run("truncate", &["-s", &format!("{mib}M"), &image])?;
        run("mkfs.ext4", &["-q", "-F", "-m", "0", &image])?;
        run("mount", &["-o", "loop", &image, &at.to_string_lossy()])?;
        Some(Self(at))
    }
}

/// Runs a program that needs rights this test may not have.
fn run(program: &str, arguments: &[&str]) -> Option<()> {
    let why = match Process::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => return Some(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    println!("skipped: {program}: {why}");
    None
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Process::new("umount").arg("-l").arg(self.0).output();
    }
}

/// Sends until it is refused; returns how many were taken and the code of the refusal.
async fn fill(producer: &Producer) -> Result<(i64, Option<i32>)> {
    for sent in 0..10_000 {
        if let Err(error) = producer.send_to(&Rig::queue(), &Message::new(TOPIC, vec![b'x'; 100_000])).await {
            println!("after {sent} messages: {error}");
            return Ok((sent, error.code()));
        }
    }
    bail!("the disk does not get full")
}

/// Takes what a refused file of the log has left.
pub(crate) fn to_the_last_byte(ballast: &Path) -> Result<()> {
    let mut file = std::fs::File::options().append(true).open(ballast)?;
    for piece in [1 << 20, 1 << 12, 1] {
        while file.write_all(&vec![0; piece]).is_ok() {}
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_sends_and_nothing_else() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let store = folder.path().join("store");
    std::fs::create_dir(&store)?;
    let Some(disk) = SmallDisk::ext4(&store, &folder.path().join("image"), 48) else { return Ok(()) };
    filled_killed_and_freed(&store).await?;
    drop(disk);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_memory_disk_refuses_sends_and_nothing_else() -> Result<()> {
    let store = tempfile::tempdir()?;
    let Some(disk) = SmallDisk::tmpfs(store.path(), 40) else { return Ok(()) };
    filled_killed_and_freed(store.path()).await?;
    drop(disk);
    Ok(())
}

/// Small files on that disk. The ratios are out of the way as far as they go: here the kernel is to say no.
pub(crate) fn settings(store: &Path) -> String {
    format!(
        "storePathRootDir={}\nmappedFileSizeCommitLog=4194304\nmappedFileSizeConsumeQueue=60000\nmaxHashSlotNum=1000\nmaxIndexNum=4000\n\
         diskMaxUsedSpaceRatio=95\ncleanFileForciblyEnable=false\ndiskSpaceWarningLevelRatio=99\ndiskSpaceCleanForciblyRatio=99\n\
         cleanResourceInterval=3000",
        store.display()
    )
}

async fn filled_killed_and_freed(store: &Path) -> Result<()> {
    let mut rig = Rig::start(&settings(store)).await?;
    rig.round_trip().await?;
    // The last bytes go to somebody else, so that the broker is sure to meet the end.
    let ballast = store.join("ballast");
    std::fs::write(&ballast, vec![0; 20 * 1024 * 1024])?;
    let mut producer = Producer::new(rig.cluster.clone(), "P");
    producer.retries = 0;
    let (sent, code) = fill(&producer).await?;
    ensure!(sent > 10, "only {sent} messages fit");
    ensure!(code == Some(14), "refused with code {code:?}, expected 14");
    // Reads go on.
    let consumer = PullConsumer::new(rig.cluster.clone(), "R");
    let pulled = consumer.pull(&Rig::queue(), 1, &PullOptions::default()).await?;
    ensure!(!pulled.messages.is_empty(), "nothing is read while the disk is full: {:?}", pulled.status);
    ensure!(rig.broker.is_alive(), "the broker died: {}", rig.log("mqbroker")?);
    ensure!(rig.log("mqbroker")?.lines().count() < 100, "{}", rig.log("mqbroker")?);
    // Killed while full; it starts and reads.
    rig.broker.signal(Signal::KILL)?;
    rig.broker.wait(Duration::from_secs(10))?;
    to_the_last_byte(&ballast)?;
    rig.broker = rig.plan.start().context("a start with a full disk")?;
    let end = consumer.max_offset(&Rig::queue()).await?;
    ensure!(end == sent + 1, "{end} messages are left of {}", sent + 1);
    // There is room again.
    std::fs::remove_file(&ballast)?;
    let deadline = Instant::now() + Duration::from_secs(20);
    while let Err(error) = rig.round_trip().await {
        ensure!(Instant::now() < deadline, "no send with room on the disk: {error:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    rig.broker.signal(Signal::TERM)?;
    let status = rig.broker.wait(Duration::from_secs(20))?;
    ensure!(status.code() == Some(0), "ended with {status}");
    rig.broker = rig.plan.start()?;
    rig.unharmed(150, 100).await
}

/// The same without a restart between: the running broker finds the room by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_goes_on_when_there_is_room_again() -> Result<()> {
    let store = tempfile::tempdir()?;
    let Some(disk) = SmallDisk::tmpfs(store.path(), 48) else { return Ok(()) };
    let extra = format!(
        "storePathRootDir={}\nmappedFileSizeCommitLog=4194304\nmappedFileSizeConsumeQueue=60000\nflushDiskType=SYNC_FLUSH\n\
         diskMaxUsedSpaceRatio=95\ncleanFileForciblyEnable=false\ndiskSpaceWarningLevelRatio=99\ndiskSpaceCleanForciblyRatio=99\n\
         maxHashSlotNum=1000\nmaxIndexNum=4000\ncleanResourceInterval=200",
        store.path().display()
    );
    let mut rig = Rig::start(&extra).await?;
    let ballast = store.path().join("ballast");
    std::fs::write(&ballast, vec![0; 32 * 1024 * 1024])?;
    let mut producer = Producer::new(rig.cluster.clone(), "P");
    producer.retries = 0;
    // Each time less than the 85 % above which a broker that has refused goes on refusing.
    for (round, left) in [16, 0].into_iter().enumerate() {
        let (_, code) = fill(&producer).await?;
        ensure!(code == Some(14), "round {round}: refused with code {code:?}, expected 14");
        // Tables are saved into the full disk, too.
        let consumer = PullConsumer::new(rig.cluster.clone(), "R");
        consumer.pull(&Rig::queue(), 0, &PullOptions::default()).await?;
        consumer.commit(&Rig::queue(), round as i64).await?;
        std::fs::write(&ballast, vec![0; left * 1024 * 1024])?;
        let deadline = Instant::now() + Duration::from_secs(20);
        while let Err(error) = rig.round_trip().await {
            ensure!(
                Instant::now() < deadline,
                "round {round}: no send with room on the disk: {error:#}\n{}",
                rig.log("mqbroker")?
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    rig.unharmed(150, 150).await?;
    drop(rig);
    drop(disk);
    Ok(())
}
