//! Pulls that found nothing and wait for a message, a time-out or the end of their connection.
//!
//! No wake-up is lost if both sides keep their order: whoever parks a pull looks at the queue **again** afterwards and
//! takes the pull back ([`LongPolls::take`]) when a message has come meanwhile; whoever adds a message makes it visible in the queue
//! **before** it calls [`LongPolls::arrived`]. Then one of the two sees the other.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use parking_lot::Mutex;

/// Shards keep arrivals in one queue from waiting for those of others.
const SHARDS: usize = 32;

/// How many pulls may wait.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub total: usize,
    /// Of one connection, in one shard of 32: keeps one client from taking all places.
    pub per_connection: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { total: 100_000, per_connection: 4_096 }
    }
}

/// When and for what a pull waits.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    /// The first offset the pull has not seen: it wakes when the queue's end passes it.
    pub offset: i64,
    /// Milliseconds since 1970.
    pub deadline: i64,
    pub connection: u64,
}

/// Finds one parked pull again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    shard: usize,
    id: u64,
}

struct Parked<R> {
    id: u64,
    wait: Wait,
    pull: R,
}

struct Shard<R> {
    /// Topic, then queue. Looked up by a borrowed topic, so an arrival allocates nothing.
    topics: HashMap<Box<str>, HashMap<i32, Vec<Parked<R>>>>,
    per_connection: HashMap<u64, usize>,
}

/// The waiting pulls of a broker.
pub struct LongPolls<R> {
    shards: Vec<Mutex<Shard<R>>>,
    hasher: RandomState,
    limits: Limits,
    next_id: AtomicU64,
    parked: AtomicUsize,
}

impl<R> LongPolls<R> {
    pub fn new(limits: Limits) -> Self {
        let empty = || Mutex::new(Shard { topics: HashMap::new(), per_connection: HashMap::new() });
        Self {
            shards: (0..SHARDS).map(|_| empty()).collect(),
            hasher: RandomState::new(),
            limits,
            next_id: AtomicU64::new(1),
            parked: AtomicUsize::new(0),
        }
    }

    /// How many pulls wait now.
    pub fn len(&self) -> usize {
        self.parked.load(Ordering::Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Parks a pull. Gives it back when there is no room; it is then answered as if it had timed out.
    pub fn park(&self, topic: &str, queue: i32, wait: Wait, pull: R) -> Result<Ticket, R> {
        if self.len() >= self.limits.total {
            return Err(pull);
        }
        let at = self.shard_of(topic, queue);
        let mut shard = self.shards[at].lock();
        let count = shard.per_connection.entry(wait.connection).or_insert(0);
        if *count >= self.limits.per_connection {
            return Err(pull);
        }
        *count += 1;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        if !shard.topics.contains_key(topic) {
            shard.topics.insert(topic.into(), HashMap::new());
        }
        if let Some(queues) = shard.topics.get_mut(topic) {
            queues.entry(queue).or_default().push(Parked { id, wait, pull });
        }
        self.parked.fetch_add(1, Ordering::SeqCst);
        // Pairs with the fence of `arrived`: either it sees the count, or the caller's next look sees the message.
        fence(Ordering::SeqCst);
        Ok(Ticket { shard: at, id })
    }

    /// Takes a parked pull back; `None` when somebody else has it already.
    pub fn take(&self, topic: &str, queue: i32, ticket: Ticket) -> Option<R> {
        let mut shard = self.shards[ticket.shard].lock();
        let mut found = self.remove_if(&mut shard, topic, queue, |parked| parked.id == ticket.id);
        found.pop()
    }

    /// The queue's end is now `max_offset`: hands over the pulls waiting for an offset below it that `wants` says the new messages
    /// may concern. `max_offset` is an exclusive end.
    pub fn arrived(
        &self,
        topic: &str,
        queue: i32,
        max_offset: i64,
        mut wants: impl FnMut(&R) -> bool,
        mut wake: impl FnMut(R),
    ) {
        fence(Ordering::SeqCst);
        if self.parked.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut shard = self.shards[self.shard_of(topic, queue)].lock();
        let woken =
            self.remove_if(&mut shard, topic, queue, |parked| parked.wait.offset < max_offset && wants(&parked.pull));
        drop(shard);
        woken.into_iter().for_each(&mut wake);
    }

    /// Hands over the pulls whose time is up and drops those that nobody waits for any more.
    pub fn sweep(&self, now: i64, mut alive: impl FnMut(&R) -> bool) -> Vec<R> {
        let mut expired = Vec::new();
        if self.is_empty() {
            return expired;
        }
        for shard in &self.shards {
            let mut shard = shard.lock();
            let Shard { topics, per_connection } = &mut *shard;
            topics.retain(|_, queues| {
                queues.retain(|_, list| {
                    let leaving = list.extract_if(.., |one| one.wait.deadline <= now || !alive(&one.pull));
                    for parked in leaving {
                        self.forget(per_connection, parked.wait.connection);
                        expired.push(parked.pull);
                    }
                    !list.is_empty()
                });
                !queues.is_empty()
            });
        }
        expired.retain(|pull| alive(pull));
        expired
    }

    /// Hands over every pull: at the end, or when a role changes.
    pub fn drain(&self) -> Vec<R> {
        self.sweep(i64::MAX, |_| true)
    }

    fn remove_if(
        &self,
        shard: &mut Shard<R>,
        topic: &str,
        queue: i32,
        mut leaves: impl FnMut(&Parked<R>) -> bool,
    ) -> Vec<R> {
        let Shard { topics, per_connection } = shard;
        let Some(queues) = topics.get_mut(topic) else {
            return Vec::new();
        };
        let Some(list) = queues.get_mut(&queue) else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for parked in list.extract_if(.., |parked| leaves(parked)) {
            self.forget(per_connection, parked.wait.connection);
            out.push(parked.pull);
        }
        if list.is_empty() {
            queues.remove(&queue);
            if queues.is_empty() {
                topics.remove(topic);
            }
        }
        out
    }

    fn forget(&self, per_connection: &mut HashMap<u64, usize>, connection: u64) {
        self.parked.fetch_sub(1, Ordering::SeqCst);
        if let Some(count) = per_connection.get_mut(&connection) {
            *count -= 1;
            if *count == 0 {
                per_connection.remove(&connection);
            }
        }
    }

    fn shard_of(&self, topic: &str, queue: i32) -> usize {
        self.hasher.hash_one((topic, queue)) as usize % SHARDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicI64;

    fn wait(offset: i64, deadline: i64) -> Wait {
        Wait { offset, deadline, connection: 1 }
    }

    fn arrive(polls: &LongPolls<u32>, queue: i32, max: i64, wants: impl FnMut(&u32) -> bool) -> Vec<u32> {
        let mut woken = Vec::new();
        polls.arrived("T", queue, max, wants, |pull| woken.push(pull));
        woken
    }

    #[test]
    fn an_arrival_wakes_its_queue_only() {
        let polls = LongPolls::new(Limits::default());
        polls.park("T", 0, wait(5, 100), 1).unwrap();
        polls.park("T", 1, wait(5, 100), 2).unwrap();
        polls.park("U", 0, wait(5, 100), 3).unwrap();
        assert!(arrive(&polls, 0, 5, |_| true).is_empty(), "offset 5 is not there while the end is 5");
        assert_eq!(arrive(&polls, 0, 6, |_| true), [1]);
        assert!(arrive(&polls, 0, 7, |_| true).is_empty());
        assert_eq!(polls.len(), 2);
    }

    #[test]
    fn an_unwanted_arrival_leaves_it_waiting() {
        let polls = LongPolls::new(Limits::default());
        polls.park("T", 0, wait(0, 100), 1).unwrap();
        polls.park("T", 0, wait(0, 100), 2).unwrap();
        assert_eq!(arrive(&polls, 0, 1, |pull| *pull == 2), [2]);
        assert_eq!(arrive(&polls, 0, 2, |_| true), [1]);
        assert!(polls.is_empty());
    }

    #[test]
    fn the_time_and_the_connection_end_waits() {
        let polls = LongPolls::new(Limits::default());
        polls.park("T", 0, wait(0, 100), 1).unwrap();
        polls.park("T", 0, wait(0, 200), 2).unwrap();
        polls.park("T", 3, wait(0, 200), 3).unwrap();
        assert!(polls.sweep(99, |_| true).is_empty());
        assert_eq!(polls.sweep(100, |_| true), [1]);
        assert!(polls.sweep(101, |pull| *pull != 3).is_empty(), "a dead pull is dropped, not woken");
        assert_eq!(polls.len(), 1);
        assert_eq!(polls.drain(), [2]);
        assert!(polls.is_empty());
    }

    #[test]
    fn a_ticket_takes_back_once() {
        let polls = LongPolls::new(Limits::default());
        let ticket = polls.park("T", 0, wait(0, 100), 1).unwrap();
        assert_eq!(polls.take("T", 0, ticket), Some(1));
        assert_eq!(polls.take("T", 0, ticket), None);
    }

    #[test]
    fn places_are_bounded_and_given_back() {
        let polls = LongPolls::new(Limits { total: 3, per_connection: 2 });
        polls.park("T", 0, wait(0, 1), 1).unwrap();
        polls.park("T", 0, wait(0, 1), 2).unwrap();
        assert_eq!(polls.park("T", 0, wait(0, 1), 3), Err(3), "this connection has its share");
        polls.park("T", 0, Wait { connection: 2, ..wait(0, 1) }, 4).unwrap();
        assert_eq!(polls.park("T", 0, Wait { connection: 3, ..wait(0, 1) }, 5), Err(5), "all places are taken");
        assert_eq!(polls.sweep(1, |_| true).len(), 3);
        polls.park("T", 0, wait(0, 2), 6).unwrap();
    }

    /// Parks against arrivals from another thread: every pull must come back without any time-out.
    #[test]
    fn no_wake_up_is_lost() {
        let polls = Arc::new(LongPolls::new(Limits::default()));
        let end = Arc::new(AtomicI64::new(0));
        let woken = Arc::new(AtomicI64::new(0));
        const MESSAGES: i64 = 20_000;
        let producer = {
            let (polls, end, woken) = (polls.clone(), end.clone(), woken.clone());
            std::thread::spawn(move || {
                for _ in 0..MESSAGES {
                    let max = end.fetch_add(1, Ordering::SeqCst) + 1;
                    polls.arrived("T", 0, max, |_| true, |offset: i64| woken.store(offset + 1, Ordering::SeqCst));
                }
            })
        };
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        for offset in 0..MESSAGES {
            if end.load(Ordering::SeqCst) > offset {
                continue;
            }
            let ticket = polls.park("T", 0, wait(offset, i64::MAX), offset).unwrap();
            if end.load(Ordering::SeqCst) > offset && polls.take("T", 0, ticket).is_some() {
                continue;
            }
            while woken.load(Ordering::SeqCst) <= offset {
                assert!(std::time::Instant::now() < deadline, "the wake-up for offset {offset} was lost");
                std::hint::spin_loop();
            }
        }
        producer.join().unwrap();
        assert!(polls.is_empty());
    }
}
