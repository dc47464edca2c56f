//! What brokers say of themselves, and who asks where they are.

use protocol::headers::{
    BrokerHeartbeatRequest, QueryDataVersionRequest, QueryDataVersionResponse, RegisterBrokerRequest,
    RegisterBrokerResponse, UnRegisterBrokerRequest,
};
use protocol::{Command, response_code};
use remoting::{Body, Connection};

use super::Answer;
use super::registration_body::{decode, decode_data_version};
use super::route::ZONE_NAME;
use crate::route_table::{BrokerAddr, DataVersion, LeaveReason, Outcome, Registration, Rules, Unregistration};
use crate::shared::{ORDER_TOPIC_CONFIG, Shared};

/// REGISTER_BROKER.
pub(super) fn register(shared: &Shared, connection: &Connection, request: &Command) -> Result<Answer, Answer> {
    let header: RegisterBrokerRequest = request.header()?;
    let broken = |remark: String| {
        tracing::warn!(peer = %connection.remote_addr(), broker = header.broker_name, addr = header.broker_addr,
            cluster = header.cluster_name, reason = remark, "registration refused");
        shared.metrics.registration_refused();
        Answer::refuse(response_code::SYSTEM_ERROR, remark)
    };
    // The top bit is cut off in Java; 0 means that nothing was computed.
    if header.body_crc32 != 0 && crc32fast::hash(&request.body) & 0x7FFF_FFFF != header.body_crc32 as u32 {
        return Err(broken("crc32 not match".to_owned()));
    }
    let body = decode(&request.body, header.compressed, request.version).map_err(|error| broken(error.to_string()))?;
    let registration = Registration {
        cluster: header.cluster_name,
        broker_name: header.broker_name,
        broker_addr: header.broker_addr,
        broker_id: header.broker_id,
        ha_addr: request.fields.get("haServerAddr").map(Into::into),
        zone: request.fields.get(ZONE_NAME).map(Into::into),
        timeout_ms: header.heartbeat_timeout_millis,
        acting_master: header.enable_acting_master,
        data_version: body.data_version,
        topics: body.topics,
        mappings: body.mappings,
        filter_servers: body.filter_servers,
        connection: connection.id(),
    };
    let (rules, returns_order_conf) = {
        let config = &shared.settings.load().namesrv;
        (Rules::from(config), config.return_order_topic_config_to_broker)
    };
    match shared.register(connection, &registration, &rules) {
        Outcome::TooEarly => Err(Answer::refuse(response_code::SYSTEM_ERROR, "register broker failed")),
        Outcome::Accepted { master_addr, ha_addr } => {
            let header = RegisterBrokerResponse {
                ha_server_addr: ha_addr.map(|addr| addr.to_string()),
                master_addr: master_addr.map(|addr| addr.to_string()),
            };
            Ok(Answer { body: order_conf(shared, returns_order_conf), ..Answer::header(&header) })
        }
        // The broker is told of success, as by Java, and learns from its controller that it is deposed.
        Outcome::Stale => Ok(Answer { body: order_conf(shared, returns_order_conf), ..Answer::success() }),
    }
}

fn order_conf(shared: &Shared, wanted: bool) -> Body {
    let list = if wanted { shared.kv.list(ORDER_TOPIC_CONFIG) } else { None };
    list.map_or(Body::Empty, Into::into)
}

/// UNREGISTER_BROKER: queued, and applied soon after the answer.
pub(super) fn unregister(shared: &Shared, connection: &Connection, request: &Command) -> Result<Answer, Answer> {
    let header: UnRegisterBrokerRequest = request.header()?;
    let removal = Unregistration {
        cluster: header.cluster_name.into(),
        broker_addr: header.broker_addr.into(),
        broker_name: Some(header.broker_name.into()),
        broker_id: header.broker_id,
        reason: LeaveReason::Unregistered,
        expected: None,
    };
    if shared.removals.offer(removal) {
        return Ok(Answer::success());
    }
    tracing::warn!(peer = %connection.remote_addr(), "unregistration refused: its queue is full");
    Err(Answer { code: response_code::SYSTEM_ERROR, ..Answer::success() })
}

/// QUERY_DATA_VERSION.
pub(super) fn query_data_version(shared: &Shared, _: &Connection, request: &Command) -> Result<Answer, Answer> {
    let header: QueryDataVersionRequest = request.header()?;
    let asked = decode_data_version(&request.body)
        .map_err(|error| Answer::refuse(response_code::SYSTEM_ERROR, format!("DataVersion: {error}")))?;
    let broker = BrokerAddr { cluster: header.cluster_name.into(), addr: header.broker_addr.into() };
    let check = shared.table.check_version(&broker, asked, shared.now_ms());
    let answer = Answer::header(&QueryDataVersionResponse { changed: check.changed });
    Ok(match check.known {
        Some(known) => Answer { body: encode_data_version(&known).into(), ..answer },
        None => answer,
    })
}

fn encode_data_version(version: &DataVersion) -> Vec<u8> {
    let counter = version.counter.map(|counter| format!("\"counter\":{counter},")).unwrap_or_default();
    format!("{{{counter}\"stateVersion\":{},\"timestamp\":{}}}", version.state_version, version.timestamp).into_bytes()
}

/// BROKER_HEARTBEAT: success whether the broker is known or not.
pub(super) fn heartbeat(shared: &Shared, _: &Connection, request: &Command) -> Result<Answer, Answer> {
    let header: BrokerHeartbeatRequest = request.header()?;
    let broker = BrokerAddr { cluster: header.cluster_name.into(), addr: header.broker_addr.into() };
    shared.table.heartbeat(&broker, shared.now_ms());
    Ok(Answer::success())
}

/// GET_BROKER_CLUSTER_INFO.
pub(super) fn cluster_info(shared: &Shared, _: &Connection, _: &Command) -> Result<Answer, Answer> {
    Ok(Answer::body(shared.table.cluster_info()))
}

/// GET_BROKER_MEMBER_GROUP.
pub(super) fn member_group(shared: &Shared, _: &Connection, request: &Command) -> Result<Answer, Answer> {
    let (cluster, broker) = (request.fields.get("clusterName"), request.fields.get("brokerName"));
    Ok(Answer::body(shared.table.member_group(cluster.as_deref(), broker.as_deref())))
}
