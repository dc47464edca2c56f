//! The broker: topics, groups, offsets, clients and the requests that move messages between them and the store.
//!
//! [`dispatch`] is the table of every request code served; each family of requests is one file.

pub mod batch;
pub mod broker;
pub mod context;
pub mod dispatch;

pub use broker::Broker;
pub use context::{Answer, Context, Refusal};
