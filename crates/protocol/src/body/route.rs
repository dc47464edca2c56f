//! Routes and clusters, as the name server answers them.

use std::collections::{BTreeMap, BTreeSet};

use super::TopicQueueMappingInfo;

bodies! {
    /// The queues of a topic on one broker.
    pub struct QueueData {
        broker_name: String,
        read_queue_nums: i32,
        write_queue_nums: i32,
        /// 8 priority, 4 read, 2 write, 1 inherit.
        perm: i32,
        topic_sys_flag: i32,
    }

    /// The addresses of one broker name.
    pub struct BrokerData {
        cluster: String,
        broker_name: String,
        /// Broker id, 0 the master, to address.
        broker_addrs: BTreeMap<i64, String>,
        zone_name: Option<String>,
        enable_acting_master: bool,
    }

    /// Answers GET_ROUTEINFO_BY_TOPIC (105); asks REGISTER_TOPIC_IN_NAMESRV (217).
    pub struct TopicRouteData {
        order_topic_conf: Option<String>,
        queue_datas: Vec<QueueData>,
        broker_datas: Vec<BrokerData>,
        filter_server_table: BTreeMap<String, Vec<String>>,
        topic_queue_mapping_by_broker: Option<BTreeMap<String, TopicQueueMappingInfo>>,
    }

    /// Answers GET_BROKER_CLUSTER_INFO (106).
    pub struct ClusterInfo {
        broker_addr_table: BTreeMap<String, BrokerData>,
        cluster_addr_table: BTreeMap<String, BTreeSet<String>>,
    }

    /// The members of one broker name.
    pub struct BrokerMemberGroup {
        cluster: String,
        broker_name: String,
        broker_addrs: BTreeMap<i64, String>,
    }

    /// Answers GET_BROKER_MEMBER_GROUP (901).
    pub struct GetBrokerMemberGroupResponseBody {
        broker_member_group: BrokerMemberGroup,
    }

    /// A table of texts: GET_BROKER_RUNTIME_INFO (28), GET_KVLIST_BY_NAMESPACE (219), the answer to a registration.
    pub struct KvTable {
        table: BTreeMap<String, String>,
    }

    /// `kvConfig.json` of the name server: namespace, key, value.
    pub struct KvConfigSerializeWrapper {
        config_table: BTreeMap<String, BTreeMap<String, String>>,
    }
}
