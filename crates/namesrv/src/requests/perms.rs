//! The right to write, taken from and given to a broker by an admin.

use protocol::Command;
use protocol::headers::{
    AddWritePermOfBrokerRequest, AddWritePermOfBrokerResponse, WipeWritePermOfBrokerRequest,
    WipeWritePermOfBrokerResponse,
};
use remoting::Connection;

use super::Answer;
use crate::shared::Shared;

/// WIPE_WRITE_PERM_OF_BROKER.
pub(super) fn wipe(shared: &Shared, connection: &Connection, request: &Command) -> Result<Answer, Answer> {
    let header: WipeWritePermOfBrokerRequest = request.header()?;
    let rows = shared.table.wipe_write_perm(&header.broker_name);
    tracing::info!(peer = %connection.remote_addr(), broker = header.broker_name, rows, "right to write wiped");
    Ok(Answer::header(&WipeWritePermOfBrokerResponse { wipe_topic_count: rows as i32 }))
}

/// ADD_WRITE_PERM_OF_BROKER.
pub(super) fn add(shared: &Shared, connection: &Connection, request: &Command) -> Result<Answer, Answer> {
    let header: AddWritePermOfBrokerRequest = request.header()?;
    let rows = shared.table.add_write_perm(&header.broker_name);
    tracing::info!(peer = %connection.remote_addr(), broker = header.broker_name, rows, "right to write added");
    Ok(Answer::header(&AddWritePermOfBrokerResponse { add_topic_count: rows as i32 }))
}
