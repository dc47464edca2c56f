//! The rules of the tables, one by one.

use serde_json::{Value, json};

use super::*;

const RULES: Rules = Rules { delete_topics_with_registration: false, notify_min_broker_id: true };
const FORM: RouteForm<'static> =
    RouteForm { dialect: Dialect::Standard, acting_master: false, order_conf: None, zone: None };
const ACTING: RouteForm<'static> = RouteForm { acting_master: true, ..FORM };

fn topic(name: &str, queues: i32, perm: i32) -> TopicEntry {
    TopicEntry { topic: name.into(), read_queues: queues, write_queues: queues, perm, sys_flag: 0 }
}

fn version(counter: i64) -> DataVersion {
    DataVersion { state_version: 0, timestamp: 1, counter: Some(counter) }
}

/// Broker `a` of cluster `c` at port 1000 + id, over the connection of that number, with topics T and U.
fn broker(id: i64) -> Registration {
    Registration {
        cluster: "c".into(),
        broker_name: "a".into(),
        broker_addr: format!("h:{}", 1000 + id),
        broker_id: id,
        ha_addr: Some(format!("h:{}", 2000 + id)),
        acting_master: Some(false),
        data_version: version(1),
        topics: vec![topic("T", 4, 6), topic("U", 8, 6)],
        connection: 1000 + id as u64,
        ..Registration::default()
    }
}

fn removal(registration: &Registration) -> Unregistration {
    Unregistration {
        cluster: registration.cluster.as_str().into(),
        broker_addr: registration.broker_addr.as_str().into(),
        broker_name: Some(registration.broker_name.as_str().into()),
        broker_id: registration.broker_id,
        reason: LeaveReason::Unregistered,
        expected: None,
    }
}

fn accepted(table: &RouteTable, registration: &Registration) -> Registered {
    let registered = table.register(registration, &RULES, 0);
    assert!(matches!(registered.outcome, Outcome::Accepted { .. }), "{registered:?}");
    registered
}

fn route(table: &RouteTable, topic: &str, form: &RouteForm<'_>) -> Option<Value> {
    table.route(topic, form).map(|body| serde_json::from_slice(&body).expect("standard JSON"))
}

fn addrs(table: &RouteTable, topic: &str, form: &RouteForm<'_>) -> Value {
    route(table, topic, form).expect("a route")["brokerDatas"][0]["brokerAddrs"].clone()
}

fn perm(table: &RouteTable, topic: &str) -> i64 {
    route(table, topic, &FORM).expect("a route")["queueDatas"][0]["perm"].as_i64().expect("a number")
}

#[test]
fn a_route_has_javas_shape_in_both_dialects() {
    let table = RouteTable::default();
    accepted(&table, &broker(0));
    let standard = r#"{"brokerDatas":[{"brokerAddrs":{"0":"h:1000"},"brokerName":"a","cluster":"c","enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}"#;
    assert_eq!(table.route("T", &FORM).unwrap(), standard);
    let legacy = RouteForm { dialect: Dialect::Legacy, order_conf: Some("a:4"), ..FORM };
    let expected =
        standard.replace("\"0\":", "0:").replace(",\"queueDatas\"", ",\"orderTopicConf\":\"a:4\",\"queueDatas\"");
    assert_eq!(table.route("T", &legacy).unwrap(), expected);
    assert!(table.route("nowhere", &FORM).is_none());
}

#[test]
fn a_query_does_not_wait_for_a_registration_that_reads_rows() {
    let table = Arc::new(RouteTable::default());
    accepted(&table, &broker(0));
    // As a registration that loses its processor while it compares.
    let _order = table.order.lock();
    let _reading: Vec<_> = table.topics.shards.iter().map(|shard| shard.read()).collect();
    let (sender, answers) = std::sync::mpsc::channel();
    let asking = table.clone();
    std::thread::spawn(move || (0..2).for_each(|_| drop(sender.send(asking.route("T", &FORM)))));
    for _ in 0..2 {
        let answer = answers.recv_timeout(std::time::Duration::from_secs(10)).expect("an answer in time");
        assert!(answer.is_some());
    }
    assert_eq!(table.routes_encoded.load(std::sync::atomic::Ordering::Relaxed), 1, "the first answer was kept");
}

#[test]
fn an_answer_is_encoded_once_per_change() {
    let table = RouteTable::default();
    accepted(&table, &broker(0));
    let other = Registration { broker_name: "b".into(), broker_addr: "h:9".into(), ..broker(0) };
    accepted(&table, &Registration { topics: vec![topic("X", 1, 6), topic("Y", 1, 6)], ..other.clone() });
    let encoded = || table.sizes().routes_encoded;
    for _ in 0..10 {
        table.route("T", &FORM).unwrap();
    }
    assert_eq!(encoded(), 1);
    accepted(&table, &Registration { zone: Some("z".into()), topics: Vec::new(), ..other });
    table.route("T", &FORM).unwrap();
    assert_eq!(encoded(), 1, "another broker's change is none for this topic");
    accepted(&table, &Registration { data_version: version(2), ..broker(0) });
    table.route("T", &FORM).unwrap();
    assert_eq!(encoded(), 1, "a new version of the same content is no change");
    accepted(&table, &Registration { data_version: version(3), topics: vec![topic("T", 5, 6)], ..broker(0) });
    table.route("T", &FORM).unwrap();
    table.route("U", &FORM).unwrap();
    assert_eq!(encoded(), 3);
    accepted(&table, &Registration { zone: Some("z".into()), ..broker(0) });
    assert_eq!(route(&table, "T", &FORM).unwrap()["brokerDatas"][0]["zoneName"], "z");
}

#[test]
fn one_topic_before_the_whole_list_is_too_early_and_leaves_the_name() {
    let table = RouteTable::default();
    let single = Registration { topics: vec![topic("T", 4, 6)], ..broker(0) };
    assert_eq!(table.register(&single, &RULES, 0).outcome, Outcome::TooEarly);
    let info = String::from_utf8(table.cluster_info()).unwrap();
    assert_eq!(
        info,
        r#"{"brokerAddrTable":{"a":{"brokerAddrs":{},"brokerName":"a","cluster":"c","enableActingMaster":false}},"clusterAddrTable":{"c":["a"]}}"#
    );
    assert!(!table.heartbeat(&BrokerAddr { cluster: "c".into(), addr: "h:1000".into() }, 0));
    accepted(&table, &broker(0));
    accepted(&table, &Registration { data_version: version(2), topics: vec![topic("T", 9, 6)], ..broker(0) });
    assert_eq!(route(&table, "T", &FORM).unwrap()["queueDatas"][0]["readQueueNums"], 9);
    assert!(route(&table, "U", &FORM).is_some(), "a single topic takes the others' place in no way");
}

#[test]
fn an_older_epoch_is_fenced_off_and_an_equal_one_is_not() {
    let table = RouteTable::default();
    let epoch = |epoch| DataVersion { state_version: epoch, ..version(1) };
    accepted(&table, &Registration { data_version: epoch(5), ..broker(0) });
    let deposed = Registration { broker_addr: "h:77".into(), data_version: epoch(4), ..broker(0) };
    let registered = table.register(&deposed, &RULES, 0);
    assert_eq!(registered.outcome, Outcome::Stale);
    assert!(matches!(registered.events[..], [BrokerEvent::Refused { known: 5, state_version: 4, .. }]));
    assert_eq!(addrs(&table, "T", &FORM), json!({"0": "h:1000"}));
    let registered = accepted(&table, &Registration { data_version: epoch(5), ..deposed });
    assert!(matches!(registered.events[0], BrokerEvent::AddressChanged { .. }));
    assert_eq!(addrs(&table, "T", &FORM), json!({"0": "h:77"}), "the last writer wins");
}

#[test]
fn a_promoted_slave_leaves_its_old_id() {
    let table = RouteTable::default();
    accepted(&table, &broker(0));
    accepted(&table, &broker(1));
    table.unregister(&[removal(&broker(0))], &RULES);
    let promoted = Registration { broker_id: 0, ..broker(1) };
    let registered = accepted(&table, &promoted);
    assert!(matches!(registered.events[..], [BrokerEvent::RoleChanged { id: 0, before: 1, .. }]));
    assert_eq!(addrs(&table, "T", &FORM), json!({"0": "h:1001"}));
    // Its old request, too, takes it away: the address counts.
    table.unregister(&[removal(&broker(1))], &RULES);
    assert!(table.route("T", &FORM).is_none());
}

#[test]
fn slaves_hear_of_a_living_master_only() {
    let table = RouteTable::default();
    let alone = accepted(&table, &broker(1));
    assert_eq!(alone.outcome, Outcome::Accepted { master_addr: None, ha_addr: None });
    accepted(&table, &broker(0));
    let told = Outcome::Accepted { master_addr: Some("h:1000".into()), ha_addr: Some("h:2000".into()) };
    assert_eq!(accepted(&table, &broker(1)).outcome, told);
    assert_eq!(accepted(&table, &broker(0)).outcome, Outcome::Accepted { master_addr: None, ha_addr: None });
}

#[test]
fn topics_come_from_the_master_and_from_the_prime_slave_of_a_new_broker() {
    for (acting, brings_topics, shown) in [(None, false, 0), (Some(false), true, 6), (Some(true), true, 4)] {
        let table = RouteTable::default();
        accepted(&table, &Registration { acting_master: acting, ..broker(2) });
        assert_eq!(table.route("T", &FORM).is_some(), brings_topics, "{acting:?}");
        if brings_topics {
            assert_eq!(perm(&table, "T"), shown, "a slave that acts is read-only");
        }
        accepted(&table, &Registration { topics: vec![topic("V", 1, 6), topic("W", 1, 6)], ..broker(3) });
        assert!(table.route("V", &FORM).is_none(), "not the smallest id");
    }
}

#[test]
fn the_smallest_slave_acts_as_master_when_all_three_agree() {
    let acts = |switch: bool, registered: bool, writable: bool, topic: &str| {
        let table = RouteTable::default();
        let flag = Some(registered);
        let perm = if writable { 6 } else { 4 };
        let topics = vec![self::topic(topic, 4, perm), self::topic("other", 4, 6)];
        accepted(&table, &Registration { acting_master: flag, topics, ..broker(0) });
        for id in [2, 3] {
            accepted(&table, &Registration { acting_master: flag, ..broker(id) });
        }
        table.unregister(&[removal(&broker(0))], &RULES);
        let shown = addrs(&table, topic, if switch { &ACTING } else { &FORM });
        shown == json!({"0": "h:1002", "3": "h:1003"})
    };
    assert!(acts(true, true, true, "T"), "the right to write went with the master");
    assert!(!acts(false, true, true, "T"));
    assert!(!acts(true, false, true, "T"));
    assert!(!acts(true, false, false, "T"));
    assert!(!acts(true, true, true, "rmq_sys_SYNC_BROKER_MEMBER_a"));
}

#[test]
fn the_right_to_write_is_wiped_and_given_until_the_broker_has_news() {
    let table = RouteTable::default();
    accepted(&table, &Registration { topics: vec![topic("T", 4, 7), topic("U", 4, 14)], ..broker(0) });
    assert_eq!(table.wipe_write_perm("a"), 2);
    assert_eq!((perm(&table, "T"), perm(&table, "U")), (5, 12));
    accepted(&table, &Registration { topics: vec![topic("T", 4, 7), topic("U", 4, 14)], ..broker(0) });
    assert_eq!(perm(&table, "T"), 5, "the same registration again changes nothing");
    assert_eq!(table.add_write_perm("a"), 2);
    assert_eq!((perm(&table, "T"), perm(&table, "U")), (6, 6), "flat, as in Java");
    table.wipe_write_perm("a");
    let news = Registration { data_version: version(2), topics: vec![topic("T", 4, 7)], ..broker(0) };
    accepted(&table, &news);
    assert_eq!((perm(&table, "T"), perm(&table, "U")), (7, 4));
    assert_eq!(table.wipe_write_perm("nobody"), 0);
}

#[test]
fn every_part_of_a_split_registration_counts() {
    let table = RouteTable::default();
    accepted(&table, &broker(0));
    let part = |topics| Registration { data_version: version(2), topics, ..broker(0) };
    accepted(&table, &part(vec![topic("T", 5, 6), topic("T2", 5, 6)]));
    accepted(&table, &part(vec![topic("U", 9, 6), topic("U2", 9, 6)]));
    assert_eq!(route(&table, "U", &FORM).unwrap()["queueDatas"][0]["readQueueNums"], 9, "Java loses this change");
    assert!(route(&table, "U2", &FORM).is_some());
}

#[test]
fn topics_missing_from_a_registration_go_when_the_switch_says_so() {
    for (switch, mapped, gone) in [(false, false, false), (true, false, true), (true, true, false)] {
        let table = RouteTable::default();
        accepted(&table, &broker(0));
        let mappings = if mapped { vec![("S".to_owned(), MappingInfo::default())] } else { Vec::new() };
        let less = Registration { data_version: version(2), topics: vec![topic("T", 4, 6)], mappings, ..broker(0) };
        let rules = Rules { delete_topics_with_registration: switch, ..RULES };
        table.register(&less, &rules, 0);
        assert_eq!(table.route("U", &FORM).is_none(), gone, "switch {switch}, static topics {mapped}");
    }
}

#[test]
fn only_the_latest_connection_takes_its_broker_along() {
    let table = RouteTable::default();
    accepted(&table, &broker(0));
    let old_removals = table.connection_closed(1000);
    assert_eq!(old_removals.len(), 1);
    accepted(&table, &Registration { connection: 1, ..broker(0) });
    assert!(table.connection_closed(1000).is_empty(), "it registered again over another connection");
    table.unregister(&old_removals, &RULES);
    assert!(table.route("T", &FORM).is_some(), "a removal asked for before that counts no more");
    table.unregister(&table.connection_closed(1), &RULES);
    assert!(table.route("T", &FORM).is_none());
    assert_eq!(table.sizes().topics, 0);
}

#[test]
fn all_brokers_of_a_closed_connection_go() {
    let table = RouteTable::default();
    let second = Registration { broker_name: "b".into(), broker_addr: "h:9".into(), ..broker(0) };
    accepted(&table, &broker(0));
    accepted(&table, &second);
    assert_eq!(table.connection_closed(1000).len(), 2);
}

#[test]
fn silence_ends_a_broker_and_a_sign_of_life_in_between_saves_it() {
    let table = RouteTable::default();
    let key = BrokerAddr { cluster: "c".into(), addr: "h:1000".into() };
    accepted(&table, &broker(0));
    assert!(table.expired(DEFAULT_BROKER_TIMEOUT_MS).is_empty());
    let silent = |now| table.expired(now).into_iter().map(|(removal, _)| removal).collect::<Vec<_>>();
    let removals = silent(DEFAULT_BROKER_TIMEOUT_MS + 1);
    assert_eq!((removals.len(), removals[0].reason), (1, LeaveReason::Expired));
    assert!(table.heartbeat(&key, DEFAULT_BROKER_TIMEOUT_MS + 1));
    table.unregister(&removals, &RULES);
    assert!(table.route("T", &FORM).is_some());
    assert!(silent(2 * DEFAULT_BROKER_TIMEOUT_MS).is_empty());
    let check = table.check_version(&key, version(1), 2 * DEFAULT_BROKER_TIMEOUT_MS);
    assert_eq!(check, VersionCheck { changed: false, known: Some(version(1)) });
    let mut quick = broker(0);
    quick.timeout_ms = Some(10);
    table.register(&quick, &RULES, 0);
    table.unregister(&silent(11), &RULES);
    assert!(table.route("T", &FORM).is_none());
    assert_eq!(table.check_version(&key, version(1), 12), VersionCheck { changed: true, known: None });
}

#[test]
fn data_versions_are_equal_only_in_all_three_parts() {
    let table = RouteTable::default();
    let key = BrokerAddr { cluster: "c".into(), addr: "h:1000".into() };
    accepted(&table, &broker(0));
    let same = version(1);
    for other in [
        DataVersion { state_version: 1, ..same },
        DataVersion { timestamp: 2, ..same },
        DataVersion { counter: None, ..same },
        version(2),
    ] {
        assert!(table.check_version(&key, other, 0).changed, "{other:?}");
    }
    assert!(!table.check_version(&key, same, 0).changed);
}

#[test]
fn who_hears_of_a_new_smallest_id() {
    let table = RouteTable::default();
    let acting = |id| Registration { acting_master: Some(true), ..broker(id) };
    assert_eq!(accepted(&table, &acting(2)).notice, None, "there was none before, which counts as 0");
    assert_eq!(accepted(&table, &acting(3)).notice, None);
    let notice = accepted(&table, &acting(0)).notice.expect("a new smallest id");
    let expected = MinBrokerIdChange {
        min_broker_id: 0,
        min_broker_addr: "h:1000".into(),
        offline_addr: None,
        ha_addr: Some("h:2000".into()),
        recipients: vec!["h:1002".into(), "h:1003".into()],
    };
    assert_eq!(notice, expected);
    let left = table.unregister(&[removal(&acting(0))], &RULES);
    let expected = MinBrokerIdChange {
        min_broker_id: 2,
        min_broker_addr: "h:1002".into(),
        offline_addr: Some("h:1000".into()),
        ha_addr: None,
        recipients: vec!["h:1002".into(), "h:1003".into()],
    };
    assert_eq!(left.notices, [expected]);
    let quiet = Rules { notify_min_broker_id: false, ..RULES };
    assert!(table.unregister(&[removal(&acting(2))], &quiet).notices.is_empty());
}

#[test]
fn zones_hide_brokers_with_a_master_elsewhere() {
    let table = RouteTable::default();
    let of_zone = |name: &str, zone: &str, id| Registration {
        broker_name: name.into(),
        broker_addr: format!("{name}:{id}"),
        zone: Some(zone.into()),
        ..broker(id)
    };
    accepted(&table, &of_zone("a", "East", 0));
    accepted(&table, &of_zone("b", "west", 0));
    accepted(&table, &of_zone("c", "west", 1));
    let form = RouteForm { zone: Some("EAST"), ..FORM };
    let shown = route(&table, "T", &form).unwrap();
    let names: Vec<&str> =
        shown["queueDatas"].as_array().unwrap().iter().filter_map(|row| row["brokerName"].as_str()).collect();
    assert_eq!(names, ["a", "c"], "the one without master can be read from everywhere");
    accepted(&table, &Registration { zone: None, ..of_zone("a", "", 0) });
    assert_eq!(
        route(&table, "T", &form).unwrap()["brokerDatas"].as_array().unwrap().len(),
        1,
        "an omitted zone is cleared"
    );
}

#[test]
fn filter_servers_are_set_kept_and_removed() {
    let table = RouteTable::default();
    let with = |list: Option<&[&str]>| Registration {
        filter_servers: list.map(|list| list.iter().map(|text| (*text).to_owned()).collect()),
        ..broker(0)
    };
    let shown = |table: &RouteTable| route(table, "T", &FORM).unwrap()["filterServerTable"].clone();
    accepted(&table, &with(Some(&["f:1"])));
    assert_eq!(shown(&table), json!({"h:1000": ["f:1"]}));
    accepted(&table, &with(None));
    assert_eq!(shown(&table), json!({"h:1000": ["f:1"]}));
    accepted(&table, &with(Some(&[])));
    assert_eq!(shown(&table), json!({}));
}

#[test]
fn static_topics_show_their_mappings_which_outlive_their_brokers() {
    let table = RouteTable::default();
    let info = MappingInfo {
        topic: Some("T".into()),
        scope: Some("__global__".into()),
        total_queues: 2,
        broker_name: Some("a".into()),
        epoch: 3,
        dirty: false,
        current_ids: Some([(0, 1)].into()),
    };
    let static_topic = Registration { mappings: vec![("T".into(), info)], ..broker(0) };
    accepted(&table, &static_topic);
    let expected = json!({"a": {"bname": "a", "currIdMap": {"0": 1}, "dirty": false, "epoch": 3, "scope": "__global__",
        "topic": "T", "totalQueues": 2}});
    assert_eq!(route(&table, "T", &FORM).unwrap()["topicQueueMappingByBroker"], expected);
    table.unregister(&[removal(&static_topic)], &RULES);
    accepted(&table, &broker(0));
    assert_eq!(route(&table, "T", &FORM).unwrap()["topicQueueMappingByBroker"], expected);
}

#[test]
fn two_clusters_with_one_broker_name_are_reported() {
    let table = RouteTable::default();
    accepted(&table, &broker(0));
    let other = Registration { cluster: "d".into(), broker_addr: "h:9".into(), connection: 9, ..broker(0) };
    let registered = accepted(&table, &other);
    let warned = registered.events.iter().any(|event| matches!(event, BrokerEvent::NameInTwoClusters { .. }));
    assert!(warned, "{:?}", registered.events);
    assert!(accepted(&table, &other).events.is_empty(), "once");
    table.unregister(&table.connection_closed(9), &RULES);
    assert!(table.route("T", &FORM).is_none(), "found although its group is listed under the other cluster");
}

#[test]
fn topics_are_written_and_deleted_one_by_one() {
    let table = RouteTable::default();
    accepted(&table, &broker(0));
    accepted(
        &table,
        &Registration { cluster: "d".into(), broker_name: "b".into(), broker_addr: "h:9".into(), ..broker(0) },
    );
    let row = |broker: &str| (broker.to_owned(), topic("N", 2, 6));
    assert!(!table.register_topic("N", &[row("a"), row("nobody")]));
    assert!(table.route("N", &FORM).is_none(), "of a new topic all rows or none");
    assert!(table.register_topic("N", &[row("a")]));
    assert!(!table.register_topic("N", &[row("b"), row("nobody"), row("a")]));
    assert_eq!(
        route(&table, "N", &FORM).unwrap()["queueDatas"].as_array().unwrap().len(),
        2,
        "of a known one the first"
    );
    table.delete_topic("N", Some("c"));
    assert_eq!(route(&table, "N", &FORM).unwrap()["queueDatas"][0]["brokerName"], "b");
    table.delete_topic("N", Some("nowhere"));
    table.delete_topic("N", Some("d"));
    assert!(table.route("N", &FORM).is_none());
    table.delete_topic("T", None);
    assert!(table.route("T", &FORM).is_none());
    assert_eq!(String::from_utf8(table.all_topics()).unwrap(), r#"{"topicList":["U"]}"#);
    assert_eq!(String::from_utf8(table.topics_of_cluster("nowhere")).unwrap(), r#"{"topicList":[]}"#);
    let system: Value = serde_json::from_slice(&table.system_topics()).unwrap();
    assert_eq!(system, json!({"brokerAddr": "h:1000", "topicList": ["a", "b", "c", "d"]}));
}

#[test]
fn unit_lists_go_by_flags() {
    let table = RouteTable::default();
    let flagged = |name: &str, sys_flag| TopicEntry { sys_flag, ..topic(name, 1, 6) };
    let topics = vec![flagged("none", 0), flagged("unit", 1), flagged("sub", 2), flagged("both", 3)];
    accepted(&table, &Registration { topics, ..broker(0) });
    let list = |filter| {
        let mut names: Vec<String> = serde_json::from_value(
            serde_json::from_slice::<Value>(&table.unit_topics(filter)).unwrap()["topicList"].clone(),
        )
        .unwrap();
        names.sort();
        names
    };
    assert_eq!(list(UnitFilter::Unit), ["both", "unit"]);
    assert_eq!(list(UnitFilter::UnitSub), ["both", "sub"]);
    assert_eq!(list(UnitFilter::UnitSubButNotUnit), ["sub"]);
}

#[test]
fn members_are_listed_for_the_cluster_that_was_asked_about() {
    let table = RouteTable::default();
    accepted(&table, &broker(0));
    let body = |name| String::from_utf8(table.member_group(Some("any"), Some(name))).unwrap();
    assert_eq!(body("a"), r#"{"brokerMemberGroup":{"brokerAddrs":{0:"h:1000"},"brokerName":"a","cluster":"any"}}"#);
    assert_eq!(body("b"), r#"{"brokerMemberGroup":{"brokerAddrs":{},"brokerName":"b","cluster":"any"}}"#);
}
