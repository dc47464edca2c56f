//! Random sequences against the laws that hold after every step, and threads against each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use serde_json::Value;

use super::*;

const FORM: RouteForm<'static> =
    RouteForm { dialect: Dialect::Standard, acting_master: false, order_conf: None, zone: None };

fn random_broker(random: &mut Rng) -> Registration {
    let name = random.u32(0..4);
    let id = random.i64(0..3);
    let topics = (0..random.u32(0..8)).map(|_| TopicEntry {
        topic: format!("t{}", random.u32(0..12)),
        read_queues: random.i32(1..4),
        write_queues: random.i32(1..4),
        perm: [6, 4, 2][random.usize(0..3)],
        sys_flag: 0,
    });
    let topics = topics.collect();
    Registration {
        cluster: format!("c{}", name % 2),
        broker_name: format!("b{name}"),
        broker_addr: format!("h{name}:{}", random.u32(0..3)),
        broker_id: id,
        acting_master: [None, Some(true), Some(false)][random.usize(0..3)],
        timeout_ms: random.bool().then_some(50),
        zone: random.bool().then(|| "z".to_owned()),
        data_version: DataVersion { state_version: random.i64(0..3), timestamp: 0, counter: Some(random.i64(0..4)) },
        topics,
        filter_servers: [None, Some(Vec::new()), Some(vec!["f".to_owned()])][random.usize(0..3)].clone(),
        connection: random.u64(0..6),
        ..Registration::default()
    }
}

/// What must hold between any two events.
fn check_laws(table: &RouteTable, seed: u64, step: u32) {
    let brokers = table.brokers();
    let at = format!("seed {seed}, step {step}");
    for group in brokers.groups() {
        let distinct: BTreeSet<_> = group.addrs.values().collect();
        assert_eq!(distinct.len(), group.addrs.len(), "one address has one id; {at}");
        let cluster = brokers.cluster(&group.cluster);
        assert!(cluster.is_some_and(|names| names.contains(&group.name)), "a group is in its cluster; {at}");
    }
    let mut rows = 0;
    for shard in &table.topics.shards {
        let shard = shard.read();
        for (topic, of_topic) in shard.topics() {
            assert!(!of_topic.as_slice().is_empty(), "{topic} has rows; {at}");
            rows += of_topic.as_slice().len();
            let ids: BTreeSet<u32> = of_topic.as_slice().iter().map(|row| row.broker).collect();
            assert_eq!(ids.len(), of_topic.as_slice().len(), "one row per broker name; {at}");
            assert!(ids.iter().all(|id| brokers.group_by_id(*id).is_some()), "{topic}'s brokers are known; {at}");
        }
    }
    assert_eq!(rows, table.sizes().rows, "{at}");
}

/// A kept answer must be what a fresh encoding gives: ask twice, then ask a form that is never kept.
fn check_answers(table: &RouteTable, random: &mut Rng, seed: u64, step: u32) {
    let topic = format!("t{}", random.u32(0..12));
    let acting = random.bool();
    let form = RouteForm { acting_master: acting, ..FORM };
    let kept = table.route(&topic, &form);
    let mark = format!("{step}");
    let fresh = table.route(&topic, &RouteForm { order_conf: Some(&mark), ..form });
    let read = |body: Option<bytes::Bytes>| {
        body.map(|body| {
            let mut value: Value = serde_json::from_slice(&body).expect("standard JSON");
            if let Some(map) = value.as_object_mut() {
                map.shift_remove("orderTopicConf");
            }
            value
        })
    };
    assert_eq!(read(kept), read(fresh), "{topic}, acting {acting}; seed {seed}, step {step}");
}

#[test]
fn the_laws_hold_in_random_sequences() {
    for seed in 0..25 {
        let mut random = Rng::with_seed(seed);
        let table = RouteTable::new(64 * 4096);
        let mut now = 0;
        for step in 0..400 {
            now += random.i64(0..20);
            let rules = Rules { delete_topics_with_registration: random.u8(0..8) == 0, notify_min_broker_id: true };
            match random.u32(0..20) {
                0 => {
                    let removals = table.connection_closed(random.u64(0..6));
                    if random.bool() {
                        table.register(&random_broker(&mut random), &rules, now);
                    }
                    table.unregister(&removals, &rules);
                }
                1 => {
                    let removals: Vec<_> = table.expired(now).into_iter().map(|(removal, _)| removal).collect();
                    table.unregister(&removals, &rules);
                    assert!(table.expired(now).is_empty(), "the silent are gone; seed {seed}");
                }
                2 | 3 => {
                    let gone = random_broker(&mut random);
                    let removal = Unregistration {
                        cluster: gone.cluster.into(),
                        broker_addr: gone.broker_addr.into(),
                        broker_name: Some(gone.broker_name.into()),
                        broker_id: gone.broker_id,
                        reason: LeaveReason::Unregistered,
                        expected: None,
                    };
                    table.unregister(&[removal], &rules);
                }
                4 => drop(table.wipe_write_perm("b0")),
                5 => drop(table.add_write_perm("b1")),
                6 => table.delete_topic(&format!("t{}", random.u32(0..12)), random.bool().then_some("c0")),
                _ => {
                    let registered = table.register(&random_broker(&mut random), &rules, now);
                    if let Some(notice) = registered.notice {
                        assert!(!notice.recipients.contains(&notice.min_broker_addr) || notice.recipients.len() == 1);
                    }
                }
            }
            check_laws(&table, seed, step);
            check_answers(&table, &mut random, seed, step);
        }
    }
}

/// The same events in the same order come to the same tables.
#[test]
fn sequences_can_be_replayed() {
    let play = |seed| {
        let mut random = Rng::with_seed(seed);
        let table = RouteTable::default();
        for now in 0..300 {
            table.register(&random_broker(&mut random), &Rules::default(), now);
        }
        let routes: BTreeMap<u32, _> = (0..12).map(|at| (at, table.route(&format!("t{at}"), &FORM))).collect();
        (table.cluster_info(), routes)
    };
    assert_eq!(play(7), play(7));
}

/// While brokers come and go, no reader sees a route with an unknown address, and the last state is what stays.
#[test]
fn readers_and_writers_do_not_disturb_each_other() {
    let table = Arc::new(RouteTable::default());
    let stop = Arc::new(AtomicBool::new(false));
    let topics: Vec<TopicEntry> = (0..500)
        .map(|at| TopicEntry { topic: format!("t{at}"), read_queues: 1, write_queues: 1, perm: 6, sys_flag: 0 })
        .collect();
    let broker = |at: u32| Registration {
        cluster: "c".into(),
        broker_name: format!("b{at}"),
        broker_addr: format!("h{at}:1"),
        topics: topics.clone(),
        connection: at.into(),
        ..Registration::default()
    };
    table.register(&broker(0), &Rules::default(), 0);
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (table, stop) = (table.clone(), stop.clone());
            scope.spawn(move || {
                let mut random = Rng::with_seed(reader);
                while !stop.load(Ordering::Relaxed) {
                    let topic = format!("t{}", random.u32(0..500));
                    let body = table.route(&topic, &FORM).expect("broker b0 stays");
                    let route: Value = serde_json::from_slice(&body).expect("JSON");
                    let rows = route["queueDatas"].as_array().map_or(0, Vec::len);
                    assert_eq!(rows, route["brokerDatas"].as_array().map_or(0, Vec::len));
                }
            });
        }
        for round in 0..40 {
            table.register(&broker(1 + round % 3), &Rules::default(), 0);
            table.unregister(&table.connection_closed((1 + round % 3).into()), &Rules::default());
        }
        stop.store(true, Ordering::Relaxed);
    });
    for at in 0..500 {
        let route: Value =
            serde_json::from_slice(&table.route(&format!("t{at}"), &FORM).expect("a route")).expect("JSON");
        assert_eq!(route["queueDatas"].as_array().map(Vec::len), Some(1), "only b0 is left");
    }
    assert_eq!(table.sizes().rows, 500);
}
