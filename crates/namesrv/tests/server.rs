//! The name server over real sockets, in this process.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use namesrv::Namesrv;
use protocol::{Command, SerializeType, request_code as code, response_code};
use remoting::{Client, ClientConfig, CloseReason, Connection, Reply, Server, ServerConfig, Service};
use service::config::Live;
use service::keys::NamesrvSettings;
use tokio::sync::mpsc;

const TIMEOUT: Duration = Duration::from_secs(10);

struct Fixture {
    server: Namesrv,
    addr: String,
    client: Client,
    folder: tempfile::TempDir,
}

impl Fixture {
    fn start(change: impl FnOnce(&mut NamesrvSettings)) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), change)
    }

    fn start_in(folder: tempfile::TempDir, change: impl FnOnce(&mut NamesrvSettings)) -> Self {
        let mut settings = NamesrvSettings::default();
        settings.netty.listen_port = 0;
        settings.netty.bind_address = "127.0.0.1".into();
        settings.namesrv.kv_config_path = folder.path().join("kv.json").display().to_string();
        change(&mut settings);
        let live = Live::new(settings);
        live.set_store_path(folder.path().join("namesrv.properties"));
        let server = Namesrv::start(live).unwrap();
        let addr = server.local_addr().to_string();
        Self { server, addr, client: Client::new(ClientConfig::default(), None), folder }
    }

    async fn ask(&self, request: Command) -> Command {
        self.client.request(&self.addr, request, TIMEOUT).await.unwrap()
    }

    async fn route(&self, topic: &str) -> Command {
        self.ask(Command::request(code::GET_ROUTEINFO_BY_TOPIC).with_field("topic", topic)).await
    }

    async fn wait_until_unknown(&self, topic: &str) -> Duration {
        let begin = Instant::now();
        while self.route(topic).await.code != response_code::TOPIC_NOT_EXIST {
            assert!(begin.elapsed() < TIMEOUT, "{topic} is still there");
            tokio::task::yield_now().await;
        }
        begin.elapsed()
    }
}

fn registration(name: &str, id: i64, addr: &str) -> Command {
    let topics = ["T", "U"].map(|topic| {
        format!(r#""{topic}":{{"perm":6,"readQueueNums":4,"topicName":"{topic}","topicSysFlag":0,"writeQueueNums":4}}"#)
    });
    let body = format!(
        r#"{{"filterServerList":[],"topicConfigSerializeWrapper":{{"dataVersion":{{"counter":1,"stateVersion":0,"timestamp":1}},"topicConfigTable":{{{}}}}}}}"#,
        topics.join(",")
    );
    Command::request(code::REGISTER_BROKER)
        .with_field("brokerName", name)
        .with_field("brokerAddr", addr)
        .with_field("clusterName", "c")
        .with_field("haServerAddr", "127.0.0.1:1")
        .with_field("brokerId", id.to_string())
        .with_field("enableActingMaster", "true")
        .with_body(body.into_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_registers_and_clients_find_it() {
    let fixture = Fixture::start(|_| {});
    assert_eq!(fixture.route("T").await.code, response_code::TOPIC_NOT_EXIST);
    assert_eq!(fixture.ask(registration("a", 0, "127.0.0.1:10911")).await.code, response_code::SUCCESS);
    let answer = fixture.route("T").await;
    assert_eq!(answer.code, response_code::SUCCESS);
    assert!(answer.body.starts_with(br#"{"brokerDatas":[{"brokerAddrs":{"0":"127.0.0.1:10911"},"#), "{answer:?}");
    let mut old = Command::request(code::GET_ROUTEINFO_BY_TOPIC).with_field("topic", "T");
    old.version = 317;
    old.serialize = SerializeType::Binary;
    let answer = fixture.ask(old.clone()).await;
    assert_eq!(answer.serialize, SerializeType::Binary);
    assert!(answer.body.starts_with(br#"{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:10911"},"#), "{answer:?}");
    let answer = fixture.ask(old.with_field("acceptStandardJsonOnly", "true")).await;
    assert!(answer.body.starts_with(br#"{"brokerDatas":[{"brokerAddrs":{"0":"#), "{answer:?}");
    let slave = fixture.ask(registration("a", 1, "127.0.0.1:10921")).await;
    assert_eq!(slave.fields.get("masterAddr").as_deref(), Some("127.0.0.1:10911"));
    assert_eq!(fixture.ask(Command::request(999)).await.remark.as_deref(), Some(" request type 999 not supported"));
    let refused = fixture.ask(Command::request(code::REGISTER_BROKER)).await;
    assert_eq!(refused.code, response_code::SYSTEM_ERROR);
    fixture.server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_goes_with_its_connection() {
    let fixture = Fixture::start(|_| {});
    let broker = Client::new(ClientConfig::default(), None);
    broker.request(&fixture.addr, registration("a", 0, "127.0.0.1:10911"), TIMEOUT).await.unwrap();
    assert_eq!(fixture.route("T").await.code, response_code::SUCCESS);
    let begin = Instant::now();
    broker.close();
    fixture.wait_until_unknown("T").await;
    assert!(begin.elapsed() < Duration::from_millis(1000), "{:?}", begin.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_connection_that_closes_takes_nobody_along() {
    let fixture = Fixture::start(|_| {});
    let (old, new) = (Client::new(ClientConfig::default(), None), Client::new(ClientConfig::default(), None));
    old.request(&fixture.addr, registration("a", 0, "127.0.0.1:10911"), TIMEOUT).await.unwrap();
    new.request(&fixture.addr, registration("a", 0, "127.0.0.1:10911"), TIMEOUT).await.unwrap();
    let other = registration("b", 0, "127.0.0.1:10931");
    old.request(&fixture.addr, other, TIMEOUT).await.unwrap();
    old.close();
    // The other broker of the closed connection shows that the server has seen it close.
    let begin = Instant::now();
    loop {
        let route = fixture.route("T").await;
        if !String::from_utf8_lossy(&route.body).contains("\"b\"") {
            assert_eq!(route.code, response_code::SUCCESS, "{route:?}");
            break;
        }
        assert!(begin.elapsed() < TIMEOUT);
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_says_goodbye() {
    let fixture = Fixture::start(|_| {});
    fixture.ask(registration("a", 0, "127.0.0.1:10911")).await;
    let goodbye = Command::request(code::UNREGISTER_BROKER)
        .with_field("brokerName", "a")
        .with_field("brokerAddr", "127.0.0.1:10911")
        .with_field("clusterName", "c")
        .with_field("brokerId", "0");
    assert_eq!(fixture.ask(goodbye).await.code, response_code::SUCCESS);
    fixture.wait_until_unknown("T").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn registrations_that_cannot_be_read_are_refused_and_harm_nobody() {
    let fixture = Fixture::start(|_| {});
    let good = registration("a", 0, "127.0.0.1:10911");
    let wrong_crc = fixture.ask(good.clone().with_field("bodyCrc32", "7")).await;
    assert_eq!((wrong_crc.code, wrong_crc.remark.as_deref()), (response_code::SYSTEM_ERROR, Some("crc32 not match")));
    let crc = crc32fast::hash(&good.body) & 0x7FFF_FFFF;
    assert_eq!(fixture.ask(good.clone().with_field("bodyCrc32", crc.to_string())).await.code, response_code::SUCCESS);
    for body in [&b"{broken"[..], b"\x78\xda\x00\x01", b"[]"] {
        let answer = fixture.ask(registration("b", 0, "127.0.0.1:10931").with_body(body)).await;
        assert_eq!(answer.code, response_code::SYSTEM_ERROR, "{answer:?}");
    }
    assert_eq!(fixture.route("T").await.code, response_code::SUCCESS);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kv_configuration_survives_a_restart() {
    let fixture = Fixture::start(|_| {});
    let put = |key: &'static str| {
        Command::request(code::PUT_KV_CONFIG)
            .with_field("namespace", "ORDER_TOPIC_CONFIG")
            .with_field("key", key)
            .with_field("value", "a:4")
    };
    assert_eq!(fixture.ask(put("T")).await.code, response_code::SUCCESS);
    assert_eq!(fixture.ask(put("gone")).await.code, response_code::SUCCESS);
    let key = |code, key: &'static str| {
        Command::request(code).with_field("namespace", "ORDER_TOPIC_CONFIG").with_field("key", key)
    };
    assert_eq!(fixture.ask(key(code::DELETE_KV_CONFIG, "gone")).await.code, response_code::SUCCESS);
    fixture.server.shutdown().await;

    let fixture = Fixture::start_in(fixture.folder, |settings| settings.namesrv.order_message_enable = true);
    let got = fixture.ask(key(code::GET_KV_CONFIG, "T")).await;
    assert_eq!(got.fields.get("value").as_deref(), Some("a:4"));
    let missing = fixture.ask(key(code::GET_KV_CONFIG, "gone")).await;
    assert_eq!(missing.remark.as_deref(), Some("No config item, Namespace: ORDER_TOPIC_CONFIG Key: gone"));
    let registered = fixture.ask(registration("a", 0, "127.0.0.1:10911")).await;
    assert_eq!(&registered.body[..], br#"{"table":{"T":"a:4"}}"#);
    let route = fixture.route("T").await;
    assert!(String::from_utf8_lossy(&route.body).contains(r#""orderTopicConf":"a:4""#), "{route:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_is_read_and_changed_from_remote() {
    let fixture = Fixture::start(|_| {});
    let update = |text: &'static str| Command::request(code::UPDATE_NAMESRV_CONFIG).with_body(text.as_bytes());
    let refused = fixture.ask(update("enableTopicList=false\nkvConfigPath=elsewhere")).await;
    assert_eq!(refused.code, response_code::NO_PERMISSION);
    assert_eq!(refused.remark.as_deref(), Some("Can not update config in black list."));
    let units = || Command::request(code::GET_UNIT_TOPIC_LIST);
    assert_eq!(fixture.ask(units()).await.code, response_code::SUCCESS, "nothing of it was applied");
    assert_eq!(fixture.ask(update("enableTopicList=false\n")).await.code, response_code::SUCCESS);
    assert_eq!(fixture.ask(units()).await.remark.as_deref(), Some("disable"));
    let shown = fixture.ask(Command::request(code::GET_NAMESRV_CONFIG)).await;
    assert!(String::from_utf8_lossy(&shown.body).contains("\nenableTopicList=false\n"));
    let file = std::fs::read_to_string(fixture.folder.path().join("namesrv.properties")).unwrap();
    assert!(file.contains("enableTopicList=false"), "{file}");
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_wait_while_the_server_gathers_brokers() {
    let fixture = Fixture::start(|settings| settings.namesrv.need_wait_for_service = true);
    fixture.ask(registration("a", 0, "127.0.0.1:10911")).await;
    let answer = fixture.route("T").await;
    assert_eq!((answer.code, answer.remark.as_deref()), (response_code::SYSTEM_ERROR, Some("name server not ready")));
    let pages = fixture.server.pages();
    assert!((pages.ready)().is_err() && (pages.healthy)().is_ok());
    let update = Command::request(code::UPDATE_NAMESRV_CONFIG).with_body(&b"waitSecondsForService=0"[..]);
    fixture.ask(update).await;
    assert_eq!(fixture.route("T").await.code, response_code::SUCCESS);
    let page = pages.metrics.render();
    assert!((pages.ready)().is_ok() && page.contains("namesrv_topic_rows 2\n"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_lane_answers_overload() {
    let fixture = Fixture::start(|settings| {
        settings.namesrv.client_request_thread_pool_queue_capacity = 0;
    });
    let answer = fixture.route("T").await;
    assert_eq!(answer.code, response_code::SYSTEM_BUSY);
    assert_eq!(answer.remark.as_deref(), Some("[OVERLOAD]system busy, start flow control for a while"));
    assert_eq!(fixture.ask(registration("a", 0, "h:1")).await.code, response_code::SUCCESS, "the other lane is free");
}

/// Stands for a broker's own port.
struct Listener(mpsc::UnboundedSender<Command>);

impl Service for Listener {
    type Batch = ();

    fn call(&self, _: &Connection, (): &mut (), request: Command, _: Reply) {
        let _ = self.0.send(request);
    }

    fn disconnected(&self, _: &Connection, _: CloseReason) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn brokers_hear_of_a_new_smallest_id() {
    let fixture = Fixture::start(|settings| settings.namesrv.notify_min_broker_id_changed = true);
    let (sender, mut notices) = mpsc::unbounded_channel();
    let listen = ServerConfig::new("127.0.0.1:0".parse().unwrap());
    let slave = Server::bind(listen, Arc::new(Listener(sender))).unwrap();
    let slave_addr = slave.local_addr().to_string();
    fixture.ask(registration("a", 1, &slave_addr)).await;
    let master = Client::new(ClientConfig::default(), None);
    master.request(&fixture.addr, registration("a", 0, "127.0.0.1:10911"), TIMEOUT).await.unwrap();
    let notice = tokio::time::timeout(TIMEOUT, notices.recv()).await.unwrap().unwrap();
    assert_eq!(notice.code, code::NOTIFY_MIN_BROKER_ID_CHANGE);
    assert!(notice.is_oneway());
    assert_eq!(notice.fields.get("minBrokerAddr").as_deref(), Some("127.0.0.1:10911"));
    assert_eq!(notice.fields.get("haBrokerAddr").as_deref(), Some("127.0.0.1:1"));
    master.close();
    let notice = tokio::time::timeout(TIMEOUT, notices.recv()).await.unwrap().unwrap();
    assert_eq!(notice.fields.get("minBrokerId").as_deref(), Some("1"));
    assert_eq!(notice.fields.get("offlineBrokerAddr").as_deref(), Some("127.0.0.1:10911"));
}
