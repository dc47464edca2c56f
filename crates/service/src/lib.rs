//! What every server shares: command line, properties files and configuration keys, logging, small files, the metrics
//! page, signals and ordered stop. Knows no protocol and no server.

pub mod config;
pub mod files;
pub mod home;
pub mod keys;
pub mod properties;
