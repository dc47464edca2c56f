//! The broker: topics, groups, offsets, clients and the requests that move messages between them and the store.
//!
//! [`dispatch`] is the table of every request code served; each family of requests is one file. [`running`] starts and
//! stops it all.

pub mod arrivals;
pub mod attributes;
pub mod batch;
pub mod broker;
pub mod built_in_topics;
pub mod client_requests;
pub mod clients;
pub mod config_file;
pub mod config_requests;
pub mod consume_stats;
pub mod context;
pub mod delay;
pub mod delay_delivery;
pub mod dispatch;
pub mod group_requests;
pub mod groups;
pub mod lock_requests;
pub mod long_poll;
pub mod metrics_page;
pub mod names;
pub mod offset_requests;
pub mod offsets;
pub mod pull;
pub mod pull_answer;
pub mod query;
pub mod queue_locks;
pub mod registration;
pub mod relay;
pub mod running;
pub mod runtime_info;
pub mod send;
pub mod send_answer;
pub mod send_back;
pub mod send_properties;
pub mod stats;
pub mod store_command;
pub mod topic_requests;
pub mod topics;
pub mod unique_keys;

pub use broker::Broker;
pub use context::{Answer, Context, Refusal};
pub use running::{RunningBroker, StartError};
