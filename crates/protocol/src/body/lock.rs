//! Locks on queues, for consuming in order.

use super::MessageQueue;

bodies! {
    /// Asks LOCK_BATCH_MQ (41).
    pub struct LockBatchRequestBody {
        consumer_group: String,
        client_id: String,
        only_this_broker: bool,
        mq_set: Vec<MessageQueue>,
    }

    /// Answers LOCK_BATCH_MQ (41): the queues now held.
    pub struct LockBatchResponseBody {
        #[serde(rename = "lockOKMQSet")]
        lock_ok_mq_set: Vec<MessageQueue>,
    }

    /// Asks UNLOCK_BATCH_MQ (42).
    pub struct UnlockBatchRequestBody {
        consumer_group: String,
        client_id: String,
        only_this_broker: bool,
        mq_set: Vec<MessageQueue>,
    }
}
