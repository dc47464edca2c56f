//! Delay levels: the table of delays, what a delayed message is stored as, and when each level's next one is due.
//!
//! Pure: the clock and the queue come in as arguments. `delay_delivery.rs` runs it.

use std::fmt;

/// Why a text is not a table of delay levels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadDelayLevels {
    #[error("messageDelayLevel is empty")]
    Empty,
    #[error("messageDelayLevel: {0:?} is not a number followed by s, m, h or d")]
    BadItem(String),
}

/// The delays of levels 1, 2, … in milliseconds.
#[derive(Clone, PartialEq, Eq)]
pub struct DelayLevels(Vec<i64>);

impl DelayLevels {
    /// Reads `1s 5s 10s …`.
    pub fn parse(text: &str) -> Result<Self, BadDelayLevels> {
        let levels = text.split_ascii_whitespace().map(Self::parse_item).collect::<Result<Vec<i64>, _>>()?;
        if levels.is_empty() { Err(BadDelayLevels::Empty) } else { Ok(Self(levels)) }
    }

    fn parse_item(item: &str) -> Result<i64, BadDelayLevels> {
        let bad = || BadDelayLevels::BadItem(item.to_owned());
        let unit = match item.as_bytes().last() {
            Some(b's') => 1_000,
            Some(b'm') => 60_000,
            Some(b'h') => 3_600_000,
            Some(b'd') => 86_400_000,
            _ => return Err(bad()),
        };
        let number: i64 = item[..item.len() - 1].parse().map_err(|_| bad())?;
        if number < 0 { Err(bad()) } else { number.checked_mul(unit).ok_or_else(bad) }
    }

    /// The highest level.
    pub fn max_level(&self) -> i32 {
        self.0.len() as i32
    }

    /// The level a message asking for `level` waits in: too high ones get the highest.
    pub fn capped(&self, level: i32) -> i32 {
        level.min(self.max_level())
    }

    /// The delay of a level in milliseconds; one second for a level that is not in the table, as Java has it.
    pub fn delay_ms(&self, level: i32) -> i64 {
        usize::try_from(level - 1).ok().and_then(|at| self.0.get(at)).copied().unwrap_or(1_000)
    }

    /// When a message stored at `store_timestamp` is due: the tag code of its consume queue unit.
    pub fn deliver_at(&self, level: i32, store_timestamp: i64) -> i64 {
        store_timestamp.saturating_add(self.delay_ms(level))
    }
}

impl fmt::Debug for DelayLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DelayLevels({:?} ms)", self.0)
    }
}

/// The queue of the schedule topic that holds a level's messages.
pub fn queue_of_level(level: i32) -> i32 {
    level - 1
}

/// One level's place in its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelState {
    pub level: i32,
    /// The first message not yet delivered.
    pub offset: i64,
    /// Nothing can be due earlier; `i64::MAX` while the queue is drained and only an arrival can change that.
    pub next_look: i64,
    /// Counts arrivals, so that one that comes during a look is not missed.
    arrivals: u64,
}

/// Whether a waiting message is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    Now,
    At(i64),
}

/// What a look at a level's queue found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// These messages were delivered or found unreadable; go on after them at once.
    Progress { next_offset: i64 },
    /// The first message is due at this time.
    NotDue { at: i64 },
    /// There is no message.
    Drained,
    /// Delivery failed; nothing moved.
    Failed,
}

/// How long a level rests after a failure.
const RETRY_MS: i64 = 100;

impl LevelState {
    /// A level that starts at a remembered offset, brought into what its queue holds.
    pub fn resume(level: i32, remembered: i64, min_offset: i64, max_offset: i64) -> Self {
        Self { level, offset: remembered.clamp(min_offset, max_offset.max(min_offset)), next_look: 0, arrivals: 0 }
    }

    /// Whether the message whose unit says `deliver_at` is due. A time that the level's delay cannot reach any more (the clock went back,
    /// the table changed) counts as due.
    pub fn due(&self, levels: &DelayLevels, deliver_at: i64, now: i64) -> Due {
        if deliver_at <= now || deliver_at > now.saturating_add(levels.delay_ms(self.level)) {
            Due::Now
        } else {
            Due::At(deliver_at)
        }
    }

    /// Takes in what a look found that began with the state `before`.
    pub fn looked(&mut self, before: &LevelState, look: Look, now: i64) {
        match look {
            Look::Progress { next_offset } => {
                debug_assert!(next_offset > self.offset, "progress moves forward");
                self.offset = self.offset.max(next_offset);
                self.next_look = now;
            }
            Look::NotDue { at } => self.next_look = at,
            Look::Drained if self.arrivals != before.arrivals => self.next_look = now,
            Look::Drained => self.next_look = i64::MAX,
            Look::Failed => self.next_look = now.saturating_add(RETRY_MS),
        }
    }

    /// A message has come into the level's queue. Those before it are due earlier, so only a drained level needs to look.
    pub fn arrived(&mut self, now: i64) {
        self.arrivals += 1;
        if self.next_look == i64::MAX {
            self.next_look = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JAVA: &str = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h";

    #[test]
    fn javas_table() {
        let levels = DelayLevels::parse(JAVA).unwrap();
        assert_eq!(levels.max_level(), 18);
        assert_eq!(levels.delay_ms(1), 1_000);
        assert_eq!(levels.delay_ms(3), 10_000);
        assert_eq!(levels.delay_ms(18), 7_200_000);
        assert_eq!(levels.delay_ms(19), 1_000);
        assert_eq!(levels.capped(40), 18);
        assert_eq!(levels.deliver_at(3, 5), 10_005);
        assert_eq!(queue_of_level(3), 2);
    }

    #[test]
    fn odd_tables() {
        assert_eq!(DelayLevels::parse("2d").unwrap().delay_ms(1), 172_800_000);
        for bad in ["1x", "s", "-1s", "1s 5", "1s é"] {
            assert!(matches!(DelayLevels::parse(bad), Err(BadDelayLevels::BadItem(_))), "{bad}");
        }
        assert_eq!(DelayLevels::parse("  "), Err(BadDelayLevels::Empty));
    }

    #[test]
    fn a_remembered_offset_is_brought_into_the_queue() {
        assert_eq!(LevelState::resume(1, 7, 0, 10).offset, 7);
        assert_eq!(LevelState::resume(1, 7, 8, 10).offset, 8);
        assert_eq!(LevelState::resume(1, 70, 0, 10).offset, 10);
        assert_eq!(LevelState::resume(1, 7, 0, 0).offset, 0);
    }

    #[test]
    fn due_by_the_units_time_unless_the_level_cannot_reach_it() {
        let levels = DelayLevels::parse(JAVA).unwrap();
        let level = LevelState::resume(3, 0, 0, 0);
        assert_eq!(level.due(&levels, 10_000, 9_999), Due::At(10_000));
        assert_eq!(level.due(&levels, 10_000, 10_000), Due::Now);
        assert_eq!(level.due(&levels, 10_000, 0), Due::At(10_000));
        assert_eq!(level.due(&levels, 10_001, 0), Due::Now, "the clock went back");
    }

    #[test]
    fn a_level_looks_again_when_something_can_have_changed() {
        let mut level = LevelState::resume(1, 0, 0, 3);
        fn looked(level: &mut LevelState, look: Look, now: i64) {
            let before = *level;
            level.looked(&before, look, now);
        }
        looked(&mut level, Look::NotDue { at: 1_000 }, 0);
        assert_eq!(level.next_look, 1_000);
        level.arrived(10);
        assert_eq!(level.next_look, 1_000, "a later message is not due earlier");
        looked(&mut level, Look::Progress { next_offset: 3 }, 1_000);
        assert_eq!((level.offset, level.next_look), (3, 1_000));
        looked(&mut level, Look::Drained, 1_000);
        assert_eq!(level.next_look, i64::MAX);
        level.arrived(5_000);
        assert_eq!(level.next_look, 5_000);
        looked(&mut level, Look::Failed, 5_000);
        assert_eq!((level.offset, level.next_look), (3, 5_100));
    }

    #[test]
    fn an_arrival_during_a_look_is_not_missed() {
        let mut level = LevelState::resume(1, 0, 0, 0);
        let before = level;
        level.arrived(7);
        level.looked(&before, Look::Drained, 8);
        assert_eq!(level.next_look, 8);
    }
}
