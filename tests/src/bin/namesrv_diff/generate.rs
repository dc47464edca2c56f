//! What is played: a cluster that changes at random, as its brokers, admins and clients would tell of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use fastrand::Rng;
use protocol::{Command, SerializeType, request_code as code};

/// One step. The address names the connection it goes over: each broker has its own, and one is everybody else's.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Ask {
        over: Option<usize>,
        request: Command,
    },
    /// The broker's connection closes.
    Drop {
        broker: usize,
    },
}

/// One broker process.
#[derive(Debug)]
pub(crate) struct Broker {
    pub addr: String,
    pub cluster: &'static str,
    pub group: usize,
    id: i64,
    compresses: bool,
    version: i32,
    acting: Option<bool>,
    zone: Option<&'static str>,
    filters: Option<Vec<String>>,
    /// The group's events when it sent its last whole registration.
    sent_at: Option<u64>,
}

/// What all brokers of one name share: slaves take topics and data version over from their master.
#[derive(Debug)]
struct Group {
    name: String,
    topics: BTreeMap<String, Topic>,
    mappings: BTreeSet<String>,
    counter: i64,
    state_version: i64,
    /// Everything that touched the group's rows or members. When something has since a broker's last registration, its
    /// next one has a new version: of an old version with new content Java takes nothing.
    events: u64,
}

#[derive(Debug, Clone)]
struct Topic {
    read: i32,
    write: i32,
    perm: i32,
    flag: i32,
}

#[derive(Debug)]
pub(crate) struct World {
    random: Rng,
    pub brokers: Vec<Broker>,
    groups: Vec<Group>,
}

const CLUSTERS: [&str; 2] = ["c1", "c2"];
const ZONES: [&str; 2] = ["east", "West"];
const VERSIONS: [i32; 7] = [35, 40, 317, 401, 412, 479, 493];

impl World {
    /// `addrs`: where brokers can be told of things.
    pub(crate) fn new(seed: u64, addrs: &[String]) -> Self {
        let mut random = Rng::with_seed(seed);
        let groups = (0..4).map(|at| Group {
            name: format!("broker-{}", (b'a' + at) as char),
            topics: BTreeMap::new(),
            mappings: BTreeSet::new(),
            counter: 0,
            state_version: 0,
            events: 0,
        });
        let groups: Vec<Group> = groups.collect();
        let brokers = addrs.iter().enumerate().map(|(at, addr)| {
            let group = at % groups.len();
            Broker {
                addr: addr.clone(),
                cluster: CLUSTERS[group % 2],
                group,
                id: (at / groups.len()) as i64,
                compresses: random.u8(0..4) == 0,
                version: VERSIONS[random.usize(0..VERSIONS.len())],
                acting: [None, Some(true), Some(true), Some(false)][random.usize(0..4)],
                zone: None,
                filters: None,
                sent_at: None,
            }
        });
        let brokers = brokers.collect();
        let mut world = Self { random, brokers, groups };
        for at in 0..world.groups.len() {
            (0..6).for_each(|_| drop(world.change_topics(at)));
        }
        world
    }

    pub(crate) fn next(&mut self) -> Step {
        let admin = |request| Step::Ask { over: None, request };
        match self.random.u32(0..100) {
            0..30 => self.registration(),
            30..36 => self.sign_of_life(),
            36..40 => self.unregistration(),
            40..44 => {
                let broker = self.random.usize(0..self.brokers.len());
                self.groups[self.brokers[broker].group].events += 1;
                Step::Drop { broker }
            }
            44..75 => admin(self.route()),
            75..86 => admin(self.query()),
            86..91 => admin(self.kv()),
            91..95 => admin(self.admin_change()),
            95..97 => admin(self.config()),
            97..98 => admin(self.odd()),
            _ => admin(self.topic_change()),
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.u32(0..100) < percent
    }

    fn topic_name(&mut self) -> String {
        match self.random.u32(0..12) {
            0 => self.groups[self.random.usize(0..self.groups.len())].name.clone(),
            1 => "c1".to_owned(),
            2 => format!("rmq_sys_SYNC_BROKER_MEMBER_broker-{}", self.random.char('a'..='d')),
            3 => format!("unit-{}", self.random.u32(0..3)),
            4 => "straße/日本".to_owned(),
            5 => "nowhere".to_owned(),
            _ => format!("topic-{}", self.random.u32(0..8)),
        }
    }

    fn change_topics(&mut self, group: usize) -> String {
        let topic = self.topic_name();
        let numbers = Topic {
            read: self.random.i32(0..17),
            write: self.random.i32(0..17),
            perm: [6, 6, 6, 4, 2, 7, 0, 14][self.random.usize(0..8)],
            flag: topic.strip_prefix("unit-").map_or(0, |at| 1 + at.parse::<i32>().unwrap_or(0)),
        };
        let removes = self.chance(20);
        let maps = self.chance(10);
        let group = &mut self.groups[group];
        group.counter += 1;
        if maps {
            group.mappings.insert(topic.clone());
        }
        if removes && group.topics.len() > 3 {
            group.topics.remove(&topic);
        } else if topic != "nowhere" {
            group.topics.insert(topic.clone(), numbers);
        }
        topic
    }

    fn registration(&mut self) -> Step {
        let at = self.random.usize(0..self.brokers.len());
        self.change_broker(at);
        let group = self.brokers[at].group;
        let mut only = None;
        let as_sent = self.brokers[at].sent_at == Some(self.groups[group].events);
        if as_sent && self.chance(40) {
            only = Some(self.change_topics(group));
        } else if !as_sent || self.chance(30) {
            self.change_topics(group);
        }
        if self.chance(4) {
            self.groups[group].state_version += 1;
        }
        let stale = self.chance(6);
        let (broken_crc, no_crc, binary) = (self.chance(2), self.chance(30), self.chance(30));
        let empty = self.chance(1);
        self.groups[group].events += 1;
        let taken = !(stale || broken_crc && !no_crc || empty);
        self.brokers[at].sent_at = taken.then_some(self.groups[group].events);
        let (broker, group) = (&self.brokers[at], &self.groups[group]);
        let state_version = if stale { group.state_version - 1 } else { group.state_version };
        let compressed = broker.compresses && broker.version >= 37 && !empty;
        let body = match (compressed, broker.version) {
            _ if empty => Vec::new(),
            (true, _) => compressed_body(broker, group, state_version, only.as_deref()),
            (false, version) if version < 37 => wrapper(group, state_version, only.as_deref(), false).into_bytes(),
            (false, _) => json_body(broker, group, state_version, only.as_deref()),
        };
        let crc = (crc32fast::hash(&body) & 0x7FFF_FFFF) as i32 ^ i32::from(broken_crc);
        let crc = if no_crc { 0 } else { crc };
        let mut request = Command::request(code::REGISTER_BROKER)
            .with_field("brokerName", group.name.as_str())
            .with_field("brokerAddr", broker.addr.as_str())
            .with_field("clusterName", broker.cluster)
            .with_field("haServerAddr", format!("{}1", broker.addr))
            .with_field("brokerId", broker.id.to_string())
            .with_field("compressed", compressed.to_string())
            .with_field("bodyCrc32", crc.to_string())
            .with_body(body);
        if let Some(acting) = broker.acting {
            request = request.with_field("enableActingMaster", acting.to_string());
            request = request.with_field("heartbeatTimeoutMillis", "600000");
        }
        if let Some(zone) = broker.zone {
            request = request.with_field("__ZONE_NAME", zone);
        }
        request.version = broker.version;
        if binary {
            request.serialize = SerializeType::Binary;
        }
        Step::Ask { over: Some(at), request }
    }

    fn change_broker(&mut self, at: usize) {
        let (id, zone, filter) = (self.chance(15), self.chance(10), self.chance(8));
        let random = &mut self.random;
        let broker = &mut self.brokers[at];
        if id {
            broker.id = random.i64(0..4);
            broker.sent_at = None;
        }
        if zone {
            broker.zone = [None, Some(ZONES[0]), Some(ZONES[1])][random.usize(0..3)];
        }
        if filter {
            broker.filters =
                [None, Some(Vec::new()), Some(vec!["f:1".to_owned(), "f:2".to_owned()])][random.usize(0..3)].clone();
        }
    }

    fn sign_of_life(&mut self) -> Step {
        let at = self.random.usize(0..self.brokers.len());
        let heartbeat = self.chance(40);
        let off = self.random.i64(0..2);
        let (broker, group) = (&self.brokers[at], &self.groups[self.brokers[at].group]);
        let request = Command::request(if heartbeat { code::BROKER_HEARTBEAT } else { code::QUERY_DATA_VERSION })
            .with_field("brokerName", group.name.as_str())
            .with_field("brokerAddr", broker.addr.as_str())
            .with_field("clusterName", broker.cluster)
            .with_field("brokerId", broker.id.to_string());
        let version = data_version(group.counter - off, group.state_version);
        Step::Ask { over: Some(at), request: if heartbeat { request } else { request.with_body(version) } }
    }

    fn unregistration(&mut self) -> Step {
        let at = self.random.usize(0..self.brokers.len());
        let (other_id, unknown) = (self.chance(10), self.chance(5));
        self.groups[self.brokers[at].group].events += 1;
        let (broker, group) = (&self.brokers[at], &self.groups[self.brokers[at].group]);
        let id = if other_id { broker.id + 1 } else { broker.id };
        let request = Command::request(code::UNREGISTER_BROKER)
            .with_field("brokerName", if unknown { "nobody" } else { group.name.as_str() })
            .with_field("brokerAddr", broker.addr.as_str())
            .with_field("clusterName", broker.cluster)
            .with_field("brokerId", id.to_string());
        Step::Ask { over: Some(at), request }
    }

    fn route(&mut self) -> Command {
        let mut request = Command::request(code::GET_ROUTEINFO_BY_TOPIC).with_field("topic", self.topic_name());
        request.version = VERSIONS[self.random.usize(0..VERSIONS.len())];
        if self.chance(15) {
            request = request.with_field("acceptStandardJsonOnly", self.random.bool().to_string());
        }
        if self.chance(15) {
            request = request.with_field("__ZONE_MODE", ["true", "TRUE", "no"][self.random.usize(0..3)]);
            if self.chance(80) {
                request = request.with_field("__ZONE_NAME", ["east", "EAST", "west", " "][self.random.usize(0..4)]);
            }
        }
        if self.chance(30) {
            request.serialize = SerializeType::Binary;
        }
        request
    }

    fn query(&mut self) -> Command {
        let queries = [
            code::GET_BROKER_CLUSTER_INFO,
            code::GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
            code::GET_SYSTEM_TOPIC_LIST_FROM_NS,
            code::GET_UNIT_TOPIC_LIST,
            code::GET_HAS_UNIT_SUB_TOPIC_LIST,
            code::GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
            code::GET_TOPICS_BY_CLUSTER,
            code::GET_BROKER_MEMBER_GROUP,
        ];
        let request = Command::request(queries[self.random.usize(0..queries.len())]);
        let cluster = ["c1", "c2", "c3"][self.random.usize(0..3)];
        match request.code {
            code::GET_TOPICS_BY_CLUSTER => request.with_field("cluster", cluster),
            code::GET_BROKER_MEMBER_GROUP => request
                .with_field("clusterName", cluster)
                .with_field("brokerName", format!("broker-{}", self.random.char('a'..='e'))),
            _ => request,
        }
    }

    fn kv(&mut self) -> Command {
        let codes = [code::PUT_KV_CONFIG, code::GET_KV_CONFIG, code::DELETE_KV_CONFIG, code::GET_KVLIST_BY_NAMESPACE];
        let asked = codes[self.random.usize(0..4)];
        let namespace = ["ORDER_TOPIC_CONFIG", "ORDER_TOPIC_CONFIG", "n"][self.random.usize(0..3)];
        let mut request = Command::request(asked);
        if !self.chance(3) || asked == code::GET_KVLIST_BY_NAMESPACE {
            request = request.with_field("namespace", namespace);
        }
        if asked != code::GET_KVLIST_BY_NAMESPACE {
            request = request.with_field("key", self.topic_name());
        }
        if asked == code::PUT_KV_CONFIG {
            request = request.with_field("value", format!("broker-a:{};broker-b:\"4\"", self.random.u32(0..9)));
        }
        request
    }

    fn admin_change(&mut self) -> Command {
        let name = format!("broker-{}", self.random.char('a'..='e'));
        match self.random.u32(0..6) {
            0 | 1 => Command::request(code::WIPE_WRITE_PERM_OF_BROKER).with_field("brokerName", name),
            2 | 3 => Command::request(code::ADD_WRITE_PERM_OF_BROKER).with_field("brokerName", name),
            4 => Command::request(code::DELETE_TOPIC_IN_NAMESRV).with_field("topic", self.topic_name()),
            _ => Command::request(code::DELETE_TOPIC_IN_NAMESRV)
                .with_field("topic", self.topic_name())
                .with_field("clusterName", ["c1", "c2", "c3", ""][self.random.usize(0..4)]),
        }
    }

    fn topic_change(&mut self) -> Command {
        let topic = format!("topic-{}", self.random.u32(0..12));
        let rows: Vec<String> = (0..self.random.u32(0..3))
            .map(|_| {
                let at = self.random.u8(0..4);
                self.groups[usize::from(at)].events += 1;
                let name = (b'a' + at) as char;
                let queues = self.random.u32(1..9);
                format!(
                    r#"{{"brokerName":"broker-{name}","perm":6,"readQueueNums":{queues},"topicSysFlag":0,"writeQueueNums":{queues}}}"#
                )
            })
            .collect();
        let body = format!(r#"{{"brokerDatas":[],"queueDatas":[{}]}}"#, rows.join(","));
        Command::request(code::REGISTER_TOPIC_IN_NAMESRV).with_field("topic", topic).with_body(body.into_bytes())
    }

    fn config(&mut self) -> Command {
        let switches = [
            "supportActingMaster",
            "notifyMinBrokerIdChanged",
            "orderMessageEnable",
            "deleteTopicWithBrokerRegistration",
            "returnOrderTopicConfigToBroker",
            "enableAllTopicList",
            "enableTopicList",
        ];
        if self.chance(30) {
            return Command::request(code::GET_NAMESRV_CONFIG);
        }
        let on = self.chance(70);
        let text = match self.random.u32(0..10) {
            0 => "kvConfigPath=x\nenableTopicList=true".to_owned(),
            1 => "rocketmqHome=x".to_owned(),
            2 => "nobodyKnowsIt=1".to_owned(),
            _ => format!("{}={on}\n", switches[self.random.usize(0..switches.len())]),
        };
        Command::request(code::UPDATE_NAMESRV_CONFIG).with_body(text.into_bytes())
    }

    fn odd(&mut self) -> Command {
        match self.random.u32(0..3) {
            0 => Command::request(999),
            1 => Command::request(code::NOTIFY_MIN_BROKER_ID_CHANGE),
            _ => Command::request(code::REGISTER_BROKER)
                .with_field("brokerName", "x")
                .with_field("brokerAddr", "127.0.0.1:1")
                .with_field("clusterName", "c1")
                .with_field("haServerAddr", "127.0.0.1:2")
                .with_field("brokerId", "0")
                .with_body(&b"{broken"[..]),
        }
    }
}

fn data_version(counter: i64, state_version: i64) -> String {
    format!(r#"{{"counter":{counter},"stateVersion":{state_version},"timestamp":{}}}"#, 1_700_000_000_000 + counter)
}

fn mapping(topic: &str, group: &Group) -> String {
    format!(
        r#"{{"bname":"{}","currIdMap":{{0:{},1:2}},"dirty":false,"epoch":{},"scope":"__global__","topic":"{topic}","totalQueues":8}}"#,
        group.name, group.counter, group.counter
    )
}

fn wrapper(group: &Group, state_version: i64, only: Option<&str>, mapped: bool) -> String {
    let topics = group.topics.iter().filter(|(name, _)| only.is_none_or(|only| only == *name));
    let topics: Vec<String> = topics
        .map(|(name, topic)| {
            format!(
                r#""{name}":{{"attributes":{{}},"order":false,"perm":{},"readQueueNums":{},"topicFilterType":"SINGLE_TAG","topicName":"{name}","topicSysFlag":{},"writeQueueNums":{}}}"#,
                topic.perm, topic.read, topic.flag, topic.write
            )
        })
        .collect();
    let mappings: Vec<String> = group
        .mappings
        .iter()
        .filter(|_| mapped)
        .map(|topic| format!("\"{topic}\":{}", mapping(topic, group)))
        .collect();
    format!(
        r#"{{"dataVersion":{},"topicConfigTable":{{{}}},"topicQueueMappingInfoMap":{{{}}}}}"#,
        data_version(group.counter, state_version),
        topics.join(","),
        mappings.join(",")
    )
}

fn json_body(broker: &Broker, group: &Group, state_version: i64, only: Option<&str>) -> Vec<u8> {
    let filters = match &broker.filters {
        None => String::new(),
        Some(list) => format!("\"filterServerList\":{},", serde_json::json!(list)),
    };
    let wrapper = wrapper(group, state_version, only, true);
    format!("{{{filters}\"topicConfigSerializeWrapper\":{wrapper}}}").into_bytes()
}

fn compressed_body(broker: &Broker, group: &Group, state_version: i64, only: Option<&str>) -> Vec<u8> {
    let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    let mut part = |text: &str, counted: bool| {
        let length = if counted { text.len() as i32 } else { text.parse().unwrap_or(0) };
        let _ = out.write_all(&length.to_be_bytes());
        if counted {
            let _ = out.write_all(text.as_bytes());
        }
    };
    part(&data_version(group.counter, state_version), true);
    // This form has no flags: unit topics would lose theirs, and which row is the first would show.
    let topics = group.topics.iter().filter(|(name, topic)| only.is_none_or(|only| only == *name) && topic.flag == 0);
    let topics: Vec<String> = topics
        .map(|(name, topic)| format!("{name} {} {} {} SINGLE_TAG {{}}", topic.read, topic.write, topic.perm))
        .collect();
    part(&topics.len().to_string(), false);
    topics.iter().for_each(|topic| part(topic, true));
    part(&serde_json::json!(broker.filters.clone().unwrap_or_default()).to_string(), true);
    let mappings: Vec<String> = group.mappings.iter().map(|topic| mapping(topic, group)).collect();
    if broker.version >= 413 {
        part(&mappings.len().to_string(), false);
        mappings.iter().for_each(|mapping| part(mapping, true));
    }
    out.finish().unwrap_or_default()
}
