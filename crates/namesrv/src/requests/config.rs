//! The server's own configuration, read and changed from remote.

use protocol::{Command, response_code};
use remoting::Connection;
use service::config::UpdateError;

use super::Answer;
use crate::shared::Shared;

/// GET_NAMESRV_CONFIG.
pub(super) fn get(shared: &Shared, _: &Connection, _: &Command) -> Result<Answer, Answer> {
    Ok(Answer::body(shared.settings.dump().into_bytes()))
}

/// UPDATE_NAMESRV_CONFIG: all of it or nothing.
pub(super) fn update(shared: &Shared, connection: &Connection, request: &Command) -> Result<Answer, Answer> {
    let peer = connection.remote_addr();
    if request.body.is_empty() {
        return Ok(Answer::success());
    }
    match shared.settings.update(&request.body) {
        Ok(updated) => {
            tracing::info!(%peer, ?updated, "configuration changed");
            Ok(Answer::success())
        }
        Err(error) => {
            tracing::warn!(%peer, %error, "change of configuration refused");
            let code = match &error {
                UpdateError::BlackList(_) => response_code::NO_PERMISSION,
                _ => response_code::SYSTEM_ERROR,
            };
            Err(Answer::refuse(code, error.to_string()))
        }
    }
}
