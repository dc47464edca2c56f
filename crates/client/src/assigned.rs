//! A consumer of a fixed set of queues.

use std::time::Duration;

use protocol::body::MessageQueue;
use tokio::task::JoinSet;

use crate::{ClientError, PullConsumer, PullOptions, PullStatus, Pulled, ReceivedMessage};

/// Reads all queues it was given, each with one long poll under way, and keeps the positions.
#[derive(Debug)]
pub struct AssignedConsumer {
    consumer: PullConsumer,
    options: PullOptions,
    queues: Vec<(MessageQueue, i64)>,
    pulls: JoinSet<(usize, Result<Pulled, ClientError>)>,
}

/// How long to let a queue be after a failed pull.
const AFTER_FAILURE: Duration = Duration::from_millis(200);

impl AssignedConsumer {
    /// `queues` with the offsets to start at.
    pub fn new(consumer: PullConsumer, options: PullOptions, queues: Vec<(MessageQueue, i64)>) -> Self {
        let mut new = Self { consumer, options, queues, pulls: JoinSet::new() };
        (0..new.queues.len()).for_each(|at| new.start(at, Duration::ZERO));
        new
    }

    /// The next messages, all of one queue and in its order. Waits as long as it takes; drop the future to give up,
    /// nothing is lost by that.
    pub async fn next(&mut self) -> Result<Vec<ReceivedMessage>, ClientError> {
        loop {
            let Some(done) = self.pulls.join_next().await else {
                return Err(ClientError::NoQueue("no queue was assigned".to_owned()));
            };
            let (at, result) = done.map_err(|error| ClientError::BadAnswer(error.to_string()))?;
            match result {
                Ok(pulled) => {
                    self.queues[at].1 = pulled.next_offset;
                    self.start(at, Duration::ZERO);
                    if pulled.status == PullStatus::Found && !pulled.messages.is_empty() {
                        return Ok(pulled.messages);
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "pull failed");
                    self.start(at, AFTER_FAILURE);
                }
            }
        }
    }

    /// Where each queue will be read next.
    pub fn positions(&self) -> &[(MessageQueue, i64)] {
        &self.queues
    }

    /// Commits the positions of all queues.
    pub async fn commit(&self) -> Result<(), ClientError> {
        for (queue, offset) in &self.queues {
            self.consumer.commit(queue, *offset).await?;
        }
        Ok(())
    }

    fn start(&mut self, at: usize, delay: Duration) {
        let Some((queue, offset)) = self.queues.get(at).cloned() else {
            return;
        };
        let (consumer, options) = (self.consumer.clone(), self.options.clone());
        self.pulls.spawn(async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            (at, consumer.pull(&queue, offset, &options).await)
        });
    }
}
