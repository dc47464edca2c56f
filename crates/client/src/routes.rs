//! Where topics live.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use protocol::body::{BrokerData, MessageQueue, TopicRouteData};
use protocol::headers::GetRouteInfoRequest;
use protocol::{Command, request_code, response_code};
use remoting::{Client, NameServers};

use crate::ClientError;
use crate::error::{refused, success};

/// How long a route is used before it is asked for again, as in Java's client.
const FRESH: Duration = Duration::from_secs(30);
/// How long a name server may take.
const NAME_SERVER_TIMEOUT: Duration = Duration::from_secs(3);
const PERM_READ: i32 = 4;
const PERM_WRITE: i32 = 2;
const MASTER: i64 = 0;

/// What producers, consumers and administrators of one cluster share: connections and routes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Cluster {
    client: Client,
    name_servers: NameServers,
    routes: Arc<Mutex<Routes>>,
}

/// Routes by topic, with when they were asked for.
type Routes = HashMap<String, (Instant, Arc<Route>)>;

/// A queue and where its master listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    pub queue: MessageQueue,
    pub addr: String,
}

/// A topic's route.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    pub data: TopicRouteData,
    /// Queues of brokers with a master that may be written.
    pub writable: Vec<Queue>,
    pub readable: Vec<Queue>,
}

impl Cluster {
    /// `name_servers` is `host:port;host:port`.
    pub fn new(client: Client, name_servers: &str) -> Self {
        let name_servers = NameServers::new(client.clone(), name_servers);
        Self { client, name_servers, routes: Arc::default() }
    }

    /// With connections of its own, in plain text.
    pub fn connect(name_servers: &str) -> Self {
        Self::new(Client::new(remoting::ClientConfig::default(), None), name_servers)
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn name_servers(&self) -> &NameServers {
        &self.name_servers
    }

    /// The route of `topic`, at most 30 s old; older only while no name server can be reached, as in Java's client.
    pub async fn route(&self, topic: &str) -> Result<Arc<Route>, ClientError> {
        let known = self.routes.lock().get(topic).cloned();
        if let Some((when, route)) = &known
            && when.elapsed() < FRESH
        {
            return Ok(route.clone());
        }
        let route = match (self.fetch_route(topic).await, known) {
            (Ok(data), _) => Arc::new(Route::new(topic, data)),
            // Brokers serve those who know them.
            (Err(ClientError::Call(_)), Some((_, old))) => old,
            (Err(error), _) => return Err(error),
        };
        self.routes.lock().insert(topic.to_owned(), (Instant::now(), route.clone()));
        Ok(route)
    }

    /// Makes the next look-up of `topic` ask a name server.
    pub fn forget(&self, topic: &str) {
        self.routes.lock().remove(topic);
    }

    /// The route as the name server has it now.
    pub async fn fetch_route(&self, topic: &str) -> Result<TopicRouteData, ClientError> {
        let header = GetRouteInfoRequest { topic: topic.to_owned(), accept_standard_json_only: true };
        let request = Command::request(request_code::GET_ROUTEINFO_BY_TOPIC).with_header(&header);
        let response = self.name_servers.request(request, NAME_SERVER_TIMEOUT).await?;
        match response.code {
            response_code::SUCCESS => Ok(protocol::json::from_slice(&response.body)?),
            response_code::TOPIC_NOT_EXIST => Err(ClientError::NoRoute(topic.to_owned())),
            _ => Err(refused("name server", &response)),
        }
    }

    /// Where the queue's master listens.
    pub async fn address_of(&self, queue: &MessageQueue) -> Result<String, ClientError> {
        let route = self.route(&queue.topic).await?;
        let broker = route.data.broker_datas.iter().find(|broker| broker.broker_name == queue.broker_name);
        let addr = broker.and_then(|broker| broker.broker_addrs.get(&MASTER));
        addr.cloned().ok_or_else(|| ClientError::NoBroker(queue.broker_name.clone()))
    }

    /// Asks a name server.
    pub async fn ask_name_server(&self, request: Command) -> Result<Command, ClientError> {
        success("name server", self.name_servers.request(request, NAME_SERVER_TIMEOUT).await?)
    }

    /// Asks a broker; anything but success is an error.
    pub async fn ask(&self, addr: &str, request: Command, timeout: Duration) -> Result<Command, ClientError> {
        success(addr, self.client.request(addr, request, timeout).await?)
    }
}

impl Route {
    pub(crate) fn new(topic: &str, data: TopicRouteData) -> Self {
        let masters: BTreeMap<&str, &str> = data.broker_datas.iter().filter_map(master).collect();
        let mut writable = Vec::new();
        let mut readable = Vec::new();
        for rows in &data.queue_datas {
            let Some(addr) = masters.get(rows.broker_name.as_str()) else {
                continue;
            };
            let queue = |queue_id| Queue {
                queue: MessageQueue::new(topic, &rows.broker_name, queue_id),
                addr: (*addr).to_owned(),
            };
            if rows.perm & PERM_WRITE != 0 {
                writable.extend((0..rows.write_queue_nums).map(queue));
            }
            if rows.perm & PERM_READ != 0 {
                readable.extend((0..rows.read_queue_nums).map(queue));
            }
        }
        Self { data, writable, readable }
    }
}

fn master(broker: &BrokerData) -> Option<(&str, &str)> {
    Some((broker.broker_name.as_str(), broker.broker_addrs.get(&MASTER)?.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_queues_of_masters_with_the_permission_count() {
        let text = r#"{"brokerDatas":[{"brokerAddrs":{0:"h:1",1:"h:2"},"brokerName":"a","cluster":"c"},
            {"brokerAddrs":{"1":"h:3"},"brokerName":"b","cluster":"c"}],
            "queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":3,"writeQueueNums":2},
            {"brokerName":"b","perm":6,"readQueueNums":4,"writeQueueNums":4},
            {"brokerName":"a","perm":4,"readQueueNums":1,"writeQueueNums":1}]}"#;
        let route = Route::new("T", protocol::json::from_slice(text.as_bytes()).unwrap());
        let ids: Vec<i32> = route.writable.iter().map(|queue| queue.queue.queue_id).collect();
        assert_eq!(ids, [0, 1]);
        assert_eq!(route.readable.len(), 4);
        assert!(route.readable.iter().all(|queue| queue.addr == "h:1"));
    }

    #[tokio::test]
    async fn an_old_route_serves_while_no_name_server_can_be_reached() {
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let cluster = Cluster::connect(&nobody.to_string());
        assert!(cluster.route("T").await.is_err());
        let old = Arc::new(Route::new("T", TopicRouteData::default()));
        let asked = Instant::now().checked_sub(FRESH * 2).unwrap();
        cluster.routes.lock().insert("T".to_owned(), (asked, old.clone()));
        assert_eq!(cluster.route("T").await.unwrap(), old);
    }
}
