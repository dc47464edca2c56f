//! Why connections end and calls fail.

use std::time::Duration;

use protocol::FrameError;

/// Why a connection is no more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    #[error("closed by the peer")]
    PeerClosed,
    #[error("nothing read or written for the idle time")]
    Idle,
    #[error("bad frame: {0}")]
    BadFrame(#[from] FrameError),
    #[error("bad first bytes: {0}")]
    BadStart(&'static str),
    #[error("{0}")]
    Io(String),
    #[error("TLS: {0}")]
    Tls(String),
    #[error("the peer does not read its answers")]
    SlowReader,
    #[error("more connections than allowed")]
    TooMany,
    #[error("this side is stopping")]
    Shutdown,
    /// This side had its own reason.
    #[error("closed here: {0}")]
    Local(&'static str),
}

impl CloseReason {
    pub(crate) fn io(error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        match error.kind() {
            ConnectionReset | BrokenPipe | UnexpectedEof => Self::PeerClosed,
            _ => Self::Io(error.to_string()),
        }
    }
}

/// Why a request got no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error("cannot connect to {addr}: {why}")]
    Connect { addr: String, why: String },
    #[error("no response from {addr} within {} ms", after.as_millis())]
    Timeout { addr: String, after: Duration },
    #[error("connection to {addr} lost: {why}")]
    Closed { addr: String, why: CloseReason },
    #[error("too many requests wait for {addr}")]
    TooManyPending { addr: String },
    #[error("no name server address is known")]
    NoNameServer,
}
