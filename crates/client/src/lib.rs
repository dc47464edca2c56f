//! The client crate.
