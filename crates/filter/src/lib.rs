//! The filter crate.
