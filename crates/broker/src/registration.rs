//! The broker's word to the name servers: who it is and which topics it has.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use protocol::body::{DataVersion, KvTable, RegisterBrokerBody, TopicConfig, TopicConfigAndMappingSerializeWrapper};
use protocol::headers::{RegisterBrokerRequest, UnRegisterBrokerRequest};
use protocol::record::crc31;
use protocol::{Command, json, request_code, response_code};
use remoting::NameServers;
use service::clock::now_ms;
use tokio::sync::Notify;

use crate::broker::{Broker, address};

const UNREGISTER_TIMEOUT: Duration = Duration::from_secs(3);
/// When the registration of the start is repeated, at the latest: its name servers may not have been there. Java's delay.
const FIRST_REPETITION: Duration = Duration::from_secs(10);

#[derive(Default)]
struct State {
    /// Counts what was asked for, and how much of it every name server has heard or failed to hear.
    wanted: u64,
    told: u64,
    stopped: bool,
}

/// Registers with all name servers: now and then, and at once when topics change. Changes that come while a
/// registration is under way share the next one.
pub struct Registration {
    name_servers: NameServers,
    state: Mutex<State>,
    told: Condvar,
    wake: Notify,
}

impl Registration {
    pub fn new(name_servers: NameServers) -> Self {
        Self { name_servers, state: Mutex::new(State::default()), told: Condvar::new(), wake: Notify::new() }
    }

    pub fn name_servers(&self) -> &NameServers {
        &self.name_servers
    }

    /// Topics changed: the name servers should hear of it soon.
    pub fn request(&self) {
        self.state.lock().wanted += 1;
        self.wake.notify_one();
    }

    /// Waits until everything asked for so far has been told, or failed, or the time is up. Blocks; false in the last
    /// case.
    pub fn wait(&self, timeout: Duration) -> bool {
        if self.name_servers.is_empty() {
            return true;
        }
        let deadline = Instant::now() + timeout;
        let mut state = self.state.lock();
        let wanted = state.wanted;
        while state.told < wanted && !state.stopped {
            if self.told.wait_until(&mut state, deadline).timed_out() {
                return state.told >= wanted;
            }
        }
        true
    }

    /// Registers whenever asked, and every `period`, until the task is dropped or [`Registration::leave`] was called.
    pub async fn run(broker: Arc<Broker>, period: Duration) {
        let registration = &broker.registration;
        let mut wait = period.min(FIRST_REPETITION);
        loop {
            let _ = tokio::time::timeout(std::mem::replace(&mut wait, period), registration.wake.notified()).await;
            if registration.state.lock().stopped {
                return;
            }
            registration.register(&broker).await;
        }
    }

    /// One registration with every name server.
    pub async fn register(&self, broker: &Broker) {
        let wanted = self.state.lock().wanted;
        if !self.name_servers.is_empty() {
            let timeout = Duration::from_millis(broker.config().register_broker_timeout_mills.into());
            let request = register_request(broker);
            for (addr, answer) in self.name_servers.request_all(request, timeout).await {
                match answer {
                    Ok(answer) if answer.code == response_code::SUCCESS => take_answer(broker, &answer),
                    Ok(answer) => {
                        let remark = answer.remark.as_deref().unwrap_or_default();
                        tracing::warn!(addr, code = answer.code, remark, "the name server refused the registration");
                    }
                    Err(error) => tracing::warn!(addr, %error, "no registration"),
                }
            }
        }
        let mut state = self.state.lock();
        state.told = state.told.max(wanted);
        self.told.notify_all();
    }

    /// Takes the broker off every name server. No registration follows.
    pub async fn leave(&self, broker: &Broker) {
        self.state.lock().stopped = true;
        self.told.notify_all();
        self.wake.notify_one();
        if self.name_servers.is_empty() {
            return;
        }
        let header = {
            let settings = broker.settings.load();
            UnRegisterBrokerRequest {
                broker_name: settings.identity.broker_name.clone(),
                broker_addr: broker.address(),
                cluster_name: settings.identity.broker_cluster_name.clone(),
                broker_id: settings.identity.broker_id as i64,
            }
        };
        let request = Command::request(request_code::UNREGISTER_BROKER).with_header(&header);
        for (addr, answer) in self.name_servers.request_all(request, UNREGISTER_TIMEOUT).await {
            match answer {
                Ok(_) => tracing::info!(addr, "unregistered"),
                Err(error) => tracing::warn!(addr, %error, "not unregistered"),
            }
        }
    }
}

fn register_request(broker: &Broker) -> Command {
    let settings = broker.settings.load();
    let (data_version, topics) = broker.topics.snapshot();
    let allowed = settings.broker.broker_permission as i32;
    let topic_config_table: BTreeMap<String, TopicConfig> = topics
        .into_iter()
        .map(|(name, topic)| {
            let mut topic = (*topic).clone();
            // No topic is more open than its broker.
            topic.perm &= allowed | !(crate::names::PERM_READ | crate::names::PERM_WRITE);
            (name, topic)
        })
        .collect();
    let body = RegisterBrokerBody {
        topic_config_serialize_wrapper: TopicConfigAndMappingSerializeWrapper {
            data_version,
            mapping_data_version: DataVersion { timestamp: broker.started_at, ..Default::default() },
            topic_config_table,
            ..Default::default()
        },
        filter_server_list: Some(Vec::new()),
    };
    let compressed = settings.broker.compressed_register;
    let body = body.encode(compressed);
    let ha_port = match settings.store.ha_listen_port {
        0 => broker.store_host.port().saturating_add(1),
        port => port,
    };
    let header = RegisterBrokerRequest {
        broker_name: settings.identity.broker_name.clone(),
        broker_addr: broker.address(),
        cluster_name: settings.identity.broker_cluster_name.clone(),
        ha_server_addr: address(&settings.broker.broker_ip2, ha_port),
        broker_id: settings.identity.broker_id as i64,
        heartbeat_timeout_millis: None,
        enable_acting_master: Some(settings.broker.enable_slave_acting_master),
        compressed,
        body_crc32: crc31(&body),
    };
    Command::request(request_code::REGISTER_BROKER).with_header(&header).with_body(body)
}

/// The name server's answer names the topics that are ordered.
fn take_answer(broker: &Broker, answer: &Command) {
    if answer.body.is_empty() {
        return;
    }
    match json::from_slice::<KvTable>(&answer.body) {
        Ok(order) => {
            if let Err(error) = broker.topics.mark_ordered(order.table.keys().map(String::as_str), now_ms()) {
                tracing::error!(%error, "ordered topics not kept");
            }
        }
        Err(error) => tracing::warn!(%error, "unreadable order configuration"),
    }
}
