//! Starts that must fail with words that say why, and without touching anything.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use anyhow::{Result, ensure};
use rocketmq_tests::process::BrokerPlan;

use crate::rig::Rig;

/// What it printed, when it did not start and was not killed.
fn refusal(plan: &BrokerPlan) -> Result<String> {
    let output = plan.start_in_vain()?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.code().is_some_and(|code| code != 0 && code != 124), "ended with {}: {text}", output.status);
    ensure!(!text.contains("panic"), "{text}");
    Ok(text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_brokers_on_one_store() -> Result<()> {
    let mut rig = Rig::start("").await?;
    rig.round_trip().await?;
    let mut second = BrokerPlan::new(rig.home.path(), rig.names.address, "")?;
    second.home = rig.home.path().to_path_buf();
    let text = refusal(&second)?;
    let store = rig.plan.store().display().to_string();
    ensure!(text.contains(&store) && text.to_lowercase().contains("lock"), "{text}");
    rig.unharmed(150, 60).await?;
    ensure!(rig.plan.store().join("abort").exists(), "the second start took the first one's abort file");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_in_use() -> Result<()> {
    let mut rig = Rig::start("").await?;
    let other = tempfile::tempdir()?;
    let mut second = BrokerPlan::new(other.path(), rig.names.address, "")?;
    second.port = rig.plan.port;
    let text = refusal(&second)?;
    ensure!(text.contains(&rig.plan.port.to_string()), "{text}");
    rig.unharmed(150, 60).await
}

#[test]
fn wrong_values_are_named() -> Result<()> {
    let home = tempfile::tempdir()?;
    let nobody = "127.0.0.1:1".parse()?;
    for (line, named) in [
        ("brokerId=abc", "brokerId"),
        ("flushDiskType=SOMETIMES", "flushDiskType"),
        ("mappedFileSizeCommitLog=-5", "mappedFileSizeCommitLog"),
        ("mappedFileSizeCommitLog=0", "mappedFileSizeCommitLog"),
        ("messageDelayLevel=1s nonsense", "messageDelayLevel"),
        ("maxMessageSize=99999999999999999999", "maxMessageSize"),
        ("brokerRole=KING", "brokerRole"),
        ("listenPort=70000", "listenPort"),
        ("bindAddress=no address", "bindAddress"),
    ] {
        let plan = BrokerPlan::new(home.path(), nobody, line)?;
        let text = refusal(&plan)?;
        ensure!(text.contains(named), "{line}: {text}");
    }
    Ok(())
}

#[test]
fn a_store_that_cannot_be_written() -> Result<()> {
    let home = tempfile::tempdir()?;
    let plan = BrokerPlan::new(home.path(), "127.0.0.1:1".parse()?, "")?;
    // A file where the folder should be: not even root gets past it.
    fs::write(plan.store(), "in the way")?;
    let text = refusal(&plan)?;
    ensure!(text.contains(&plan.store().display().to_string()), "{text}");
    fs::remove_file(plan.store())?;
    if rustix::process::geteuid().is_root() {
        println!("the read-only folder is skipped: root may write everywhere");
        return Ok(());
    }
    fs::create_dir(plan.store())?;
    fs::set_permissions(plan.store(), fs::Permissions::from_mode(0o555))?;
    let text = refusal(&plan)?;
    ensure!(text.contains(&plan.store().display().to_string()), "{text}");
    fs::set_permissions(plan.store(), fs::Permissions::from_mode(0o755))?;
    Ok(())
}
