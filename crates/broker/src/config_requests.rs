//! The broker's configuration over the wire: 25, 26.

use std::sync::Arc;

use protocol::headers::GetBrokerConfigResponse;
use protocol::{Command, response_code};
use service::config::UpdateError;

use crate::broker::Broker;
use crate::context::{Answer, Context, Refusal, ok};

/// UPDATE_BROKER_CONFIG.
pub fn update_config(broker: &Arc<Broker>, context: &Context<'_>, request: &Command) -> Answer {
    let permission = broker.config().broker_permission;
    let updated = broker.settings.update(&request.body).map_err(|error| match error {
        UpdateError::BlackList(_) => Refusal::new(response_code::NO_PERMISSION, error.to_string()),
        _ => Refusal::system(error.to_string()),
    })?;
    tracing::info!(by = %context.conn.remote_addr(), ?updated, "configuration updated");
    if broker.config().broker_permission != permission {
        broker.topics.touch(context.now)?;
    }
    ok()
}

/// GET_BROKER_CONFIG.
pub fn get_config(broker: &Arc<Broker>, _: &Context<'_>, _: &Command) -> Answer {
    let version = broker.settings.version();
    let version = format!("{{\"counter\":{},\"stateVersion\":0,\"timestamp\":{}}}", version.counter, version.timestamp);
    let answer = Command::response(response_code::SUCCESS).with_header(&GetBrokerConfigResponse { version });
    Ok(answer.with_body(broker.settings.dump().into_bytes()))
}
