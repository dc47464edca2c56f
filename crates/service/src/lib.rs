//! What every server shares: command line, properties files and configuration keys, logging, small files, the metrics
//! page, signals and ordered stop. Knows no protocol and no server.

pub mod cli;
pub mod clock;
pub mod config;
pub mod files;
pub mod home;
pub mod http;
pub mod keys;
pub mod logging;
pub mod metrics;
pub mod open_files;
pub mod properties;
pub mod stop;
