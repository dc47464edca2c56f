//! Starting a broker, and stopping it in order.

use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use remoting::{Client, ClientConfig, NameServers, Server, ServerConfig, TlsSettings};
use service::clock::now_ms;
use service::config::{Config as _, Live};
use service::keys::{BrokerRole, BrokerSettings, FlushDiskType, TlsSystemConfig};
use store::{Store, StoreConfig};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::arrivals::Arrivals;
use crate::broker::Broker;
use crate::built_in_topics::TopicRules;
use crate::clients::ClientRegistry;
use crate::config_file::ConfigFileError;
use crate::delay::DelayLevels;
use crate::delay_delivery::DelayDelivery;
use crate::dispatch::{BrokerService, LaneLimits, Lanes};
use crate::groups::SubscriptionGroups;
use crate::long_poll::{Limits as LongPollLimits, LongPolls};
use crate::offsets::ConsumerOffsets;
use crate::pull;
use crate::queue_locks::QueueLocks;
use crate::registration::Registration;
use crate::send_properties::BrokerPairs;
use crate::stats::Stats;
use crate::topics::TopicTable;
use crate::unique_keys::UniqueKeys;

/// How long the start waits for the name servers to answer the first registration.
const FIRST_REGISTRATION: Duration = Duration::from_secs(3);
/// How long requests under way may take when the broker stops. `enableShutdownGracefully` has a limit of its own.
const DRAIN: Duration = Duration::from_secs(1);
/// Silent clients are looked for this many times within the time they may be silent: every 10 s with Java's 120 s.
const CLIENT_SCANS: u64 = 12;
const LONG_POLL_SWEEP: Duration = Duration::from_millis(250);
/// The second listener, for clients that send through the "VIP channel".
const FAST_PORT_BELOW: u16 = 2;

/// Why a broker did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigFileError),
    #[error("messageDelayLevel: {0}")]
    DelayLevels(String),
    #[error(transparent)]
    Store(#[from] store::OpenError),
    #[error("cannot listen on {addr}: {error}")]
    Listen { addr: String, error: std::io::Error },
    #[error("{key}={value} is not an address")]
    Address { key: &'static str, value: String },
    #[error("{key}={value} is too small: at least {least}")]
    TooSmall { key: &'static str, value: u64, least: u64 },
    #[error("{0} is not supported by this broker yet")]
    Unsupported(String),
    #[error("TLS: {0}")]
    Tls(String),
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// A broker that serves. Dropping it stops it without order; [`RunningBroker::shutdown`] is the right way.
pub struct RunningBroker {
    broker: Arc<Broker>,
    server: Server,
    fast: Option<Server>,
    tasks: JoinSet<()>,
    client: Client,
}

impl Broker {
    /// Opens the store, listens, registers. To be called within a tokio runtime.
    ///
    /// `listenPort` 0 takes a free port, and no second listener.
    pub async fn start(settings: Live<BrokerSettings>) -> Result<RunningBroker, StartError> {
        let config = settings.snapshot();
        refuse_unsupported(&config)?;
        let listen = listen_address(&config)?;
        let (broker, client) = assemble(settings, &config, listen.port())?;

        let server = listen_on(&broker, &config, listen)?;
        let fast_port = listen.port().checked_sub(FAST_PORT_BELOW).filter(|_| config.netty.listen_port != 0);
        let fast = match fast_port {
            Some(port) => Some(listen_on(&broker, &config, SocketAddr::new(listen.ip(), port))?),
            None => None,
        };
        broker.delay.start(broker.store.clone()).map_err(StartError::Thread)?;
        let _ = tokio::time::timeout(FIRST_REGISTRATION, broker.registration.register(&broker)).await;

        let mut tasks = JoinSet::new();
        spawn_tasks(&broker, &config, &mut tasks);
        tracing::info!(name = broker.name(), address = broker.address(), "broker started");
        Ok(RunningBroker { broker, server, fast, tasks, client })
    }
}

impl RunningBroker {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.server.local_addr()
    }

    pub fn broker(&self) -> &Arc<Broker> {
        &self.broker
    }

    /// Stops in order: the name servers forget it, requests under way are answered, everything reaches the disk.
    pub async fn shutdown(mut self) {
        let broker = self.broker;
        broker.registration.leave(&broker).await;
        broker.stopping.store(true, Ordering::Relaxed);
        for parked in broker.long_polls.drain() {
            pull::resume(&broker, parked);
        }
        let drain = {
            let netty = &broker.settings.load().netty;
            let seconds = netty.shutdown_wait_time_seconds;
            if netty.enable_shutdown_gracefully { Duration::from_secs(seconds.into()) } else { DRAIN }
        };
        match self.fast {
            Some(fast) => {
                tokio::join!(self.server.shutdown(drain), fast.shutdown(drain));
            }
            None => self.server.shutdown(drain).await,
        }
        self.tasks.shutdown().await;
        self.client.close();
        let closing = broker.clone();
        let closed = tokio::task::spawn_blocking(move || close(&closing)).await;
        if let Err(error) = closed {
            tracing::error!(%error, "the stop did not finish");
        }
        tracing::info!("broker stopped");
    }
}

/// The last part of a stop: whatever is not on the disk gets there.
fn close(broker: &Broker) {
    if let Err(error) = broker.delay.stop() {
        tracing::error!(%error, "delay offsets not kept");
    }
    for (what, result) in [
        ("consumer offsets", broker.offsets.flush()),
        ("topics", broker.topics.flush()),
        ("groups", broker.groups.flush()),
    ] {
        if let Err(error) = result {
            tracing::error!(%error, "{what} not kept");
        }
    }
    broker.store.close();
}

fn refuse_unsupported(config: &BrokerSettings) -> Result<(), StartError> {
    if config.store.broker_role == BrokerRole::Slave || config.identity.broker_id != 0 {
        return Err(StartError::Unsupported(format!(
            "brokerRole={:?} with brokerId={}",
            config.store.broker_role, config.identity.broker_id
        )));
    }
    for (key, value, least) in [
        // Room for one record of the smallest useful size and the mark of the end.
        ("mappedFileSizeCommitLog", config.store.mapped_file_size_commit_log, 4096),
        ("mappedFileSizeConsumeQueue", config.store.mapped_file_size_consume_queue, 20),
        ("mapperFileSizeBatchConsumeQueue", config.store.mapper_file_size_batch_consume_queue, 46),
    ] {
        if value < least {
            return Err(StartError::TooSmall { key, value, least });
        }
    }
    Ok(())
}

fn listen_address(config: &BrokerSettings) -> Result<SocketAddr, StartError> {
    let ip: IpAddr = config
        .netty
        .bind_address
        .parse()
        .map_err(|_| StartError::Address { key: "bindAddress", value: config.netty.bind_address.clone() })?;
    let port = match config.netty.listen_port {
        0 => free_port(ip).map_err(|error| StartError::Listen { addr: format!("{ip}:0"), error })?,
        port => port,
    };
    Ok(SocketAddr::new(ip, port))
}

/// A port nobody uses now: it stands in the broker's address before the broker listens.
fn free_port(ip: IpAddr) -> std::io::Result<u16> {
    TcpListener::bind((ip, 0))?.local_addr().map(|addr| addr.port())
}

fn listen_on(broker: &Arc<Broker>, config: &BrokerSettings, listen: SocketAddr) -> Result<Server, StartError> {
    let mut server = ServerConfig::new(listen);
    server.backlog = config.netty.server_socket_backlog as i32;
    server.limits.frame_bytes = config.system.frame_max_length as usize;
    server.limits.idle = Duration::from_secs(config.netty.server_channel_max_idle_time_seconds.into());
    server.tls = tls_settings(config)?;
    Server::bind(server, Arc::new(BrokerService(broker.clone())))
        .map_err(|error| StartError::Listen { addr: listen.to_string(), error })
}

fn tls_settings(config: &BrokerSettings) -> Result<TlsSettings, StartError> {
    let mut tls = TlsSettings::default();
    for key in TlsSystemConfig::keys() {
        if let Some(value) = config.tls.get(key.name) {
            tls.set(key.name, &value).map_err(StartError::Tls)?;
        }
    }
    Ok(tls)
}

fn client_config(config: &BrokerSettings) -> Result<ClientConfig, StartError> {
    let tls = tls_settings(config)?;
    let mut client = ClientConfig::default();
    client.connect_timeout = Duration::from_millis(config.client.connect_timeout_millis.into());
    if config.client.use_tls || tls.outbound() {
        client.tls = Some(tls);
    }
    Ok(client)
}

fn assemble(
    settings: Live<BrokerSettings>,
    config: &BrokerSettings,
    port: u16,
) -> Result<(Arc<Broker>, Client), StartError> {
    let now = now_ms();
    let data_dir = PathBuf::from(&config.store.store_path_root_dir);
    let tables = data_dir.join("config");
    let topics = Arc::new(TopicTable::load(&tables, &topic_rules(config), now)?);
    let groups = SubscriptionGroups::load(&tables, now)?.with_light(config.store.enable_lmq);
    let version_step = config.broker.consumer_offset_update_version_step;
    let offsets = ConsumerOffsets::load(&tables, version_step, config.store.enable_lmq, now)?;
    let delay_levels = DelayLevels::parse(&config.store.message_delay_level)
        .map_err(|error| StartError::DelayLevels(error.to_string()))?;
    let delay = DelayDelivery::load(&tables, delay_levels)?;
    let long_polls = Arc::new(LongPolls::new(LongPollLimits::default()));
    let arrivals = Arrivals::new(long_polls.clone(), delay.clone(), Handle::current());
    let store = Store::open(store_config(config, &data_dir), topics.clone(), arrivals.listener())?;

    let store_ip = resolve(&config.broker.broker_ip1)?;
    let client = Client::new(client_config(config)?, None);
    let name_servers = config.broker.namesrv_addr.as_deref().unwrap_or_default();
    let broker = Arc::new(Broker {
        data_dir,
        started_at: now,
        store_host: SocketAddr::new(store_ip, port),
        sync_flush: config.store.flush_disk_type == FlushDiskType::SyncFlush,
        store,
        topics,
        groups,
        offsets,
        clients: ClientRegistry::default(),
        locks: QueueLocks::default(),
        lanes: Lanes::new(lane_limits(config)),
        stats: Stats::new(config.store.enable_lmq && !config.store.enable_lmq_stats),
        registration: Registration::new(NameServers::new(client.clone(), name_servers)),
        long_polls,
        delay,
        unique_keys: UniqueKeys::new(store_ip, std::process::id(), fastrand::u32(..)),
        stopping: AtomicBool::new(false),
        pairs: BrokerPairs::new(&config.broker.region_id, config.broker.trace_on, &config.identity.broker_cluster_name),
        settings,
    });
    arrivals.attach(&broker);
    let weak = Arc::downgrade(&broker);
    broker.topics.on_change(Box::new(move |topics| {
        let Some(broker) = weak.upgrade() else { return Ok(()) };
        let done = topics.iter().try_for_each(|topic| broker.store.topic_changed(topic));
        broker.registration.request();
        done
    }));
    let names = broker.registration.name_servers().clone();
    broker.settings.on_change(move |old, new| {
        if old.broker.namesrv_addr != new.broker.namesrv_addr {
            names.update(new.broker.namesrv_addr.as_deref().unwrap_or_default());
        }
    });
    Ok((broker, client))
}

fn resolve(host: &str) -> Result<IpAddr, StartError> {
    if let Ok(ip) = host.parse() {
        return Ok(ip);
    }
    let bad = || StartError::Address { key: "brokerIP1", value: host.to_owned() };
    (host, 0).to_socket_addrs().map_err(|_| bad())?.next().map(|addr| addr.ip()).ok_or_else(bad)
}

fn topic_rules(config: &BrokerSettings) -> TopicRules {
    let broker = &config.broker;
    TopicRules {
        cluster: config.identity.broker_cluster_name.clone(),
        broker_name: config.identity.broker_name.clone(),
        auto_create: broker.auto_create_topic_enable,
        default_queues: broker.default_topic_queue_nums as i32,
        cluster_topic: broker.cluster_topic_enable,
        broker_topic: broker.broker_topic_enable,
        trace_topic: broker.trace_topic_enable.then(|| broker.msg_trace_topic_name.clone()),
        revive_queues: broker.revive_queue_num as i32,
        timer_wheel: config.store.timer_wheel_enable,
        light: config.store.enable_lmq,
    }
}

fn lane_limits(config: &BrokerSettings) -> LaneLimits {
    let broker = &config.broker;
    LaneLimits {
        send: broker.send_thread_pool_queue_capacity as usize,
        pull: broker.pull_thread_pool_queue_capacity as usize,
        query: broker.query_thread_pool_queue_capacity as usize,
        client: broker.client_manager_thread_pool_queue_capacity as usize,
        heartbeat: broker.heartbeat_thread_pool_queue_capacity as usize,
        consumer: broker.consumer_manager_thread_pool_queue_capacity as usize,
        admin: broker.admin_broker_thread_pool_queue_capacity as usize,
    }
}

/// What the store gets of the broker's keys.
pub fn store_config(config: &BrokerSettings, root: &Path) -> StoreConfig {
    let keys = &config.store;
    let ms = |value: u32| Duration::from_millis(value.into());
    let mut store = StoreConfig::new(root);
    store.commit_log_paths = keys.commit_log_paths().into_iter().map(PathBuf::from).collect();
    store.read_only_commit_log_paths = keys.read_only_commit_log_paths().into_iter().map(PathBuf::from).collect();
    store.commit_log_file_size = keys.mapped_file_size_commit_log;
    store.consume_queue_file_size = keys.consume_queue_file_size();
    store.batch_consume_queue_file_size = keys.mapper_file_size_batch_consume_queue;
    store.enable_consume_queue_ext = keys.enable_consume_queue_ext;
    store.consume_queue_ext_file_size = keys.mapped_file_size_consume_queue_ext;
    store.enable_lmq = keys.enable_lmq;
    store.enable_multi_dispatch = keys.enable_multi_dispatch;
    store.max_lmq_consume_queue_num = keys.max_lmq_consume_queue_num as usize;
    store.flush_disk_type = match keys.flush_disk_type {
        FlushDiskType::SyncFlush => store::FlushDiskType::Sync,
        FlushDiskType::AsyncFlush => store::FlushDiskType::Async,
    };
    store.flush_interval_commit_log = ms(keys.flush_interval_commit_log);
    store.flush_commit_log_least_pages = keys.flush_commit_log_least_pages.into();
    store.flush_commit_log_thorough_interval = ms(keys.flush_commit_log_thorough_interval);
    store.flush_interval_consume_queue = ms(keys.flush_interval_consume_queue);
    store.flush_consume_queue_least_pages = keys.flush_consume_queue_least_pages.into();
    store.flush_consume_queue_thorough_interval = ms(keys.flush_consume_queue_thorough_interval);
    store.sync_flush_timeout = ms(keys.sync_flush_timeout);
    store.max_message_size = keys.max_message_size as usize;
    store.check_crc_on_recover = keys.check_crc_on_recover;
    store.append_prop_crc = keys.enabled_append_prop_crc;
    store.force_verify_prop_crc = keys.force_verify_prop_crc;
    store.auto_message_version_on_topic_len = keys.auto_message_version_on_topic_len;
    store.duplication_enable = keys.duplication_enable;
    store.slave = keys.broker_role == BrokerRole::Slave;
    store.message_index_enable = keys.message_index_enable;
    store.max_hash_slot_num = keys.max_hash_slot_num;
    store.max_index_num = keys.max_index_num;
    store.max_msgs_num_batch = keys.max_msgs_num_batch as usize;
    store.max_filter_message_size = keys.max_filter_message_size as usize;
    store.max_transfer_bytes_in_memory = keys.max_transfer_bytes_on_message_in_memory as usize;
    store.max_transfer_count_in_memory = keys.max_transfer_count_on_message_in_memory as usize;
    store.max_transfer_bytes_on_disk = keys.max_transfer_bytes_on_message_in_disk as usize;
    store.max_transfer_count_on_disk = keys.max_transfer_count_on_message_in_disk as usize;
    store.access_in_memory_max_ratio = keys.access_message_in_memory_max_ratio.into();
    store.offset_check_in_slave = keys.offset_check_in_slave;
    store.file_reserved_time = Duration::from_secs(u64::from(keys.file_reserved_time) * 3600);
    let hours: Vec<u8> = keys.delete_when.split(';').filter_map(|hour| hour.trim().parse().ok()).collect();
    if !hours.is_empty() {
        store.delete_when = hours;
    }
    store.clean_resource_interval = ms(keys.clean_resource_interval);
    store.delete_commit_log_files_interval = ms(keys.delete_commit_log_files_interval);
    store.delete_file_batch_max = keys.delete_file_batch_max as usize;
    store.clean_file_forcibly = keys.clean_file_forcibly_enable;
    store.disk_max_used_space_ratio = keys.disk_max_used_percent();
    store.disk_space_clean_forcibly_ratio = keys.disk_clean_forcibly_percent();
    store.disk_space_warning_level_ratio = keys.disk_warning_percent();
    // Without a folder for logs the screen shows them anyway.
    if config.service.log_folder.is_some() {
        store.screen = Some(Arc::new(|line| eprintln!("{line}")));
    }
    store.enable_compaction = keys.enable_compaction;
    store.compaction_file_size = keys.compaction_mapped_file_size;
    store.compaction_queue_file_size = keys.compaction_cq_mapped_file_size;
    store.compaction_interval = ms(keys.compaction_schedule_internal);
    store.compaction_threads = keys.compaction_thread_num as usize;
    store.max_offset_map_size = keys.max_offset_map_size as usize;
    if let Ok(levels) = DelayLevels::parse(&keys.message_delay_level) {
        store.delay_levels_ms = (1..=levels.max_level()).map(|level| levels.delay_ms(level)).collect();
    }
    store
}

/// Everything that happens by the clock.
fn spawn_tasks(broker: &Arc<Broker>, config: &BrokerSettings, tasks: &mut JoinSet<()>) {
    let period = Duration::from_millis(config.broker.register_period_ms());
    tasks.spawn(Registration::run(broker.clone(), period));
    every(tasks, broker, Duration::from_secs(1), |broker| broker.stats.sample(now_ms()));
    every(tasks, broker, LONG_POLL_SWEEP, |broker| {
        for parked in broker.long_polls.sweep(now_ms(), |parked| parked.is_alive()) {
            pull::resume(broker, parked);
        }
    });
    let scan = Duration::from_millis((config.broker.channel_expired_timeout / CLIENT_SCANS).clamp(100, 10_000));
    every(tasks, broker, scan, |broker| {
        let (now, limit) = (now_ms(), broker.config().channel_expired_timeout as i64);
        let changes = broker.clients.change(|tables| tables.expire(now, limit));
        broker.apply(changes);
        broker.locks.expire(now);
    });
    let offsets = Duration::from_millis(config.broker.flush_consumer_offset_interval.max(1).into());
    every_blocking(tasks, broker, offsets, |broker| {
        if let Err(error) = broker.offsets.flush() {
            tracing::error!(%error, "consumer offsets not kept");
        }
    });
    let delays = Duration::from_millis(config.store.flush_delay_offset_interval.max(1));
    every_blocking(tasks, broker, delays, |broker| {
        if let Err(error) = broker.delay.flush() {
            tracing::error!(%error, "delay offsets not kept");
        }
    });
}

fn every(tasks: &mut JoinSet<()>, broker: &Arc<Broker>, period: Duration, work: fn(&Arc<Broker>)) {
    let broker = broker.clone();
    tasks.spawn(async move {
        let mut ticks = tokio::time::interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            work(&broker);
        }
    });
}

/// The same for work that waits for the disk.
fn every_blocking(tasks: &mut JoinSet<()>, broker: &Arc<Broker>, period: Duration, work: fn(&Arc<Broker>)) {
    let broker = broker.clone();
    tasks.spawn(async move {
        let mut ticks = tokio::time::interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let broker = broker.clone();
            if tokio::task::spawn_blocking(move || work(&broker)).await.is_err() {
                return;
            }
        }
    });
}
