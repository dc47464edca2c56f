//! One log line for everything that happens to a broker.

use crate::route_table::BrokerEvent;

pub(crate) fn log_event(event: &BrokerEvent) {
    match event {
        BrokerEvent::Joined { broker, name, id } => {
            tracing::info!(event = "joined", cluster = %broker.cluster, broker = %name, id, addr = %broker.addr, "broker joined");
        }
        BrokerEvent::Left { broker, name, id, reason } => {
            tracing::info!(event = "left", cluster = %broker.cluster, broker = %name, id, addr = %broker.addr,
                reason = reason.name(), "broker left");
        }
        BrokerEvent::AddressChanged { broker, name, id, before } => {
            tracing::info!(event = "address", cluster = %broker.cluster, broker = %name, id, addr = %broker.addr,
                before = %before, "broker id moved to another address");
        }
        BrokerEvent::RoleChanged { broker, name, id, before } => {
            tracing::info!(event = "role", cluster = %broker.cluster, broker = %name, id, addr = %broker.addr, before,
                role = if *id == 0 { "master" } else { "slave" }, "broker changed its id");
        }
        BrokerEvent::Refused { broker, name, id, holder, state_version, known } => {
            tracing::warn!(event = "refused", cluster = %broker.cluster, broker = %name, id, addr = %broker.addr,
                holder = %holder, state_version, known, "registration refused: its epoch is older than the holder's");
        }
        BrokerEvent::NameInTwoClusters { cluster, name, others } => {
            tracing::warn!(event = "name", cluster = %cluster, broker = %name, ?others,
                "two clusters use one broker name: they overwrite each other's addresses and topics; set another brokerName");
        }
    }
}
