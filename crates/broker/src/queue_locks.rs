//! Which client of a group may consume a queue in order. A lock not renewed for a minute is free.
//!
//! A pure state machine: events and the time go in.

use std::collections::HashMap;

use parking_lot::Mutex;
use protocol::body::MessageQueue;

/// How long a lock lives without being renewed, in milliseconds. Clients renew every 20 s.
pub const LOCK_LIFE_MS: i64 = 60_000;

struct Lock {
    client_id: String,
    renewed: i64,
}

impl Lock {
    fn expired(&self, now: i64) -> bool {
        now - self.renewed > LOCK_LIFE_MS
    }
}

/// The queue locks of every group.
#[derive(Default)]
pub struct QueueLocks {
    groups: Mutex<HashMap<String, HashMap<MessageQueue, Lock>>>,
}

impl QueueLocks {
    /// Takes or renews the locks of `queues` for one client; gives back those it now holds.
    pub fn lock(&self, group: &str, queues: &[MessageQueue], client_id: &str, now: i64) -> Vec<MessageQueue> {
        let mut groups = self.groups.lock();
        if !groups.contains_key(group) {
            groups.insert(group.to_owned(), HashMap::new());
        }
        let Some(locks) = groups.get_mut(group) else { return Vec::new() };
        let mut held = Vec::with_capacity(queues.len());
        for queue in queues {
            match locks.get_mut(queue) {
                Some(lock) if lock.client_id == client_id => lock.renewed = now,
                Some(lock) if lock.expired(now) => {
                    tracing::warn!(
                        group,
                        ?queue,
                        from = lock.client_id,
                        to = client_id,
                        "an expired queue lock passes"
                    );
                    *lock = Lock { client_id: client_id.to_owned(), renewed: now };
                }
                Some(_) => continue,
                None => {
                    locks.insert(queue.clone(), Lock { client_id: client_id.to_owned(), renewed: now });
                }
            }
            held.push(queue.clone());
        }
        held
    }

    /// Gives up the locks the client holds; those of others stay.
    pub fn unlock(&self, group: &str, queues: &[MessageQueue], client_id: &str) {
        let mut groups = self.groups.lock();
        let Some(locks) = groups.get_mut(group) else { return };
        for queue in queues {
            if locks.get(queue).is_some_and(|lock| lock.client_id == client_id) {
                locks.remove(queue);
            }
        }
        if locks.is_empty() {
            groups.remove(group);
        }
    }

    /// No queue of the group is locked by anybody: its consumers are not ordered ones.
    pub fn all_expired(&self, group: &str, now: i64) -> bool {
        self.groups.lock().get(group).is_none_or(|locks| locks.values().all(|lock| lock.expired(now)))
    }

    /// Forgets locks that nobody renewed.
    pub fn expire(&self, now: i64) {
        self.groups.lock().retain(|_, locks| {
            locks.retain(|_, lock| !lock.expired(now));
            !locks.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(id: i32) -> MessageQueue {
        MessageQueue { topic: "T".into(), broker_name: "b".into(), queue_id: id }
    }

    #[test]
    fn the_first_client_holds_a_queue_until_it_lets_go_or_falls_silent() {
        let locks = QueueLocks::default();
        assert_eq!(locks.lock("g", &[queue(0), queue(1)], "a", 0), [queue(0), queue(1)]);
        assert_eq!(locks.lock("g", &[queue(1), queue(2)], "b", 1), [queue(2)]);
        assert_eq!(locks.lock("other", &[queue(0)], "b", 1), [queue(0)]);

        locks.unlock("g", &[queue(1)], "b");
        assert_eq!(locks.lock("g", &[queue(1)], "b", 2), [], "another client's unlock does not count");
        locks.unlock("g", &[queue(1)], "a");
        assert_eq!(locks.lock("g", &[queue(1)], "b", 3), [queue(1)]);

        assert_eq!(locks.lock("g", &[queue(0)], "a", 50_000), [queue(0)], "renewed");
        assert_eq!(locks.lock("g", &[queue(0)], "b", 110_000), []);
        assert_eq!(locks.lock("g", &[queue(0)], "b", 110_001), [queue(0)]);
        assert_eq!(locks.lock("g", &[queue(0)], "a", 110_002), []);
    }

    #[test]
    fn expiry_is_seen_and_cleaned() {
        let locks = QueueLocks::default();
        assert!(locks.all_expired("g", 0));
        locks.lock("g", &[queue(0)], "a", 0);
        assert!(!locks.all_expired("g", LOCK_LIFE_MS));
        assert!(locks.all_expired("g", LOCK_LIFE_MS + 1));
        locks.expire(LOCK_LIFE_MS);
        assert!(!locks.all_expired("g", LOCK_LIFE_MS));
        locks.expire(LOCK_LIFE_MS + 1);
        assert!(locks.groups.lock().is_empty());
    }
}
