//! Locking queues for ordered consumption: 41, 42.

use std::sync::Arc;

use protocol::body::{LockBatchRequestBody, LockBatchResponseBody, UnlockBatchRequestBody};
use protocol::{Command, json};

use crate::broker::Broker;
use crate::context::{Answer, Context, Refusal, body, ok};

/// LOCK_BATCH_MQ.
pub fn lock(broker: &Arc<Broker>, context: &Context<'_>, request: &Command) -> Answer {
    let asked: LockBatchRequestBody = json::from_slice(&request.body).map_err(|e| Refusal::system(e.to_string()))?;
    let held = broker.locks.lock(&asked.consumer_group, &asked.mq_set, &asked.client_id, context.now);
    body(json::to_legacy(&LockBatchResponseBody { lock_ok_mq_set: held }))
}

/// UNLOCK_BATCH_MQ.
pub fn unlock(broker: &Arc<Broker>, _: &Context<'_>, request: &Command) -> Answer {
    let asked: UnlockBatchRequestBody = json::from_slice(&request.body).map_err(|e| Refusal::system(e.to_string()))?;
    broker.locks.unlock(&asked.consumer_group, &asked.mq_set, &asked.client_id);
    ok()
}
