//! Assignment of queues by the broker, and whether groups pull or pop.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{MessageModel, MessageQueue};

bodies! {
    /// Asks QUERY_ASSIGNMENT (400).
    pub struct QueryAssignmentRequestBody {
        topic: String,
        consumer_group: String,
        client_id: String,
        strategy_name: Option<String>,
        message_model: MessageModel,
    }

    pub struct MessageQueueAssignment {
        message_queue: Option<MessageQueue>,
        mode: MessageRequestMode,
        attachments: Option<BTreeMap<String, String>>,
    }

    /// Answers QUERY_ASSIGNMENT (400).
    pub struct QueryAssignmentResponseBody {
        message_queue_assignments: Vec<MessageQueueAssignment>,
    }

    /// Asks SET_MESSAGE_REQUEST_MODE (401).
    pub struct SetMessageRequestModeRequestBody {
        topic: String,
        consumer_group: String,
        mode: MessageRequestMode,
        pop_share_queue_num: i32,
    }

    /// `messageRequestMode.json`; answers GET_ALL_MESSAGE_REQUEST_MODE (402). Topic, group, mode.
    pub struct MessageRequestModeSerializeWrapper {
        message_request_mode_map: BTreeMap<String, BTreeMap<String, SetMessageRequestModeRequestBody>>,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MessageRequestMode {
    #[default]
    Pull,
    Pop,
}
