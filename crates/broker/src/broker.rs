//! The broker's parts, in one place.

use std::sync::Arc;

use remoting::Connection;
use service::keys::{BrokerConfig, MessageStoreConfig};
use store::Store;

use crate::dispatch::Lanes;

/// Everything a request handler may need.
pub struct Broker {
    pub config: BrokerConfig,
    pub store_config: MessageStoreConfig,
    pub store: Arc<Store>,
    pub lanes: Lanes,
}

impl Broker {
    /// A client went away, with or without a word.
    pub fn connection_closed(self: &Arc<Self>, conn: &Connection) {
        let _ = conn;
    }
}
