//! What a request handler gets beside the request, and what it gives back.

use std::borrow::Cow;

use protocol::{Command, HeaderError, response_code};
use remoting::Connection;

/// The surroundings of one request.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Where the request came from.
    pub conn: &'a Connection,
    /// Wall clock at the start of the batch the request came in, milliseconds since 1970.
    pub now: i64,
}

/// A response, or why there is none. Either way the asker gets a frame.
pub type Answer = Result<Command, Refusal>;

/// An answer that carries nothing but a code and a remark.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {remark}")]
pub struct Refusal {
    pub code: i32,
    pub remark: Cow<'static, str>,
}

impl Refusal {
    pub fn new(code: i32, remark: impl Into<Cow<'static, str>>) -> Self {
        Self { code, remark: remark.into() }
    }

    /// A general failure: code 1.
    pub fn system(remark: impl Into<Cow<'static, str>>) -> Self {
        Self::new(response_code::SYSTEM_ERROR, remark)
    }

    pub fn into_command(self) -> Command {
        Command::response(self.code).with_remark(self.remark)
    }
}

impl From<HeaderError> for Refusal {
    fn from(error: HeaderError) -> Self {
        Self::system(error.to_string())
    }
}

/// An empty success.
pub fn ok() -> Answer {
    Ok(Command::response(response_code::SUCCESS))
}

/// A success with a JSON body.
pub fn body(bytes: impl Into<bytes::Bytes>) -> Answer {
    Ok(Command::response(response_code::SUCCESS).with_body(bytes))
}

/// Turns the outcome of a handler into the frame that leaves.
pub fn into_command(answer: Answer) -> Command {
    answer.unwrap_or_else(Refusal::into_command)
}
