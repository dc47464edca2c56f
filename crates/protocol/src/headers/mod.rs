//! The typed headers of all requests and answers, one file per family, under Java's names without the word "Header".
//!
//! Fields that Java calls required make reading fail when they are absent, except where Java's servers work without
//! them: those have a default or are optional here.

mod admin;
mod auth;
mod client;
mod controller;
mod group;
pub mod hot;
mod namesrv;
mod offset;
mod pop;
mod pull;
mod query;
mod rpc;
mod send;
mod stats;
mod topic;
mod transaction;

pub use admin::*;
pub use auth::*;
pub use client::*;
pub use controller::*;
pub use group::*;
pub use namesrv::*;
pub use offset::*;
pub use pop::*;
pub use pull::*;
pub use query::*;
pub use rpc::*;
pub use send::*;
pub use stats::*;
pub use topic::*;
pub use transaction::*;
