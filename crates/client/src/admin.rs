//! The administrator's calls that tools and tests need.

use std::time::Duration;

use protocol::body::{
    ClusterInfo, ConsumeStats, KvTable, SubscriptionGroupConfig, TopicConfig, TopicList, TopicStatsTable,
};
use protocol::headers::{CreateTopicRequest, DeleteTopicRequest};
use protocol::{Command, Header, json, request_code};

use crate::{ClientError, Cluster};

const MASTER: i64 = 0;
/// Between two looks at what the name server knows.
const RETRY: Duration = Duration::from_millis(50);

/// Administers a cluster. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Admin {
    cluster: Cluster,
    pub timeout: Duration,
}

impl Admin {
    pub fn new(cluster: Cluster) -> Self {
        Self { cluster, timeout: Duration::from_secs(5) }
    }

    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// All brokers the name server knows.
    pub async fn cluster_info(&self) -> Result<ClusterInfo, ClientError> {
        let response = self.cluster.ask_name_server(Command::request(request_code::GET_BROKER_CLUSTER_INFO)).await?;
        Ok(json::from_slice(&response.body)?)
    }

    /// The addresses of all masters, of one cluster or of all.
    pub async fn masters(&self, cluster: Option<&str>) -> Result<Vec<String>, ClientError> {
        let info = self.cluster_info().await?;
        let brokers = info.broker_addr_table.into_values();
        let wanted = brokers.filter(|broker| cluster.is_none_or(|name| broker.cluster == name));
        Ok(wanted.filter_map(|broker| broker.broker_addrs.get(&MASTER).cloned()).collect())
    }

    /// The names of all topics.
    pub async fn topics(&self) -> Result<Vec<String>, ClientError> {
        let request = Command::request(request_code::GET_ALL_TOPIC_LIST_FROM_NAMESERVER);
        let response = self.cluster.ask_name_server(request).await?;
        Ok(json::from_slice::<TopicList>(&response.body)?.topic_list)
    }

    /// Creates or changes a topic on one broker.
    pub async fn create_topic(&self, addr: &str, topic: &TopicConfig) -> Result<(), ClientError> {
        let attributes = topic.attributes.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>();
        let header = CreateTopicRequest {
            topic: topic.topic_name.clone(),
            default_topic: "TBW102".to_owned(),
            read_queue_nums: topic.read_queue_nums,
            write_queue_nums: topic.write_queue_nums,
            perm: topic.perm,
            topic_filter_type: topic.topic_filter_type.clone(),
            topic_sys_flag: topic.topic_sys_flag,
            order: topic.order,
            attributes: (!attributes.is_empty()).then(|| attributes.join(",")),
            force: false,
        };
        self.ask(addr, request_code::UPDATE_AND_CREATE_TOPIC, &header).await?;
        self.cluster.forget(&topic.topic_name);
        Ok(())
    }

    /// Creates or changes a topic with so many queues on every master, and waits until the name server knows it. A cluster that
    /// has just been started may still be registering: it waits for the first master as well.
    pub async fn create_topic_everywhere(&self, topic: &str, queues: i32) -> Result<(), ClientError> {
        let config = TopicConfig {
            topic_name: topic.to_owned(),
            read_queue_nums: queues,
            write_queue_nums: queues,
            ..TopicConfig::default()
        };
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        let masters = loop {
            match self.masters(None).await? {
                none if none.is_empty() && tokio::time::Instant::now() < deadline => tokio::time::sleep(RETRY).await,
                none if none.is_empty() => return Err(ClientError::NoRoute(topic.to_owned())),
                masters => break masters,
            }
        };
        for addr in &masters {
            self.create_topic(addr, &config).await?;
        }
        loop {
            match self.cluster.fetch_route(topic).await {
                Ok(route) if route.queue_datas.len() >= masters.len() => return Ok(()),
                Ok(_) | Err(ClientError::NoRoute(_)) if tokio::time::Instant::now() < deadline => {
                    tokio::time::sleep(RETRY).await;
                }
                Ok(_) => return Err(ClientError::NoRoute(topic.to_owned())),
                Err(error) => return Err(error),
            }
        }
    }

    /// Deletes a topic on one broker.
    pub async fn delete_topic(&self, addr: &str, topic: &str) -> Result<(), ClientError> {
        let header = DeleteTopicRequest { topic: topic.to_owned() };
        self.ask(addr, request_code::DELETE_TOPIC_IN_BROKER, &header).await?;
        self.cluster.forget(topic);
        Ok(())
    }

    /// Creates or changes a subscription group on one broker.
    pub async fn create_group(&self, addr: &str, group: &SubscriptionGroupConfig) -> Result<(), ClientError> {
        let request =
            Command::request(request_code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP).with_body(json::to_legacy(group));
        self.cluster.ask(addr, request, self.timeout).await.map(drop)
    }

    /// The offsets of all queues of a topic on one broker.
    pub async fn topic_stats(&self, addr: &str, topic: &str) -> Result<TopicStatsTable, ClientError> {
        let request = Command::request(request_code::GET_TOPIC_STATS_INFO).with_field("topic", topic);
        let response = self.cluster.ask(addr, request, self.timeout).await?;
        Ok(json::from_slice(&response.body)?)
    }

    /// How far a group is on one broker.
    pub async fn consume_stats(&self, addr: &str, group: &str) -> Result<ConsumeStats, ClientError> {
        let request = Command::request(request_code::GET_CONSUME_STATS).with_field("consumerGroup", group);
        let response = self.cluster.ask(addr, request, self.timeout).await?;
        Ok(json::from_slice(&response.body)?)
    }

    /// A broker's own figures.
    pub async fn broker_runtime_info(&self, addr: &str) -> Result<KvTable, ClientError> {
        let request = Command::request(request_code::GET_BROKER_RUNTIME_INFO);
        let response = self.cluster.ask(addr, request, self.timeout).await?;
        Ok(json::from_slice(&response.body)?)
    }

    async fn ask(&self, addr: &str, code: i32, header: &impl Header) -> Result<Command, ClientError> {
        self.cluster.ask(addr, Command::request(code).with_header(header), self.timeout).await
    }
}
