//! Deleting a topic removes folders named after it, and nothing else, whatever the name.

use std::fs;

use anyhow::{Result, ensure};
use rocketmq_tests::wire::Wire;

use crate::rig::Rig;
use rocketmq_tests::requests::{Send, delete_topic, drain, make_topic};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_name_deletes_anything_but_its_topic() -> Result<()> {
    let mut rig = Rig::start("enableLmq=true\nenableMultiDispatch=true").await?;
    let mut wire = Wire::connect(rig.broker.address)?;
    make_topic(&mut wire, "Compacted", "+cleanup.policy=COMPACTION")?;
    Send::new("Compacted", "KEYS\x01k\x02", b"kept").sent(&mut wire)?;
    // Read once, so that it has been copied and the folders are there.
    ensure!(drain(&mut wire, "Compacted", 0)?.len() == 1, "the message is not there");
    fs::create_dir_all(rig.plan.store().join("compaction/compactionLog/%LMQ%"))?;
    let victim = rig.home.path().join("victim");
    fs::create_dir(&victim)?;
    fs::write(victim.join("file"), "x")?;
    let kept = [
        victim.join("file"),
        rig.plan.store().join("config/topics.json"),
        rig.plan.store().join("commitlog"),
        rig.plan.store().join("compaction/compactionLog/Compacted/0/00000000000000000000"),
    ];
    let absolute = victim.display().to_string();
    for name in [
        absolute.as_str(),
        "../../../victim",
        "../../config",
        "../..",
        "..",
        ".",
        "./Compacted",
        "Compacted/0",
        "Compacted/",
        "%LMQ%/../../../../victim",
        "%LMQ%/../../../config",
        "%RETRY%../../../../victim",
        "\0",
    ] {
        delete_topic(&mut wire, name)?;
        for path in &kept {
            ensure!(path.exists(), "deleting the topic {name:?} removed {}", path.display());
        }
    }
    ensure!(drain(&mut wire, "Compacted", 0)?.len() == 1, "the message is gone");
    rig.unharmed(150, 150).await
}
