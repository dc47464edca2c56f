//! The bytes of Apache RocketMQ's remoting protocol, and nothing else: frames, headers, bodies and stored records.
//!
//! No clock, no I/O, no runtime. Everything here is checked against bytes written by the Java classes.

pub mod fields;
pub mod frame;
#[macro_use]
pub mod header;
pub mod binary_header;
pub mod body;
pub mod headers;
pub mod json;
pub mod json_header;
pub mod record;
pub mod request_code;
pub mod response_code;

pub use fields::{ExtFields, FieldSink};
pub use frame::{Command, FrameError, Language, SerializeType};
pub use header::{Header, HeaderError};

/// The version ordinal this implementation sends in its own frames: RocketMQ 5.4.0.
pub const VERSION: i32 = 493;
/// From this version on a client reads standard JSON in route answers.
pub const VERSION_4_9_4: i32 = 401;
/// From this version on a compressed registration carries static-topic mappings.
pub const VERSION_5_0_0: i32 = 413;
/// Clients strictly above this version understand GO_AWAY.
pub const VERSION_5_3_1: i32 = 475;
/// Below this version a registration body is the bare topic table.
pub const VERSION_3_0_11: i32 = 37;
