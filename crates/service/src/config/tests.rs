//! What an operator sees of a configuration: reading, warnings, errors, remote updates, printing.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::keys::{BrokerRole, BrokerSettings, FlushDiskType, NamesrvSettings};

struct Place {
    _folder: tempfile::TempDir,
    file: PathBuf,
}

fn place(text: &str) -> Place {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broker.conf");
    fs::write(&file, text).unwrap();
    Place { _folder: folder, file }
}

fn broker(place: &Place) -> Result<Loaded<BrokerSettings>, ConfigError> {
    let source = Source { file: Some(&place.file), overrides: &[], known: BROKER_KEYS };
    load(BrokerSettings::default(), &source, |_| Ok(()))
}

#[test]
fn one_file_feeds_all_structs() {
    let place = place(
        "brokerName = broker-a \nbrokerId=1\nlistenPort=10921\nbrokerRole=SLAVE\nflushDiskType=SYNC_FLUSH\n\
         longPollingEnable=FALSE\nstorePathCommitLog=/a, /b\nlistenPort=10931\ntls.server.mode=enforcing\n\
         diskMaxUsedSpaceRatio=99\nregisterNameServerPeriod=1\nnamesrvAddr=\n",
    );
    let loaded = broker(&place).unwrap();
    assert_eq!(loaded.warnings, []);
    let live = loaded.live.load();
    assert_eq!((live.identity.broker_name.as_str(), live.identity.broker_id), ("broker-a", 1));
    assert_eq!((live.netty.listen_port, live.ha_listen_port()), (10931, 10932));
    assert_eq!(live.store.broker_role, BrokerRole::Slave);
    assert_eq!(live.store.flush_disk_type, FlushDiskType::SyncFlush);
    assert!(!live.broker.long_polling_enable);
    assert_eq!(live.broker.namesrv_addr, None);
    assert_eq!(live.store.commit_log_paths(), ["/a", "/b"]);
    assert_eq!(live.store.disk_max_used_percent(), 95);
    assert_eq!(live.broker.register_period_ms(), 10_000);
    assert_eq!(live.tls.server_mode, crate::keys::tls::TlsMode::Enforcing);
}

#[test]
fn java_defaults() {
    let broker = BrokerSettings::default();
    for (key, value) in [
        ("listenPort", "10911"),
        ("brokerClusterName", "DefaultCluster"),
        ("brokerPermission", "6"),
        ("defaultTopicQueueNums", "8"),
        ("consumerFallbehindThreshold", "17179869184"),
        ("maxMessageSize", "4194304"),
        ("mappedFileSizeCommitLog", "1073741824"),
        ("deleteWhen", "04"),
        ("logicalDiskSpaceCleanForciblyThreshold", "0.8"),
        ("messageDelayLevel", "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"),
        ("flushDiskType", "ASYNC_FLUSH"),
        ("com.rocketmq.remoting.frameMaxLength", "16777216"),
    ] {
        assert_eq!(broker.get(key).as_deref(), Some(value), "{key}");
    }
    assert_eq!(broker.get("storePathCommitLog"), None);
    assert_eq!(NamesrvSettings::default().get("listenPort").as_deref(), Some("9876"));
}

#[test]
fn keys_without_effect_are_named() {
    let place = place("popReviveConcurrency=3\n\nlisenPort=1\nsendMessageThreadPoolNums=9\nfoo.bar=1\n");
    let warnings: Vec<_> = broker(&place).unwrap().warnings.iter().map(Warning::to_string).collect();
    let file = place.file.display();
    assert_eq!(
        warnings,
        [
            format!("{file}:1: popReviveConcurrency is known to RocketMQ but not implemented here; it has no effect"),
            format!("{file}:3: unknown key lisenPort; did you mean listenPort?"),
            format!("{file}:4: sendMessageThreadPoolNums is accepted but has no effect in this server"),
            format!("{file}:5: unknown key foo.bar; it has no effect"),
        ]
    );
}

#[test]
fn bad_values_are_errors_with_their_place() {
    let place = place("# head\nlistenPort=70000\nbrokerRole=MASTER\ntraceOn=yes\nbrokerId=\nbrokerId=7\n");
    let error = broker(&place).err().unwrap().to_string();
    let file = place.file.display();
    assert_eq!(
        error,
        format!(
            "{file}:2: listenPort=70000: expected an integer from 0 to 65535\n\
             {file}:3: brokerRole=MASTER: expected one of ASYNC_MASTER / SYNC_MASTER / SLAVE\n\
             {file}:4: traceOn=yes: expected true or false"
        )
    );
    fs::write(&place.file, "\n\na=\\uXYZ").unwrap();
    assert_eq!(broker(&place).err().unwrap().to_string(), format!("{file}:3: malformed \\uxxxx escape"));
    fs::remove_file(&place.file).unwrap();
    assert!(broker(&place).err().unwrap().to_string().starts_with("cannot read the configuration file"));
}

#[test]
fn the_command_line_wins() {
    let place = place("listenPort=1\nbrokerId=2\n");
    let pair = |key: &str, value: &str| (key.to_string(), value.to_string());
    let overrides = [pair("listenPort", "3"), pair("namesrvAddr", "a:1;b:2")];
    let source = Source { file: Some(&place.file), overrides: &overrides, known: BROKER_KEYS };
    let loaded = load(BrokerSettings::default(), &source, |_| Ok(())).unwrap();
    let live = loaded.live.load();
    assert_eq!((live.netty.listen_port, live.identity.broker_id), (3, 2));
    assert_eq!(live.broker.namesrv_addr.as_deref(), Some("a:1;b:2"));
    let bad = [pair("listenPort", "x")];
    let source = Source { file: None, overrides: &bad, known: BROKER_KEYS };
    let error = load(BrokerSettings::default(), &source, |_| Ok(())).err().unwrap();
    assert!(error.to_string().starts_with("command line: listenPort=x"), "{error}");
}

#[test]
fn the_dump_is_sorted_and_keeps_unknown_keys() {
    let place = place("my.own=1\ntraceOn=FALSE\n");
    let dump = broker(&place).unwrap().live.dump();
    assert!(dump.lines().is_sorted());
    assert!(dump.ends_with('\n'));
    for line in ["my.own=1", "traceOn=false", "listenPort=10911", "brokerRole=ASYNC_MASTER"] {
        assert!(dump.lines().any(|row| row == line), "{line} in\n{dump}");
    }
    assert!(!dump.contains("storePathCommitLog="), "unset keys are left out");
}

#[test]
fn an_update_changes_live_keys_and_the_file() {
    let text = "# my broker\nbrokerPermission=6\nmy.own = 1\n\nlistenPort=10911\n";
    let place = place(text);
    let live = broker(&place).unwrap().live;
    let changes = Arc::new(AtomicU32::new(0));
    live.on_change({
        let changes = changes.clone();
        move |old, new| {
            assert_eq!((old.broker.broker_permission, new.broker.broker_permission), (6, 4));
            changes.fetch_add(1, Ordering::SeqCst);
        }
    });
    let before = live.version();
    let body =
        b"brokerPermission=4\nlistenPort=1\nmy.own=2\nnobody.knows=3\npopReviveConcurrency=5\ndeleteWhen=05;06\n";
    let updated = live.update(body).unwrap();
    assert_eq!(updated.live, ["brokerPermission", "deleteWhen"]);
    assert_eq!(updated.after_restart, ["listenPort"]);
    assert_eq!(updated.no_effect, ["my.own", "popReviveConcurrency"]);
    assert_eq!(updated.unknown, ["nobody.knows"]);
    assert_eq!(updated.file.as_ref(), Some(&place.file));

    assert_eq!(live.load().broker.broker_permission, 4);
    assert_eq!(live.snapshot().store.delete_when, "05;06");
    assert_eq!(live.load().netty.listen_port, 10911, "waits for the restart");
    assert!(live.dump().contains("listenPort=1\n"));
    assert_eq!(live.version().counter, before.counter + 1);
    assert_eq!(changes.load(Ordering::SeqCst), 1);
    assert_eq!(
        fs::read_to_string(&place.file).unwrap(),
        "# my broker\nbrokerPermission=4\nmy.own=2\n\nlistenPort=1\npopReviveConcurrency=5\ndeleteWhen=05;06\n"
    );
    let backup = fs::read_to_string(place.file.with_extension("conf.bak")).unwrap();
    assert_eq!(backup, text);

    let again = broker(&place).unwrap().live;
    assert_eq!(again.load().netty.listen_port, 1);
    assert_eq!(again.load().broker.broker_permission, 4);
}

#[test]
fn a_refused_update_changes_nothing() {
    let text = "configBlackList=configBlackList;deleteWhen\nbrokerPermission=6\n";
    let place = place(text);
    let live = broker(&place).unwrap().live;
    let version = live.version();
    for (body, words) in [
        ("brokerPermission=2\ndeleteWhen=1", "Can not update config in black list."),
        ("brokerPermission=2\nrocketmqHome=/", "Can not update config in black list."),
        ("brokerPermission=2\nconfigBlackList=", "Can not update config in black list."),
        ("brokerPermission=2\nbrokerConfigPath=/x", "Can not update config in black list."),
        ("brokerPermission=2\ntraceOn=perhaps", "traceOn=perhaps: expected true or false"),
        ("brokerPermission=2\na=\\u", "string2Properties error"),
    ] {
        assert_eq!(live.update(body.as_bytes()).unwrap_err().to_string(), words, "{body}");
    }
    assert_eq!(live.version(), version);
    assert_eq!(live.load().broker.broker_permission, 6);
    assert_eq!(fs::read_to_string(&place.file).unwrap(), text);
}

#[test]
fn a_file_that_cannot_be_written_refuses_the_update() {
    let live = broker(&place("")).unwrap().live; // its folder is gone now
    let nowhere = Live::new(BrokerSettings::default());
    nowhere.set_store_path("/proc/nowhere/broker.conf".into());
    assert!(matches!(nowhere.update(b"traceOn=false"), Err(UpdateError::Write { .. })));
    assert!(nowhere.load().broker.trace_on);
    // persist creates folders, so a removed one is no reason to refuse
    let updated = live.update(b"traceOn=false").unwrap();
    fs::remove_dir_all(updated.file.unwrap().parent().unwrap()).unwrap();
}

#[test]
fn without_a_file_an_update_lives_in_memory() {
    let live = Live::new(BrokerSettings::default());
    let updated = live.update(b"traceOn=false").unwrap();
    assert_eq!((updated.live, updated.file), (vec!["traceOn".to_string()], None));
    assert!(!live.load().broker.trace_on);
}

#[test]
fn changes_by_program_survive_updates() {
    let live = Live::new(BrokerSettings::default());
    live.change(|settings| settings.store.broker_role = BrokerRole::Slave);
    live.update(b"traceOn=false").unwrap();
    assert_eq!(live.load().store.broker_role, BrokerRole::Slave);
    assert!(live.dump().contains("brokerRole=SLAVE\n"));
    assert_eq!(live.version().counter, 2);
}

#[test]
fn printing() {
    let all = print_all(&NamesrvSettings::default());
    assert!(all.starts_with("rocketmqHome="), "{all}");
    assert!(all.contains("\nlistenPort=9876\n") && all.contains("\nkvConfigPath="));
    let important = print_important(&BrokerSettings::default());
    assert!(important.starts_with("brokerName="), "{important}");
    assert!(important.contains("\nlistenPort=10911\n") && important.contains("\nflushDiskType=ASYNC_FLUSH\n"));
    assert!(!important.contains("bindAddress"));
}

#[test]
fn every_declared_key_reads_what_it_prints_and_stands_once() {
    let settings = BrokerSettings::default();
    let mut names: Vec<_> = BrokerSettings::keys().into_iter().map(|key| key.name).collect();
    for name in &names {
        if let Some(value) = settings.get(name) {
            assert_eq!(settings.clone().set(name, &value), Ok(true), "{name}={value}");
        }
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn every_declared_key_is_one_of_java_or_of_our_own_section() {
    let check = |keys: Vec<&'static Key>, known: &str| {
        for key in keys.iter().filter(|key| key.section != "ServiceConfig") {
            assert!(known.lines().any(|name| name == key.name), "{}", key.name);
        }
    };
    check(BrokerSettings::keys(), BROKER_KEYS);
    check(NamesrvSettings::keys(), NAMESRV_KEYS);
}
