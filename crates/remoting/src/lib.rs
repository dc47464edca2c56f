//! The remoting crate.
