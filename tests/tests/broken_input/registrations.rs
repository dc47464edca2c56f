//! Registrations as a broken or hostile broker sends them.

use std::io::Write;

use anyhow::{Result, ensure};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use protocol::{Command, request_code};
use rocketmq_tests::wire::Wire;

use crate::rig::Rig;

/// As many entries as a body may hold; the streams end a little before.
const COUNT: i32 = 1_000_000;

const JSON: &str = r#"{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":{"counter":1,"stateVersion":0,"timestamp":1},"topicConfigTable":{"FromBroken":{"topicName":"FromBroken","readQueueNums":4,"writeQueueNums":4,"perm":6}}}}"#;

fn register(body: Vec<u8>, compressed: bool, crc: Option<u32>) -> Command {
    let crc = crc.unwrap_or(crc32fast::hash(&body) & 0x7FFF_FFFF);
    Command::request(request_code::REGISTER_BROKER)
        .with_field("brokerName", "broken")
        .with_field("brokerAddr", "10.0.0.1:10911")
        .with_field("clusterName", "Broken")
        .with_field("haServerAddr", "10.0.0.1:10912")
        .with_field("brokerId", "0")
        .with_field("compressed", if compressed { "true" } else { "false" })
        .with_field("bodyCrc32", crc.to_string())
        .with_body(body)
}

fn sized(text: &str) -> Vec<u8> {
    let mut out = (text.len() as i32).to_be_bytes().to_vec();
    out.extend_from_slice(text.as_bytes());
    out
}

fn zlib(begin: &[&[u8]], repeated: &[u8], times: usize) -> Result<Vec<u8>> {
    let mut out = ZlibEncoder::new(Vec::new(), Compression::fast());
    for part in begin {
        out.write_all(part)?;
    }
    let block = repeated.repeat(1000);
    for _ in 0..times / 1000 {
        out.write_all(&block)?;
    }
    Ok(out.finish()?)
}

/// Asks, and expects to be refused with a reason.
fn refused(wire: &mut Wire, what: &str, request: &Command) -> Result<()> {
    let answer = wire.ask(request)?;
    ensure!(answer.code == 1, "{what}: answered {} {:?}", answer.code, answer.remark);
    ensure!(answer.remark.is_some(), "{what}: no reason given");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_registrations_change_nothing() -> Result<()> {
    let mut rig = Rig::start("").await?;
    let mut wire = Wire::connect(rig.names.address)?;
    refused(&mut wire, "a wrong CRC", &register(JSON.into(), false, Some(1)))?;
    refused(&mut wire, "no JSON", &register(b"{\"filterServerList\":".to_vec(), false, None))?;
    refused(&mut wire, "deep JSON", &register("[".repeat(200_000).into(), false, None))?;
    refused(&mut wire, "text for zlib", &register(JSON.into(), true, None))?;
    let version = sized(r#"{"counter":1,"stateVersion":0,"timestamp":1}"#);
    let line = sized("FromBroken 4 4 6 SINGLE_TAG {}");
    let whole = zlib(&[&version, &1000i32.to_be_bytes()], &line, 1000)?;
    for cut in [1, 2, 10, whole.len() / 2, whole.len() - 20] {
        refused(&mut wire, "a truncated stream", &register(whole[..cut].to_vec(), true, None))?;
    }
    for count in [i32::MIN, -1, i32::MAX, 1001] {
        let lying = zlib(&[&version, &count.to_be_bytes()], &line, 1000)?;
        refused(&mut wire, "a wrong count", &register(lying, true, None))?;
    }
    let answer = wire.ask(&Command::request(request_code::GET_BROKER_CLUSTER_INFO))?;
    ensure!(!String::from_utf8_lossy(&answer.body).contains("broken"), "a refused broker is listed");
    rig.unharmed(150, 60).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zlib_bombs_are_bounded() -> Result<()> {
    let mut rig = Rig::start("").await?;
    let version = sized(r#"{"counter":1,"stateVersion":0,"timestamp":1}"#);
    let zeros = zlib(&[&i32::MAX.to_be_bytes()], &[b' '; 1024], 140_000)?;
    let long = zlib(&[&version, &i32::MAX.to_be_bytes(), &i32::MAX.to_be_bytes()], &[b'x'; 1024], 140_000)?;
    // Each of these is a topic, and as short as one can be: they take more memory than bytes.
    let topics = zlib(&[&version, &COUNT.to_be_bytes()], &sized("a 1 1 6 S"), 999_000)?;
    let mappings = zlib(&[&version, &0i32.to_be_bytes(), &sized("[]"), &COUNT.to_be_bytes()], &sized("{}"), 999_000)?;
    let servers = zlib(&[&version, &0i32.to_be_bytes(), &i32::MAX.to_be_bytes(), b"[\"\""], b",\"\"", 10_000_000)?;
    let bombs = [
        ("blanks", zeros),
        ("one long topic", long),
        ("many short topics", topics),
        ("many empty mappings", mappings),
        ("many filter servers", servers),
    ];
    let tasks: Vec<_> = bombs
        .into_iter()
        .map(|(what, bomb)| {
            let address = rig.names.address;
            tokio::task::spawn_blocking(move || {
                for _ in 0..3 {
                    let mut wire = Wire::connect(address)?;
                    refused(&mut wire, what, &register(bomb.clone(), true, None))?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    let peak = std::fs::read_to_string(format!("/proc/{}/status", rig.names.pid()))?;
    let peak: u64 = peak
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok())
        .unwrap_or(u64::MAX);
    println!("peak {} MiB", peak / 1024);
    ensure!(peak < 400 * 1024, "the name server took {} MiB", peak / 1024);
    rig.unharmed(300, 60).await
}
