//! Keys of the broker.

use super::{
    MessageStoreConfig, NettyClientConfig, NettyServerConfig, ServiceConfig, SystemProperties, TlsSystemConfig,
};
use crate::cli::{CommandLine, Exit};
use crate::config::{BROKER_KEYS, Loaded};
use crate::home;

crate::config_enum! {
    /// How metrics leave the broker.
    pub enum MetricsExporterType {
        "DISABLE" Disable,
        "PROM" Prom,
    }
}

crate::config_enum! {
    /// How a consumer asks for messages.
    pub enum MessageRequestMode {
        "PULL" Pull,
        "POP" Pop,
    }
}

crate::config! {
    /// Who the broker is.
    pub struct BrokerIdentity {
        /// Name of the replica group this broker belongs to.
        "brokerName" broker_name: String = home::host_name() => "name of the host", fixed, important;
        /// Name of the cluster.
        "brokerClusterName" broker_cluster_name: String = "DefaultCluster".into() => "DefaultCluster", fixed, important;
        /// 0 is the master of its group, larger numbers are slaves.
        "brokerId" broker_id: u64 = 0, fixed, important;
    }
}

crate::config! {
    /// Keys of the broker.
    pub struct BrokerConfig {
        /// Install folder. Honoured but not required.
        "rocketmqHome" rocketmq_home: Option<String> = home::env("ROCKETMQ_HOME") => "env ROCKETMQ_HOME", fixed;
        /// Name servers, `host:port` joined by semicolons. `-n` wins.
        "namesrvAddr" namesrv_addr: Option<String> = home::env("NAMESRV_ADDR") => "env NAMESRV_ADDR", live, important;
        /// Address that clients are told to connect to.
        "brokerIP1" broker_ip1: String = home::local_ip().to_string() => "address of the host", fixed, important;
        /// Address that slaves are told to connect to.
        "brokerIP2" broker_ip2: String = home::local_ip().to_string() => "address of the host", fixed;
        /// Sum of 4 (read) and 2 (write); a topic is never more open than its broker.
        "brokerPermission" broker_permission: u32 = 6, live;
        /// Most queues of a topic that is created on first use.
        "defaultTopicQueueNums" default_topic_queue_nums: u32 = 8, fixed;
        /// Create topics on first use, by the template TBW102.
        "autoCreateTopicEnable" auto_create_topic_enable: bool = true, live, important;
        /// The topic named after the cluster can be read and written.
        "clusterTopicEnable" cluster_topic_enable: bool = true, fixed;
        /// The topic named after the broker can be read and written.
        "brokerTopicEnable" broker_topic_enable: bool = true, fixed;
        /// Create consumer groups on first use.
        "autoCreateSubscriptionGroup" auto_create_subscription_group: bool = true, live, important;
        /// Create the configuration of system consumer groups on first use.
        "enableCreateSysGroup" enable_create_sys_group: bool = true, live;
        /// Topic of message traces.
        "msgTraceTopicName" msg_trace_topic_name: String = "RMQ_SYS_TRACE_TOPIC".into() => "RMQ_SYS_TRACE_TOPIC", fixed, important;
        /// Create that topic at start.
        "traceTopicEnable" trace_topic_enable: bool = false, fixed, important;
        /// Refuse transactional messages.
        "rejectTransactionMessage" reject_transaction_message: bool = false, live, important;
        /// Refuse pull requests of clients that choose their own offsets.
        "rejectPullConsumerEnable" reject_pull_consumer_enable: bool = false, live;
        /// Refuse to change system topics on request.
        "validateSystemTopicWhenUpdateTopic" validate_system_topic_when_update_topic: bool = true, live;
        /// Allow topics with message.type MIXED.
        "enableMixedMessageType" enable_mixed_message_type: bool = false, live;
        /// Refuse sends before this time, milliseconds since 1970.
        "startAcceptSendRequestTimeStamp" start_accept_send_request_time_stamp: u64 = 0, live;
        /// Region that send answers carry.
        "regionId" region_id: String = "DefaultRegion".into() => "DefaultRegion", fixed;
        /// Tell clients in send answers to trace.
        "traceOn" trace_on: bool = true, live;
        /// Answer a send when its write is done. This server always does.
        "asyncSendEnable" async_send_enable: bool = true, ignored;
        /// Load queues in parallel. This server always does when it helps.
        "recoverConcurrently" recover_concurrently: bool = false, ignored;
        /// Milliseconds between writes of consumerOffset.json.
        "flushConsumerOffsetInterval" flush_consumer_offset_interval: u32 = 5000, fixed;
        /// Commits of offsets for one step of their data version.
        "consumerOffsetUpdateVersionStep" consumer_offset_update_version_step: u64 = 500, live;
        /// Steps of delay offsets for one step of their data version.
        "delayOffsetUpdateVersionStep" delay_offset_update_version_step: u64 = 200, live;
        /// A reset of offsets is kept by the broker instead of pushed to clients.
        "useServerSideResetOffset" use_server_side_reset_offset: bool = true, live;
        /// Hold pull requests that find nothing until a message arrives.
        "longPollingEnable" long_polling_enable: bool = true, live;
        /// Milliseconds to hold them when long polling is off.
        "shortPollingTimeMills" short_polling_time_mills: u64 = 1000, live;
        /// Serve lite pull requests in a lane of their own.
        "litePullMessageEnable" lite_pull_message_enable: bool = true, fixed;
        /// Send consumers that are far behind to a slave.
        "slaveReadEnable" slave_read_enable: bool = false, live;
        /// Copy pulled messages into the answer. This server decides by itself.
        "transferMsgByHeap" transfer_msg_by_heap: bool = true, ignored;
        /// Disable a consumer group that falls behind by `consumerFallbehindThreshold`.
        "disableConsumeIfConsumerReadSlowly" disable_consume_if_consumer_read_slowly: bool = false, live;
        /// Bytes of that lag.
        "consumerFallbehindThreshold" consumer_fallbehind_threshold: u64 = 17179869184, live;
        /// Tell consumers when the members of their group change.
        "notifyConsumerIdsChangedEnable" notify_consumer_ids_changed_enable: bool = true, live;
        /// Tell them at once when a connection closes.
        "realTimeNotifyConsumerChange" real_time_notify_consumer_change: bool = true, live;
        /// Milliseconds without a heartbeat after which a client is forgotten.
        "channelExpiredTimeout" channel_expired_timeout: u64 = 120000, live;
        /// Milliseconds after which a subscription without heartbeat is forgotten.
        "subscriptionExpiredTimeout" subscription_expired_timeout: u64 = 600000, live;
        /// Keep a table of producers.
        "enableRegisterProducer" enable_register_producer: bool = true, live;
        /// Remember offsets of broadcasting consumers that go through the proxy.
        "enableBroadcastOffsetStore" enable_broadcast_offset_store: bool = true, live;
        /// Seconds after which such an offset is forgotten.
        "broadcastOffsetExpireSecond" broadcast_offset_expire_second: u64 = 120, live;
        /// Most seconds such an offset is kept.
        "broadcastOffsetExpireMaxSecond" broadcast_offset_expire_max_second: u64 = 300, live;
        /// Queue locks ask the other brokers of the group too.
        "lockInStrictMode" lock_in_strict_mode: bool = false, live;
        /// Compress the body of registrations.
        "compressedRegister" compressed_register: bool = false, live;
        /// Register every period, also when nothing changed.
        "forceRegister" force_register: bool = true, live;
        /// Milliseconds between registrations; at least 10000, at most 60000.
        "registerNameServerPeriod" register_name_server_period: u32 = 30000, fixed;
        /// Milliseconds to wait for the answer of a name server to a registration.
        "registerBrokerTimeoutMills" register_broker_timeout_mills: u32 = 24000, live;
        /// Milliseconds between looks at the addresses of the name servers.
        "updateNameServerAddrPeriod" update_name_server_addr_period: u32 = 120000, fixed;
        /// `namesrvAddr` is a host name whose addresses are the name servers.
        "fetchNameSrvAddrByDnsLookup" fetch_name_srv_addr_by_dns_lookup: bool = false, fixed, important;
        /// Ask an address server for the name servers.
        "fetchNamesrvAddrByAddressServer" fetch_namesrv_addr_by_address_server: bool = false, fixed, important;
        /// Milliseconds between looks at these two.
        "fetchNamesrvAddrInterval" fetch_namesrv_addr_interval: u64 = 10000, fixed;
        /// Register a changed topic alone instead of all.
        "enableSingleTopicRegister" enable_single_topic_register: bool = false, live;
        /// Register in parts of `splitRegistrationSize` topics.
        "enableSplitRegistration" enable_split_registration: bool = false, live;
        /// Topics in one part.
        "splitRegistrationSize" split_registration_size: u32 = 800, live;
        /// Milliseconds between light heartbeats to the name servers, sent with `enableSlaveActingMaster`.
        "brokerHeartbeatInterval" broker_heartbeat_interval: u32 = 1000, fixed;
        /// Milliseconds without them after which a name server drops the broker.
        "brokerNotActiveTimeoutMillis" broker_not_active_timeout_millis: u64 = 10000, fixed;
        /// Milliseconds to wait for a heartbeat to be sent.
        "sendHeartbeatTimeoutMillis" send_heartbeat_timeout_millis: u32 = 1000, live;
        /// A slave serves what it can while the master is gone.
        "enableSlaveActingMaster" enable_slave_acting_master: bool = false, fixed;
        /// Ask for the members of the group by a route query that old name servers know.
        "compatibleWithOldNameSrv" compatible_with_old_name_srv: bool = true, live;
        /// Milliseconds between looks at the members of the group.
        "syncBrokerMemberGroupPeriod" sync_broker_member_group_period: u32 = 1000, fixed;
        /// Milliseconds to wait for another broker.
        "forwardTimeout" forward_timeout: u64 = 3000, live;
        /// Answer SYSTEM_BUSY to requests that waited longer than the times below.
        "brokerFastFailureEnable" broker_fast_failure_enable: bool = true, live;
        /// Milliseconds a send may wait before it is begun.
        "waitTimeMillsInSendQueue" wait_time_mills_in_send_queue: u64 = 200, live;
        /// Milliseconds a pull may wait before it is begun.
        "waitTimeMillsInPullQueue" wait_time_mills_in_pull_queue: u64 = 5000, live;
        /// Milliseconds a lite pull may wait before it is begun.
        "waitTimeMillsInLitePullQueue" wait_time_mills_in_lite_pull_queue: u64 = 5000, live;
        /// Milliseconds a heartbeat may wait before it is begun.
        "waitTimeMillsInHeartbeatQueue" wait_time_mills_in_heartbeat_queue: u64 = 31000, live;
        /// Milliseconds the end of a transaction may wait before it is begun.
        "waitTimeMillsInTransactionQueue" wait_time_mills_in_transaction_queue: u64 = 3000, live;
        /// Milliseconds an acknowledgement may wait before it is begun.
        "waitTimeMillsInAckQueue" wait_time_mills_in_ack_queue: u64 = 3000, live;
        /// Milliseconds an admin request may wait before it is begun.
        "waitTimeMillsInAdminBrokerQueue" wait_time_mills_in_admin_broker_queue: u64 = 5000, live;
        /// Most sends in hand at once; more are answered SYSTEM_BUSY, as for the limits below.
        "sendThreadPoolQueueCapacity" send_thread_pool_queue_capacity: u32 = 10000, fixed;
        /// Most pulls in hand at once.
        "pullThreadPoolQueueCapacity" pull_thread_pool_queue_capacity: u32 = 100000, fixed;
        /// Most lite pulls in hand at once.
        "litePullThreadPoolQueueCapacity" lite_pull_thread_pool_queue_capacity: u32 = 100000, fixed;
        /// Most acknowledgements in hand at once.
        "ackThreadPoolQueueCapacity" ack_thread_pool_queue_capacity: u32 = 100000, fixed;
        /// Most reply messages in hand at once.
        "replyThreadPoolQueueCapacity" reply_thread_pool_queue_capacity: u32 = 10000, fixed;
        /// Most message queries in hand at once.
        "queryThreadPoolQueueCapacity" query_thread_pool_queue_capacity: u32 = 20000, fixed;
        /// Most client requests (unregister, check) in hand at once.
        "clientManagerThreadPoolQueueCapacity" client_manager_thread_pool_queue_capacity: u32 = 1000000, fixed;
        /// Most offset and consumer list requests in hand at once.
        "consumerManagerThreadPoolQueueCapacity" consumer_manager_thread_pool_queue_capacity: u32 = 1000000, fixed;
        /// Most heartbeats in hand at once.
        "heartbeatThreadPoolQueueCapacity" heartbeat_thread_pool_queue_capacity: u32 = 50000, fixed;
        /// Most ends of transactions in hand at once.
        "endTransactionPoolQueueCapacity" end_transaction_pool_queue_capacity: u32 = 100000, fixed;
        /// Most admin requests in hand at once.
        "adminBrokerThreadPoolQueueCapacity" admin_broker_thread_pool_queue_capacity: u32 = 10000, fixed;
        /// Most queue assignment requests in hand at once.
        "loadBalanceThreadPoolQueueCapacity" load_balance_thread_pool_queue_capacity: u32 = 100000, fixed;
        /// Puts waiting for their completion. Bounded by the sends in hand here.
        "putThreadPoolQueueCapacity" put_thread_pool_queue_capacity: u32 = 10000, ignored;
        /// Threads of one kind of request. Requests are not tied to threads here: sends.
        "sendMessageThreadPoolNums" send_message_thread_pool_nums: u32 = home::cpus().min(4) => "processors, at most 4", ignored;
        /// Threads of one kind of request. Requests are not tied to threads here: completed puts.
        "putMessageFutureThreadPoolNums" put_message_future_thread_pool_nums: u32 = home::cpus().min(4) => "processors, at most 4", ignored;
        /// Threads of one kind of request. Requests are not tied to threads here: pulls.
        "pullMessageThreadPoolNums" pull_message_thread_pool_nums: u32 = 16 + 2 * home::cpus() => "16 + 2 x processors", ignored;
        /// Threads of one kind of request. Requests are not tied to threads here: lite pulls.
        "litePullMessageThreadPoolNums" lite_pull_message_thread_pool_nums: u32 = 16 + 2 * home::cpus() => "16 + 2 x processors", ignored;
        /// Threads of one kind of request. Requests are not tied to threads here: acknowledgements.
        "ackMessageThreadPoolNums" ack_message_thread_pool_nums: u32 = 16, ignored;
        /// Threads of one kind of request. Requests are not tied to threads here: reply messages.
        "processReplyMessageThreadPoolNums" process_reply_message_thread_pool_nums: u32 = 16 + 2 * home::cpus() => "16 + 2 x processors", ignored;
        /// Threads of one kind of request. Requests are not tied to threads here: message queries.
        "queryMessageThreadPoolNums" query_message_thread_pool_nums: u32 = 8 + home::cpus() => "8 + processors", ignored;
        /// Threads of one kind of request. Requests are not tied to threads here: admin requests.
        "adminBrokerThreadPoolNums" admin_broker_thread_pool_nums: u32 = 16, ignored;
        /// Threads of one kind of request. Requests are not tied to threads here: client requests.
        "clientManageThreadPoolNums" client_manage_thread_pool_nums: u32 = 32, ignored;
        /// Threads of one kind of request. Requests are not tied to threads here: offset and consumer list requests.
        "consumerManageThreadPoolNums" consumer_manage_thread_pool_nums: u32 = 32, ignored;
        /// Threads of one kind of request. Requests are not tied to threads here: queue assignments.
        "loadBalanceProcessorThreadPoolNums" load_balance_processor_thread_pool_nums: u32 = 32, ignored;
        /// Threads of one kind of request. Requests are not tied to threads here: heartbeats.
        "heartbeatThreadPoolNums" heartbeat_thread_pool_nums: u32 = home::cpus().min(32) => "processors, at most 32", ignored;
        /// Threads of one kind of request. Requests are not tied to threads here: ends of transactions.
        "endTransactionThreadPoolNums" end_transaction_thread_pool_nums: u32 = (8 + 2 * home::cpus()).max(4 * home::cpus().min(4)) => "8 + 2 x processors", ignored;
        /// Threads of one kind of request. Requests are not tied to threads here: recovery.
        "recoverThreadPoolNums" recover_thread_pool_nums: u32 = 32, ignored;
        /// Nothing reads it in Java either.
        "highSpeedMode" high_speed_mode: bool = false, ignored;
        /// The switch of the first ACL. Nothing reads it in Java either.
        "aclEnable" acl_enable: bool = false, ignored;
        /// Nothing reads it in Java either.
        "flushConsumerOffsetHistoryInterval" flush_consumer_offset_history_interval: u32 = 60000, ignored;
        /// Nothing reads it in Java either.
        "cleanOfflineBrokerInterval" clean_offline_broker_interval: u32 = 30000, ignored;
        /// A log folder for each broker of a container. There is one log here.
        "isolateLogEnable" isolate_log_enable: bool = false, ignored;
        /// Milliseconds before the first check of a half message.
        "transactionTimeOut" transaction_time_out: u64 = 6000, live, important;
        /// Checks of a half message before it is given up.
        "transactionCheckMax" transaction_check_max: u32 = 15, live, important;
        /// Milliseconds between scans of the half messages.
        "transactionCheckInterval" transaction_check_interval: u64 = 30000, fixed, important;
        /// Milliseconds between writes of transactionMetrics.
        "transactionMetricFlushInterval" transaction_metric_flush_interval: u64 = 10000, fixed;
        /// Bytes of one batch of removed half messages.
        "transactionOpMsgMaxSize" transaction_op_msg_max_size: u32 = 4096, live;
        /// Milliseconds between these batches.
        "transactionOpBatchInterval" transaction_op_batch_interval: u32 = 3000, live;
        /// Statistics by account of the sender.
        "accountStatsEnable" account_stats_enable: bool = true, live;
        /// Statistics of each queue.
        "enableDetailStat" enable_detail_stat: bool = true, live;
        /// Minutes after which unused statistics are dropped; negative for never.
        "maxStatsIdleTimeInMinutes" max_stats_idle_time_in_minutes: i32 = -1, live;
        /// Drop the statistics of deleted topics and groups.
        "autoDeleteUnusedStats" auto_delete_unused_stats: bool = true, live;
        /// PROM serves /metrics on `metricsPromExporterHost` and `metricsPromExporterPort`.
        "metricsExporterType" metrics_exporter_type: MetricsExporterType = MetricsExporterType::Disable => "DISABLE", fixed;
        /// Port of that page.
        "metricsPromExporterPort" metrics_prom_exporter_port: u32 = 5557, fixed;
        /// Address of that page; all when empty.
        "metricsPromExporterHost" metrics_prom_exporter_host: Option<String> = None => "", fixed;
        /// Deleting a topic also deletes the retry topics of its groups' pop consumers.
        "clearRetryTopicWhenDeleteTopic" clear_retry_topic_when_delete_topic: bool = true, live;
        /// Pop reads retry topics with old names too.
        "retrieveMessageFromPopRetryTopicV1" retrieve_message_from_pop_retry_topic_v1: bool = true, live;
        /// Name pop retry topics with the separator `+`.
        "enableRetryTopicV2" enable_retry_topic_v2: bool = false, live;
        /// Percent of pops that read the retry topic first.
        "popFromRetryProbability" pop_from_retry_probability: u32 = 20, live;
        /// Queues of the revive topic.
        "reviveQueueNum" revive_queue_num: u32 = 8, fixed;
        /// The broker assigns queues to consumers that ask for it.
        "serverLoadBalancerEnable" server_load_balancer_enable: bool = true, live;
        /// Mode of consumers for which nothing is set.
        "defaultMessageRequestMode" default_message_request_mode: MessageRequestMode = MessageRequestMode::Pull => "PULL", live;
        /// Queues that pop consumers share; negative for all.
        "defaultPopShareQueueNum" default_pop_share_queue_num: i32 = -1, live;
        /// Store reply messages too.
        "storeReplyMessageEnable" store_reply_message_enable: bool = true, live;
        /// Filter by SQL92 expressions.
        "enablePropertyFilter" enable_property_filter: bool = false, live;
        /// Filter retry topics by the expression of the group.
        "filterSupportRetry" filter_support_retry: bool = false, live;
        /// Put filter bit maps into the extended consume queue.
        "enableCalcFilterBitMap" enable_calc_filter_bit_map: bool = false, fixed;
        /// Consumers with a filter that the bit maps are sized for.
        "expectConsumerNumUseFilter" expect_consumer_num_use_filter: u32 = 32, fixed;
        /// Percent of wrong hits they may have.
        "maxErrorRateOfBloomFilter" max_error_rate_of_bloom_filter: u32 = 20, fixed;
        /// Milliseconds after which the filter of a dead consumer is dropped.
        "filterDataCleanTimeSpan" filter_data_clean_time_span: u64 = 86400000, fixed;
        /// Allow to recall delayed messages.
        "recallMessageEnable" recall_message_enable: bool = false, live;
        /// Also while the broker refuses sends.
        "allowRecallWhenBrokerNotWriteable" allow_recall_when_broker_not_writeable: bool = true, live;
        /// Keys that cannot be changed from remote, joined by semicolons.
        "configBlackList" config_black_list: String = "configBlackList;brokerConfigPath".into() => "configBlackList;brokerConfigPath", fixed;
    }
}

impl BrokerConfig {
    /// Milliseconds between registrations, held within Java's bounds.
    pub fn register_period_ms(&self) -> u64 {
        u64::from(self.register_name_server_period.clamp(10_000, 60_000))
    }
}

crate::config_group! {
    /// Everything that the file of a broker feeds.
    pub struct BrokerSettings {
        pub identity: BrokerIdentity,
        pub broker: BrokerConfig,
        pub netty: NettyServerConfig,
        pub client: NettyClientConfig,
        pub store: MessageStoreConfig,
        pub tls: TlsSystemConfig,
        pub system: SystemProperties,
        pub service: ServiceConfig,
    }
}

impl Default for BrokerSettings {
    fn default() -> Self {
        BrokerSettings {
            identity: BrokerIdentity::default(),
            broker: BrokerConfig::default(),
            netty: NettyServerConfig { listen_port: 10911, ..Default::default() },
            client: NettyClientConfig::default(),
            store: MessageStoreConfig::default(),
            tls: TlsSystemConfig::default(),
            system: SystemProperties::default(),
            service: ServiceConfig::default(),
        }
    }
}

impl BrokerSettings {
    /// Reads what the command line points to. Without `-c`, remote updates are not written to any file.
    pub fn load(command_line: &CommandLine) -> Result<Loaded<BrokerSettings>, Exit> {
        command_line.load(BrokerSettings::default(), BROKER_KEYS, |settings| settings.tls.apply_file())
    }

    /// Port for slaves.
    pub fn ha_listen_port(&self) -> u16 {
        match self.store.ha_listen_port {
            0 => self.netty.listen_port.saturating_add(1),
            port => port,
        }
    }

    /// Where the page server listens, by `httpAddress` or by Java's metrics keys; `None` when off.
    pub fn page_address(&self) -> Option<String> {
        let prometheus = || match self.broker.metrics_exporter_type {
            MetricsExporterType::Prom => {
                let host = self.broker.metrics_prom_exporter_host.as_deref().unwrap_or("0.0.0.0");
                Some(format!("{host}:{}", self.broker.metrics_prom_exporter_port))
            }
            MetricsExporterType::Disable => None,
        };
        self.service.http_address.clone().or_else(prometheus)
    }
}
