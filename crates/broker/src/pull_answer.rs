//! What a reader hears: the code and fields for what the store found, and for each kind of refusal.

use std::borrow::Cow;

use protocol::FieldSink;
use protocol::frame::FieldWriter;
use protocol::response_code as code;
use remoting::WriteFields;
use store::GetStatus;

use crate::context::Refusal;

/// Why a pull is refused, where clients tell refusals apart by more than the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forbidden {
    Broker = 1,
    Group = 2,
    Topic = 3,
    Broadcasting = 4,
    Subscription = 5,
}

/// A refusal with its kind.
pub struct Refused {
    pub refusal: Refusal,
    pub forbidden: Option<Forbidden>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, forbidden: None }
    }
}

pub fn refused(response_code: i32, remark: impl Into<Cow<'static, str>>) -> Refused {
    Refusal::new(response_code, remark).into()
}

pub fn forbidden(kind: Forbidden, remark: String) -> Refused {
    Refused { refusal: Refusal::new(code::NO_PERMISSION, remark), forbidden: Some(kind) }
}

/// The answer's code for what the store found.
pub fn response_code(status: GetStatus, asked_offset: i64) -> i32 {
    match status {
        GetStatus::Found => code::SUCCESS,
        GetStatus::MessageWasRemoving | GetStatus::NoMatchedMessage => code::PULL_RETRY_IMMEDIATELY,
        GetStatus::NoMatchedLogicQueue | GetStatus::NoMessageInQueue if asked_offset != 0 => code::PULL_OFFSET_MOVED,
        GetStatus::NoMatchedLogicQueue | GetStatus::NoMessageInQueue => code::PULL_NOT_FOUND,
        GetStatus::OffsetFoundNull | GetStatus::OffsetOverflowOne => code::PULL_NOT_FOUND,
        GetStatus::OffsetOverflowBadly | GetStatus::OffsetTooSmall => code::PULL_OFFSET_MOVED,
    }
}

/// The status of a read that an operator's reset answers instead of the queue.
pub const OFFSET_RESET: &str = "OFFSET_RESET";

/// The answer's remark.
pub fn status_name(status: GetStatus) -> &'static str {
    match status {
        GetStatus::Found => "FOUND",
        GetStatus::NoMatchedMessage => "NO_MATCHED_MESSAGE",
        GetStatus::MessageWasRemoving => "MESSAGE_WAS_REMOVING",
        GetStatus::OffsetFoundNull => "OFFSET_FOUND_NULL",
        GetStatus::OffsetOverflowBadly => "OFFSET_OVERFLOW_BADLY",
        GetStatus::OffsetOverflowOne => "OFFSET_OVERFLOW_ONE",
        GetStatus::OffsetTooSmall => "OFFSET_TOO_SMALL",
        // Java makes the queue when it is asked for, so it never says that there is none.
        GetStatus::NoMatchedLogicQueue | GetStatus::NoMessageInQueue => "NO_MESSAGE_IN_QUEUE",
    }
}

/// The fields of every pull answer.
pub struct PullFields {
    pub suggest_broker: i64,
    pub next_offset: i64,
    pub min_offset: i64,
    pub max_offset: i64,
    pub topic_sys_flag: i32,
    pub group_sys_flag: i32,
}

impl WriteFields for PullFields {
    fn write_fields(&self, out: &mut FieldWriter<'_>) {
        out.int("suggestWhichBrokerId", self.suggest_broker);
        out.int("nextBeginOffset", self.next_offset);
        out.int("minOffset", self.min_offset);
        out.int("maxOffset", self.max_offset);
        out.int("topicSysFlag", self.topic_sys_flag.into());
        out.int("groupSysFlag", self.group_sys_flag.into());
    }
}

/// The one field that tells refusals of the same code apart.
pub struct ForbiddenField(pub Option<Forbidden>);

impl WriteFields for ForbiddenField {
    fn write_fields(&self, out: &mut FieldWriter<'_>) {
        if let Some(kind) = self.0 {
            out.int("forbiddenType", kind as i64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_follow_javas_table() {
        use GetStatus::*;
        for (status, at_zero, later) in [
            (Found, 0, 0),
            (NoMatchedMessage, 20, 20),
            (MessageWasRemoving, 20, 20),
            (NoMatchedLogicQueue, 19, 21),
            (NoMessageInQueue, 19, 21),
            (OffsetFoundNull, 19, 19),
            (OffsetOverflowOne, 19, 19),
            (OffsetOverflowBadly, 21, 21),
            (OffsetTooSmall, 21, 21),
        ] {
            assert_eq!(response_code(status, 0), at_zero, "{status:?}");
            assert_eq!(response_code(status, 5), later, "{status:?}");
        }
    }
}
