//! The requests of one read of one connection, answered together.

use std::sync::Arc;

use remoting::Connection;

use crate::broker::Broker;

/// What the frames of one read leave to be done at its end.
#[derive(Default)]
pub struct Batch {}

impl Batch {
    /// Runs once after the last frame of a read.
    pub fn end(&mut self, broker: &Arc<Broker>, conn: &Connection) {
        let _ = (broker, conn);
    }
}
