//! The namesrv crate.
