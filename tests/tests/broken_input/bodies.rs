//! Message bodies and properties that are not what their header says.

use anyhow::{Result, ensure};
use bytes::BytesMut;
use protocol::record::{BatchItem, encode_batch_item};
use protocol::{Command, request_code, response_code};
use rocketmq_tests::wire::Wire;

use crate::rig::{Rig, TOPIC};

fn send(code: i32, batch: bool, properties: &str, body: &[u8]) -> Command {
    let names: [&'static str; 10] = if code == request_code::SEND_MESSAGE {
        [
            "producerGroup",
            "topic",
            "defaultTopic",
            "defaultTopicQueueNums",
            "queueId",
            "sysFlag",
            "bornTimestamp",
            "flag",
            "properties",
            "batch",
        ]
    } else {
        ["a", "b", "c", "d", "e", "f", "g", "h", "i", "m"]
    };
    let values = ["P", TOPIC, "TBW102", "4", "0", "0", "0", "0", properties, if batch { "true" } else { "false" }];
    let mut request = Command::request(code).with_body(body.to_vec());
    for (name, value) in names.into_iter().zip(values) {
        request = request.with_field(name, value);
    }
    request
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_torn_at_each_byte() -> Result<()> {
    let mut rig = Rig::start("").await?;
    let mut body = BytesMut::new();
    let mut ends = Vec::new();
    for at in 0..3 {
        let item = BatchItem { flag: at, body: b"body", properties: b"KEYS\x01k" };
        encode_batch_item(&mut body, &item)?;
        ends.push(body.len());
    }
    let mut wire = Wire::connect(rig.broker.address)?;
    for code in [request_code::SEND_BATCH_MESSAGE, request_code::SEND_MESSAGE_V2] {
        for cut in 0..=body.len() {
            let answer = wire.ask(&send(code, true, "", &body[..cut]))?;
            let whole = ends.contains(&cut);
            ensure!((answer.code == 0) == whole, "cut at {cut}: {} {:?}", answer.code, answer.remark);
        }
    }
    for at in 0..body.len() {
        for value in [0, 0x7F, 0x80, 0xFF] {
            let mut torn = body.to_vec();
            torn[at] = value;
            wire.ask(&send(request_code::SEND_BATCH_MESSAGE, true, "", &torn))?;
        }
    }
    rig.unharmed(150, 60).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn properties_with_broken_separators() -> Result<()> {
    let mut rig = Rig::start("").await?;
    let mut wire = Wire::connect(rig.broker.address)?;
    let long = format!("k\u{1}{}", "v".repeat(33_000));
    let many = "a\u{1}b\u{2}".repeat(9_000);
    let cases = [
        "\u{1}",
        "\u{2}",
        "\u{1}\u{2}",
        "\u{2}\u{1}",
        "\u{1}\u{1}\u{1}",
        "\u{2}\u{2}\u{2}",
        "key",
        "key\u{1}",
        "\u{1}value",
        "DELAY\u{1}x",
        "DELAY\u{1}-1",
        "DELAY\u{1}99999",
        "DELAY\u{1}99999999999999999999",
        "DELAY\u{1}",
        "WAIT\u{1}",
        "TRAN_MSG\u{1}maybe",
        "TIMER_DELAY_SEC\u{1}x",
        "TIMER_DELIVER_MS\u{1}-9",
        "INNER_NUM\u{1}5",
        "KEYS\u{1}   ",
        "UNIQ_KEY\u{1}",
        "TAGS\u{1}\u{0}\u{2}",
        "REAL_TOPIC\u{1}../x\u{2}REAL_QID\u{1}-1",
        "REAL_TOPIC\u{1}../x\u{2}REAL_QID\u{1}-1\u{2}DELAY\u{1}1",
        "RETRY_TOPIC\u{1}a/b",
        "ORIGIN_MESSAGE_ID\u{1}\u{2}",
        "POP_CK\u{1}1 2 3",
        &long,
        &many,
    ];
    for properties in cases {
        for code in [request_code::SEND_MESSAGE, request_code::SEND_MESSAGE_V2] {
            let answer = wire.ask(&send(code, false, properties, b"body"))?;
            println!("{:?}: {} {:?}", &properties[..properties.len().min(40)], answer.code, answer.remark);
        }
        let mut body = BytesMut::new();
        if encode_batch_item(&mut body, &BatchItem { flag: 0, body: b"body", properties: properties.as_bytes() })
            .is_ok()
        {
            wire.ask(&send(request_code::SEND_BATCH_MESSAGE, true, properties, &body))?;
        }
    }
    let answer = wire.ask(&send(request_code::SEND_MESSAGE, false, "", &vec![b'x'; 4 * 1024 * 1024 + 1]))?;
    ensure!(answer.code == response_code::MESSAGE_ILLEGAL, "4 MiB + 1: {} {:?}", answer.code, answer.remark);
    let answer = wire.ask(&send(request_code::SEND_MESSAGE, false, "", b""))?;
    ensure!(answer.code == response_code::MESSAGE_ILLEGAL, "no body: {} {:?}", answer.code, answer.remark);
    rig.unharmed(200, 60).await?;
    // Recovery reads all of it again.
    rig.broker.signal(rustix::process::Signal::KILL)?;
    rig.broker.wait(std::time::Duration::from_secs(20))?;
    rig.broker = rig.plan.start()?;
    rig.unharmed(200, 60).await
}
