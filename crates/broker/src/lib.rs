//! The broker crate.
