//! The name server: where brokers say who they are and which topics they serve, and where clients ask for it.
//!
//! [`route_table`] holds all state as one machine without I/O; [`Namesrv`] is the thin server around it.

mod broker_log;
mod kv_config;
mod metrics;
mod network;
mod notify;
mod removals;
mod requests;
pub mod route_table;
mod server;
mod shared;
mod workers;

pub use requests::registration_body;
pub use server::{Namesrv, StartError};
