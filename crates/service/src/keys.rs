//! The keys of the servers, one struct per Java class, and the groups that one file feeds.
//!
//! A key that stands here is implemented by the server that reads it, or is marked `ignored` with the reason. All other
//! keys of Java warn at start.

pub mod broker;
pub mod namesrv;
pub mod netty;
pub mod service;
pub mod store;
pub mod system;
pub mod tls;

pub use broker::{BrokerConfig, BrokerIdentity, BrokerSettings};
pub use namesrv::{NamesrvConfig, NamesrvSettings};
pub use netty::{NettyClientConfig, NettyServerConfig};
pub use service::ServiceConfig;
pub use store::{BrokerRole, FlushDiskType, MessageStoreConfig};
pub use system::SystemProperties;
pub use tls::TlsSystemConfig;
