//! Topics made, changed and deleted, as far as the store is concerned.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc;

use crate::clock::now_ms;
use crate::deleted::End;
use crate::put::is_folder_name;
use crate::{FlushError, Store};

impl Store {
    /// Removes the queues of a topic, and what it has been compacted to. Its records stay in the commit log until retention takes
    /// them, but come back in no queue, also not in one of a new topic of that name. Sends to it are refused meanwhile.
    pub fn delete_topic(&self, topic: &str) -> io::Result<bool> {
        if !is_folder_name(topic) {
            return Ok(false);
        }
        let _one = self.deleted.one_at_a_time();
        self.end_topics(&[topic])?;
        let removed = self.remove_queues(topic);
        self.checkpoint_now();
        removed
    }

    /// To be called when a topic was made or changed: from now on its queues are compacted, if they are to be. Removes queues that
    /// an earlier topic of its name left behind as another kind.
    pub fn topic_changed(&self, topic: &str) -> io::Result<()> {
        self.compaction.topic_changed();
        let kind = self.topics.queue_type(topic);
        let other = |id: &i32| self.queues.get(topic, *id).is_some_and(|queue| queue.kind != kind);
        if self.queues.queue_ids(topic).iter().any(other) {
            tracing::warn!(topic, ?kind, "removing queues of an earlier topic of this name");
            self.delete_topic(topic)?;
        }
        Ok(())
    }

    /// Removes the queues of all topics for which `keep` says false. Returns the removed topics.
    pub fn clean_unused_topics(&self, keep: &dyn Fn(&str) -> bool) -> Vec<String> {
        let _one = self.deleted.one_at_a_time();
        let mut unused: Vec<String> = self.queues.topic_names().iter().map(|topic| topic.to_string()).collect();
        unused.retain(|topic| !keep(topic));
        if unused.is_empty() {
            return unused;
        }
        if let Err(error) = self.end_topics(&unused) {
            tracing::error!(%error, "unused topics cannot be removed");
            return Vec::new();
        }
        unused.retain(|topic| match self.remove_queues(topic) {
            Ok(_) => true,
            Err(error) => {
                tracing::error!(%topic, %error, "cannot remove the queues of an unused topic");
                false
            }
        });
        self.checkpoint_now();
        unused
    }

    /// From here on nothing is put into the topics' queues, and what is in them will not come back; the disk knows it. After an
    /// error it does not.
    fn end_topics(&self, topics: &[impl AsRef<str>]) -> io::Result<()> {
        let ticket = {
            let appender = self.appender.lock();
            // A clock that was put back must not make its last messages younger than this.
            let time = now_ms().max(self.last_written_time.load(Ordering::Acquire));
            let end = End { offset: appender.position, time };
            let mut there = false;
            self.deleted.set_undecided(true);
            for topic in topics.iter().map(AsRef::as_ref).filter(|topic| self.queues.kill_topic(topic)) {
                self.deleted.end(topic, end);
                there = true;
            }
            if !there {
                self.deleted.set_undecided(false);
                return Ok(());
            }
            appender.ticket()
        };
        self.write_all();
        match self.wait_flushed(ticket) {
            // Refused by the write: then what is before them is the end.
            Ok(()) | Err(FlushError::Write(_)) => {}
            Err(error) => return Err(io::Error::other(error)),
        }
        self.save_deleted();
        self.deleted.set_undecided(false);
        Ok(())
    }

    /// Waits for a flush however long it takes.
    fn wait_flushed(&self, ticket: u64) -> Result<(), FlushError> {
        loop {
            let (done, flushed) = mpsc::channel();
            self.when_flushed(ticket, Box::new(move |result| drop(done.send(result))));
            match flushed.recv() {
                Ok(Err(FlushError::Timeout)) => {}
                answer => return answer.unwrap_or(Err(FlushError::Closed)),
            }
        }
    }

    /// Puts onto the disk which topics are deleted.
    pub(crate) fn save_deleted(&self) {
        if let Err(error) = self.deleted.save(self.positions.flushed()) {
            tracing::error!(%error, "deleted topics cannot be noted for now; after a crash their messages may come back");
        }
    }

    fn remove_queues(&self, topic: &str) -> io::Result<bool> {
        self.compaction.delete_topic(topic, &self.queues.queues_of(topic))?;
        self.queues.delete_topic(topic)
    }
}
