//! Why a client's call failed.

use protocol::{Command, HeaderError};
use remoting::CallError;

/// Why a client's call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    #[error(transparent)]
    Call(#[from] CallError),
    /// The server answered, but not with success.
    #[error("{addr} answered code {code}: {remark}")]
    Refused { addr: String, code: i32, remark: String },
    #[error("no route for topic {0}")]
    NoRoute(String),
    #[error("broker {0} is not in the route")]
    NoBroker(String),
    #[error("the topic {0} has no queue that can be used for this")]
    NoQueue(String),
    #[error("cannot read the answer: {0}")]
    BadAnswer(String),
    #[error("this message cannot be sent: {0}")]
    BadMessage(String),
}

impl ClientError {
    /// The response code, when a server answered.
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }
}

impl From<HeaderError> for ClientError {
    fn from(error: HeaderError) -> Self {
        Self::BadAnswer(error.to_string())
    }
}

impl From<protocol::json::JsonError> for ClientError {
    fn from(error: protocol::json::JsonError) -> Self {
        Self::BadAnswer(error.to_string())
    }
}

/// Lets only success through.
pub(crate) fn success(addr: &str, response: Command) -> Result<Command, ClientError> {
    if response.code == protocol::response_code::SUCCESS { Ok(response) } else { Err(refused(addr, &response)) }
}

pub(crate) fn refused(addr: &str, response: &Command) -> ClientError {
    ClientError::Refused {
        addr: addr.to_owned(),
        code: response.code,
        remark: response.remark.clone().unwrap_or_default().into_owned(),
    }
}
