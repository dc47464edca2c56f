//! The service crate.
