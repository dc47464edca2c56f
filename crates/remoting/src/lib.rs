//! RocketMQ's remoting transport over tokio: one connection loop, a server and a client around it.
//!
//! A connection is one task. It reads, takes every whole frame out of what it got, hands each to the [`Service`], and
//! writes all answers that are ready in one system call. Both ends of a connection may ask: the loop is the same for
//! servers and clients.

mod buffer_pool;
mod client;
mod connection;
mod error;
mod first_bytes;
mod lane;
mod name_servers;
mod out;
mod proxy_protocol;
mod pump;
mod rate;
mod reply;
mod server;
mod service;
mod tls;

pub use client::{Client, ClientConfig, ServerRequestHandler, connect};
pub use connection::Connection;
pub use error::{CallError, CloseReason};
pub use lane::{Lane, LanePermit};
pub use name_servers::NameServers;
pub use proxy_protocol::ProxyInfo;
pub use rate::RateLimited;
pub use reply::{Body, HeaderFields, NoFields, Reply, WriteFields};
pub use server::{Limits, Server, ServerConfig};
pub use service::Service;
pub use tls::{ClientAuth, TlsError, TlsFiles, TlsMode, TlsSettings};

pub use protocol::frame::FieldWriter;
