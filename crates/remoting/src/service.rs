//! What a server does with requests.

use protocol::Command;

use crate::{CloseReason, Connection, Reply};

/// Handles the requests of all connections of one server.
pub trait Service: Send + Sync + 'static {
    /// State shared by all frames of one read of one connection, made fresh for each read.
    type Batch: Default + Send;

    /// Handles one request. It never blocks: the answer goes through `reply`, now or later, from any thread.
    ///
    /// A [`Command`] shares the memory of the read it came with, up to some tens of KiB, so keep the parts you need and
    /// not the command when the answer is far away.
    fn call(&self, conn: &Connection, batch: &mut Self::Batch, request: Command, reply: Reply);

    /// All frames of one read have been handed to [`Service::call`]. What is answered in here still leaves with the
    /// same write.
    fn end_batch(&self, conn: &Connection, batch: &mut Self::Batch) {
        let _ = (conn, batch);
    }

    /// A peer is there: its first bytes have been seen, and its address is the one the PROXY protocol named, if any.
    fn connected(&self, conn: &Connection) {
        let _ = conn;
    }

    /// Called once for every connection that [`Service::connected`] was called for.
    fn disconnected(&self, conn: &Connection, why: CloseReason) {
        let _ = (conn, why);
    }

    /// A response that answers no request made through [`Connection::request`]: it came too late, or the sender keeps
    /// its own table.
    fn unmatched(&self, conn: &Connection, batch: &mut Self::Batch, response: Command) {
        let _ = batch;
        tracing::debug!(peer = %conn.remote_addr(), opaque = response.opaque, "response without a request");
    }
}
