//! Configuration, files, pages, start and stop.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use protocol::{Command, request_code as code, response_code};
use rocketmq_tests::process::free_port;
use rocketmq_tests::wire::Wire;

use crate::rig::{LIMIT, Plan, ask_ok, gone, has, metric, registration, route};

/// Status and body of a page.
fn page(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LIMIT))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").context("no end of the head")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((status, body.to_owned()))
}

fn update(text: &str) -> Command {
    Command::request(code::UPDATE_NAMESRV_CONFIG).with_body(text.as_bytes().to_vec())
}

fn two(prefix: &str) -> [String; 2] {
    [format!("{prefix}A"), format!("{prefix}B")]
}

#[test]
fn routes_are_held_back_until_brokers_had_their_time() -> Result<()> {
    let pages = SocketAddr::from(([127, 0, 0, 1], free_port(0)?));
    let plan = Plan::new(&format!("needWaitForService=true\nhttpAddress={pages}"))?;
    let server = plan.start()?;
    let mut wire = Wire::connect(server.address)?;
    ask_ok(&mut wire, &registration("early", "127.0.0.1:10911", &two("Wait")))?;
    let held = wire.ask(&route("WaitA"))?;
    ensure!(held.code == response_code::SYSTEM_ERROR, "{held:?}");
    ensure!(held.remark.as_deref() == Some("name server not ready"), "{held:?}");
    ensure!(page(pages, "/readyz")? == (503, "name server not ready\n".to_owned()));
    ensure!(page(pages, "/healthz")? == (200, "ok\n".to_owned()));
    ask_ok(&mut wire, &update("waitSecondsForService=0"))?;
    ensure!(has(&mut wire, "WaitA", "early")?);
    ensure!(page(pages, "/readyz")? == (200, "ok\n".to_owned()));
    Ok(())
}

#[test]
fn the_configuration_changed_from_remote_outlives_the_process() -> Result<()> {
    let plan = Plan::new("# who may read this\nenableTopicList=true")?;
    let server = plan.start()?;
    let mut wire = Wire::connect(server.address)?;
    let units = Command::request(code::GET_UNIT_TOPIC_LIST);
    ask_ok(&mut wire, &units)?;

    for key in ["configBlackList", "configStorePath", "kvConfigPath"] {
        let refused = wire.ask(&update(&format!("enableTopicList=false\n{key}=/elsewhere")))?;
        ensure!(refused.code == response_code::NO_PERMISSION, "{key}: {refused:?}");
        ensure!(refused.remark.as_deref() == Some("Can not update config in black list."), "{key}: {refused:?}");
    }
    let wrong = wire.ask(&update("enableTopicList=false\nscanNotActiveBrokerInterval=soon"))?;
    ensure!(wrong.code == response_code::SYSTEM_ERROR, "{wrong:?}");
    ask_ok(&mut wire, &units)?;
    ensure!(fs::read_to_string(plan.file())? == plan.text(), "a refused change reached the file");

    ask_ok(&mut wire, &update("enableTopicList=false"))?;
    ensure!(wire.ask(&units)?.remark.as_deref() == Some("disable"));
    let backup = plan.file().with_file_name("namesrv.properties.bak");
    ensure!(fs::read_to_string(&backup)? == plan.text(), "the backup is not the file from before");
    let text = fs::read_to_string(plan.file())?;
    ensure!(text.contains("enableTopicList=false") && text.contains(&format!("listenPort={}", plan.port)), "{text}");
    let shown = ask_ok(&mut wire, &Command::request(code::GET_NAMESRV_CONFIG))?;
    let shown = String::from_utf8_lossy(&shown.body).into_owned();
    ensure!(shown.lines().any(|line| line == "enableTopicList=false"), "{shown}");

    let status = server.stop(LIMIT)?;
    ensure!(status.code() == Some(0), "SIGTERM with a connection open: {status}");
    let server = plan.start()?;
    ensure!(Wire::connect(server.address)?.ask(&units)?.remark.as_deref() == Some("disable"));
    Ok(())
}

#[test]
fn the_kv_configuration_outlives_a_kill() -> Result<()> {
    let plan = Plan::new("orderMessageEnable=true")?;
    let server = plan.start()?;
    let mut wire = Wire::connect(server.address)?;
    let kv = |code: i32, key: &str| {
        Command::request(code).with_field("namespace", "ORDER_TOPIC_CONFIG").with_field("key", key.to_owned())
    };
    for key in ["KvA", "gone"] {
        ask_ok(&mut wire, &kv(code::PUT_KV_CONFIG, key).with_field("value", "ordered:4"))?;
    }
    ask_ok(&mut wire, &kv(code::DELETE_KV_CONFIG, "gone"))?;
    // What is answered is on the disk.
    server.kill_nine()?;
    let file = plan.home.path().join("namesrv/kvConfig.json");
    let text = fs::read_to_string(&file)?;
    ensure!(text == r#"{"configTable":{"ORDER_TOPIC_CONFIG":{"KvA":"ordered:4"}}}"#, "{text}");
    let before = fs::read_to_string(file.with_file_name("kvConfig.json.bak"))?;
    ensure!(before.contains("\"gone\":\"ordered:4\""), "{before}");

    let server = plan.start()?;
    let mut wire = Wire::connect(server.address)?;
    ensure!(ask_ok(&mut wire, &kv(code::GET_KV_CONFIG, "KvA"))?.fields.get("value").as_deref() == Some("ordered:4"));
    ensure!(wire.ask(&kv(code::GET_KV_CONFIG, "gone"))?.code == response_code::QUERY_NOT_FOUND);
    ask_ok(&mut wire, &registration("ordered", "127.0.0.1:10911", &two("Kv")))?;
    let answer = ask_ok(&mut wire, &route("KvA"))?;
    ensure!(String::from_utf8_lossy(&answer.body).contains(r#""orderTopicConf":"ordered:4""#), "{answer:?}");
    Ok(())
}

#[test]
fn the_pages_say_what_happened() -> Result<()> {
    let pages = SocketAddr::from(([127, 0, 0, 1], free_port(0)?));
    let plan = Plan::new(&format!("httpAddress={pages}"))?;
    let server = plan.start()?;
    let mut wire = Wire::connect(server.address)?;
    let mut leaving = Wire::connect(server.address)?;
    let stay = registration("stay", "127.0.0.1:10911", &two("Page"));
    ask_ok(&mut wire, &stay)?;
    ask_ok(&mut wire, &stay)?;
    ask_ok(&mut leaving, &registration("leave", "127.0.0.1:10921", &two("Page")))?;
    ensure!(wire.ask(&stay.with_field("bodyCrc32", "7"))?.code == response_code::SYSTEM_ERROR);
    for _ in 0..3 {
        ensure!(has(&mut wire, "PageA", "leave")?);
    }
    ensure!(wire.ask(&Command::request(9999))?.code == response_code::REQUEST_CODE_NOT_SUPPORTED);
    let (_, before) = page(pages, "/metrics")?;
    for (name, value) in [
        ("namesrv_brokers_alive", 2.0),
        ("namesrv_broker_names", 2.0),
        ("namesrv_clusters", 1.0),
        ("namesrv_topics", 2.0),
        ("namesrv_topic_rows", 4.0),
        ("namesrv_queues", 16.0),
        ("namesrv_rows_changed_total", 4.0),
        ("namesrv_routes_encoded_total", 1.0),
        ("namesrv_requests_unsupported_total", 1.0),
        ("namesrv_registrations_total{result=\"applied\"}", 2.0),
        ("namesrv_registrations_total{result=\"unchanged\"}", 1.0),
        ("namesrv_registrations_total{result=\"refused\"}", 1.0),
        ("namesrv_request_micros_count{code=\"105\",request=\"GET_ROUTEINFO_BY_TOPIC\"}", 3.0),
    ] {
        let found = metric(&before, name)?;
        ensure!(found == value, "{name} is {found}, expected {value}");
    }
    ensure!(metric(&before, "namesrv_table_bytes")? > 0.0);
    drop(leaving);
    gone(&mut wire, "PageA", "leave", std::time::Instant::now(), LIMIT)?;
    rocketmq_tests::wait_until("the page shows who left", LIMIT, || {
        page(pages, "/metrics").is_ok_and(|(_, after)| {
            metric(&after, "namesrv_brokers_left_total").is_ok_and(|left| left == 1.0)
                && metric(&after, "namesrv_brokers_alive").is_ok_and(|alive| alive == 1.0)
        })
    });
    ensure!(page(pages, "/nothing")?.0 == 404);
    let log = plan.log()?;
    let about = |what: &str, broker: &str| log.lines().filter(|l| l.contains(what) && l.contains(broker)).count();
    ensure!(about("broker joined", "broker=stay") == 1, "one line for each event:\n{log}");
    ensure!(about("broker joined", "broker=leave") == 1 && about("broker left", "broker=leave") == 1, "{log}");
    ensure!(about("registration refused", "stay") == 1, "{log}");
    Ok(())
}

#[test]
fn a_stop_with_clients_connected_is_short_and_orderly() -> Result<()> {
    let plan = Plan::new("")?;
    let server = plan.start()?;
    let mut crowd: Vec<_> = (0..50).map(|_| Wire::connect(server.address)).collect::<Result<_>>()?;
    ask_ok(&mut crowd[0], &registration("stopping", "127.0.0.1:10911", &two("Stop")))?;
    let begin = std::time::Instant::now();
    let status = server.stop(LIMIT)?;
    ensure!(status.code() == Some(0), "{status}");
    ensure!(begin.elapsed() < Duration::from_secs(5), "took {:?}", begin.elapsed());
    ensure!(crowd[0].ask(&route("StopA")).is_err(), "a connection outlived its server");
    Ok(())
}
