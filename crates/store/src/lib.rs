//! The store crate.
