//! The way back: the answer to one request.

use bytes::Bytes;
use protocol::frame::{FieldWriter, Head, encode_parts};
use protocol::{Command, Header, SerializeType, response_code};

use crate::rate::RateLimited;
use crate::{Connection, LanePermit};

/// The body of an answer: nothing, or chunks that are written one after the other without being joined.
#[derive(Debug, Clone, Default)]
pub enum Body {
    #[default]
    Empty,
    One(Bytes),
    Many(Vec<Bytes>),
}

impl Body {
    /// In bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::One(bytes) => bytes.len(),
            Self::Many(list) => list.iter().map(Bytes::len).sum(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<()> for Body {
    fn from((): ()) -> Self {
        Self::Empty
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::One(bytes)
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::One(bytes.into())
    }
}

impl From<Vec<Bytes>> for Body {
    fn from(list: Vec<Bytes>) -> Self {
        Self::Many(list)
    }
}

/// Writes the extension fields of an answer straight into the frame.
pub trait WriteFields {
    fn write_fields(&self, out: &mut FieldWriter<'_>);
}

impl<F: Fn(&mut FieldWriter<'_>)> WriteFields for F {
    fn write_fields(&self, out: &mut FieldWriter<'_>) {
        self(out);
    }
}

/// An answer without extension fields.
#[derive(Debug, Clone, Copy)]
pub struct NoFields;

impl WriteFields for NoFields {
    fn write_fields(&self, _out: &mut FieldWriter<'_>) {}
}

/// The fields of a typed header.
#[derive(Debug, Clone, Copy)]
pub struct HeaderFields<'a, H>(pub &'a H);

impl<H: Header> WriteFields for HeaderFields<'_, H> {
    fn write_fields(&self, out: &mut FieldWriter<'_>) {
        self.0.write(out);
    }
}

const OVERLOAD: &str = "[OVERLOAD]system busy, start flow control for a while";
const REJECTED: &str = "[REJECTREQUEST]system busy, start flow control for a while";
const GO_AWAY: &str = "please go away";

static DROPPED_ONEWAY: RateLimited = RateLimited::new();

/// Answers one request, once. Owned and movable to any thread; what holds it holds the request's place.
///
/// While the connection's task is inside [`crate::Service::call`] or [`crate::Service::end_batch`], answers only go
/// into the connection's out buffer and leave with the task's next write. At other times the task is woken.
///
/// Dropping it without an answer leaves the peer to its time-out. Answers to one-way requests go nowhere.
#[derive(Debug)]
pub struct Reply {
    conn: Connection,
    opaque: i32,
    code: i32,
    serialize: SerializeType,
    oneway: bool,
    permit: Option<LanePermit>,
}

impl Reply {
    pub(crate) fn new(conn: &Connection, request: &Command) -> Self {
        conn.enter();
        Self {
            conn: conn.clone(),
            opaque: request.opaque,
            code: request.code,
            serialize: request.serialize,
            oneway: request.is_oneway(),
            permit: None,
        }
    }

    pub fn connection(&self) -> &Connection {
        &self.conn
    }

    pub fn opaque(&self) -> i32 {
        self.opaque
    }

    /// The request's code.
    pub fn request_code(&self) -> i32 {
        self.code
    }

    pub fn is_oneway(&self) -> bool {
        self.oneway
    }

    /// Keeps a lane's permit until the answer is given or given up.
    pub fn hold(&mut self, permit: LanePermit) {
        self.permit = Some(permit);
    }

    /// Answers with `response`; its opaque, response flag and serialisation are set to match the request.
    pub fn send(self, mut response: Command) {
        if self.oneway {
            return;
        }
        response.opaque = self.opaque;
        response.serialize = self.serialize;
        response.mark_response();
        self.conn.send_frame(&response);
    }

    /// Answers without building a [`Command`]: the fields are written straight into the out buffer.
    pub fn send_parts(self, code: i32, remark: Option<&str>, fields: &dyn WriteFields, body: impl Into<Body>) {
        if self.oneway {
            return;
        }
        let body = body.into();
        let head = Head::response(code, self.opaque, remark, self.serialize);
        self.conn.append(|segments| {
            segments.write(|out| encode_parts(out, &head, &mut |sink| fields.write_fields(sink), body.len()));
            segments.push_body(body);
        });
    }

    /// Answers with a code and a remark only.
    pub fn refuse(self, code: i32, remark: &str) {
        self.send_parts(code, Some(remark), &NoFields, ());
    }

    /// The answer when the request's lane is full. A one-way request is dropped with a log line.
    pub fn overloaded(self) {
        self.log_dropped();
        self.refuse(response_code::SYSTEM_BUSY, OVERLOAD);
    }

    /// The answer when a handler takes no requests for now (Java's `rejectRequest`).
    pub fn rejected(self) {
        self.log_dropped();
        self.refuse(response_code::SYSTEM_BUSY, REJECTED);
    }

    /// The answer to a request code that is not served.
    pub fn not_supported(self) {
        let remark = format!(" request type {} not supported", self.code);
        self.refuse(response_code::REQUEST_CODE_NOT_SUPPORTED, &remark);
    }

    /// Sends the client elsewhere; only versions above 475 understand it.
    pub(crate) fn go_away(self) {
        self.refuse(response_code::GO_AWAY, GO_AWAY);
    }

    fn log_dropped(&self) {
        if self.oneway
            && let Some(skipped) = DROPPED_ONEWAY.allow()
        {
            tracing::warn!(peer = %self.conn.remote_addr(), code = self.code, skipped, "one-way request dropped: busy");
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.conn.leave();
    }
}
