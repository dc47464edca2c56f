//! Keys of the name server.

use super::{NettyClientConfig, NettyServerConfig, ServiceConfig, SystemProperties, TlsSystemConfig};
use crate::cli::{CommandLine, Exit};
use crate::config::{Loaded, NAMESRV_KEYS};
use crate::home;

crate::config! {
    /// Keys of the name server itself.
    pub struct NamesrvConfig {
        /// Install folder. Honoured but not required.
        "rocketmqHome" rocketmq_home: Option<String> = home::env("ROCKETMQ_HOME") => "env ROCKETMQ_HOME", fixed;
        /// JSON file of the KV configuration.
        "kvConfigPath" kv_config_path: String = home::user_home("namesrv/kvConfig.json") => "~/namesrv/kvConfig.json", fixed;
        /// Properties file that a remote configuration update writes. With `-c` it is that file.
        "configStorePath" config_store_path: String = home::user_home("namesrv/namesrv.properties") => "~/namesrv/namesrv.properties", fixed;
        /// Name of the environment whose address server `clusterTest` asks.
        "productEnvName" product_env_name: String = "center".into() => "center", fixed;
        /// Look up routes that are unknown here in the environment `productEnvName`.
        "clusterTest" cluster_test: bool = false, fixed;
        /// Attach the ordered-message configuration of the topic to route answers.
        "orderMessageEnable" order_message_enable: bool = false, live;
        /// Answer registrations with the KV namespace ORDER_TOPIC_CONFIG.
        "returnOrderTopicConfigToBroker" return_order_topic_config_to_broker: bool = true, live;
        /// Threads for route queries. Requests are not tied to threads here.
        "clientRequestThreadPoolNums" client_request_thread_pool_nums: u32 = 8, ignored;
        /// Threads for all other requests. Requests are not tied to threads here.
        "defaultThreadPoolNums" default_thread_pool_nums: u32 = 16, ignored;
        /// Most route queries in hand at once; more are answered SYSTEM_BUSY.
        "clientRequestThreadPoolQueueCapacity" client_request_thread_pool_queue_capacity: u32 = 50000, fixed;
        /// Most other requests in hand at once; more are answered SYSTEM_BUSY.
        "defaultThreadPoolQueueCapacity" default_thread_pool_queue_capacity: u32 = 10000, fixed;
        /// Milliseconds between scans for brokers that stopped reporting.
        "scanNotActiveBrokerInterval" scan_not_active_broker_interval: u64 = 5000, fixed;
        /// Most brokers waiting to be unregistered in one batch.
        "unRegisterBrokerQueueCapacity" un_register_broker_queue_capacity: u32 = 3000, fixed;
        /// Show the smallest living slave as master in routes when the master is gone and the broker allows it.
        "supportActingMaster" support_acting_master: bool = false, live;
        /// Answer GET_ALL_TOPIC_LIST_FROM_NAMESERVER.
        "enableAllTopicList" enable_all_topic_list: bool = true, live;
        /// Answer the other topic list requests.
        "enableTopicList" enable_topic_list: bool = true, live;
        /// Tell the brokers of a group when its smallest living broker id changes.
        "notifyMinBrokerIdChanged" notify_min_broker_id_changed: bool = false, live;
        /// Run a controller in the same process.
        "enableControllerInNamesrv" enable_controller_in_namesrv: bool = false, fixed;
        /// Refuse route queries for `waitSecondsForService` after the start.
        "needWaitForService" need_wait_for_service: bool = false, live;
        /// Seconds of that time.
        "waitSecondsForService" wait_seconds_for_service: u32 = 45, live;
        /// Drop the topics that a full registration no longer holds.
        "deleteTopicWithBrokerRegistration" delete_topic_with_broker_registration: bool = false, live;
        /// Keys that cannot be changed from remote, joined by semicolons.
        "configBlackList" config_black_list: String = "configBlackList;configStorePath;kvConfigPath".into() => "configBlackList;configStorePath;kvConfigPath", fixed;
    }
}

crate::config_group! {
    /// Everything that the file of a name server feeds.
    pub struct NamesrvSettings {
        pub namesrv: NamesrvConfig,
        pub netty: NettyServerConfig,
        pub client: NettyClientConfig,
        pub tls: TlsSystemConfig,
        pub system: SystemProperties,
        pub service: ServiceConfig,
    }
}

impl Default for NamesrvSettings {
    fn default() -> Self {
        NamesrvSettings {
            namesrv: NamesrvConfig::default(),
            netty: NettyServerConfig { listen_port: 9876, ..Default::default() },
            client: NettyClientConfig::default(),
            tls: TlsSystemConfig::default(),
            system: SystemProperties::default(),
            service: ServiceConfig::default(),
        }
    }
}

impl NamesrvSettings {
    /// Reads what the command line points to. Remote updates go to the `-c` file, or to `configStorePath` without one.
    pub fn load(command_line: &CommandLine) -> Result<Loaded<NamesrvSettings>, Exit> {
        let loaded = command_line.load(NamesrvSettings::default(), NAMESRV_KEYS, |settings| {
            if let Some(file) = &command_line.config_file {
                settings.namesrv.config_store_path = file.display().to_string();
            }
            settings.tls.apply_file()
        })?;
        let store_path = loaded.live.load().namesrv.config_store_path.clone();
        loaded.live.set_store_path(store_path.into());
        Ok(loaded)
    }
}
