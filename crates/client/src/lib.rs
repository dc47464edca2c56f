//! A client of RocketMQ: a producer, a pull consumer and the administrator's calls that tools and tests need.
//!
//! It asks the name servers for routes, keeps one connection per broker, and has no thread or cache beyond that: what
//! the official clients do on top (rebalancing, local offset files, listeners) is not here.

mod admin;
mod assigned;
mod clock;
mod consumer;
mod error;
mod message;
mod producer;
mod routes;
mod unique_key;

pub use admin::Admin;
pub use assigned::AssignedConsumer;
pub use consumer::{PullConsumer, PullOptions, PullStatus, Pulled};
pub use error::ClientError;
pub use message::{Message, ReceivedMessage};
pub use producer::{Producer, SendResult, SendStatus};
pub use routes::{Cluster, Queue, Route};
pub use unique_key::unique_key;

pub use protocol::body::MessageQueue;
