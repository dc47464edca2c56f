//! Reading messages of a queue.

use std::sync::Arc;

use bytes::Bytes;
use protocol::record::RecordView;

use crate::consume_queue::ConsumeQueue;
use crate::ext::is_address;
use crate::facts::unit_of;
use crate::queues::UnitRead;
use crate::residency::Residency;
use crate::{GetRequest, GetResult, GetStatus, Store, StoreConfig, Unit};

/// Data this close to the end of the log is taken to be in memory without asking; less on small machines.
const SURELY_RESIDENT: u64 = 256 << 20;
/// Most bytes of one answer, whatever is asked.
const MOST_BYTES: usize = 128 << 20;
/// Least bytes of one answer that count as asked.
const LEAST_BYTES: usize = 100;
/// Units read at once; more are read when a filter leaves messages out.
const UNITS_AT_ONCE: usize = 32;

/// Why a read of messages ended early.
enum Stop {
    Full,
    Cold,
}

/// How many messages and bytes fit, by Java's four limits.
pub(crate) struct Limits {
    pub(crate) messages: usize,
    bytes: usize,
    memory: (usize, usize),
    disk: (usize, usize),
}

impl Limits {
    pub(crate) fn new(config: &StoreConfig, request: &GetRequest<'_>) -> Self {
        Limits {
            messages: request.max_messages.max(1),
            bytes: request.max_bytes.clamp(LEAST_BYTES, MOST_BYTES),
            memory: (config.max_transfer_count_in_memory, config.max_transfer_bytes_in_memory),
            disk: (config.max_transfer_count_on_disk, config.max_transfer_bytes_on_disk),
        }
    }

    /// Whether one more record of `more` messages and `size` bytes would be too much.
    pub(crate) fn full(&self, (count, bytes): (usize, usize), (more, size): (usize, usize), in_memory: bool) -> bool {
        if count == 0 {
            return false;
        }
        let (most_count, most_bytes) = if in_memory { self.memory } else { self.disk };
        count + more > self.messages || bytes + size > self.bytes || bytes + size > most_bytes || count >= most_count
    }
}

impl Store {
    /// Reads messages of a queue.
    pub fn get(&self, request: &GetRequest<'_>) -> GetResult {
        let mut result = GetResult {
            status: GetStatus::NoMatchedLogicQueue,
            next_offset: 0,
            min_offset: 0,
            max_offset: 0,
            messages: Vec::new(),
            count: 0,
            bytes: 0,
            cold: false,
            suggest_slave: false,
        };
        let offset = request.offset;
        let correct = |to: i64| if self.config.slave && !self.config.offset_check_in_slave { offset } else { to };
        let Some(queue) = self.queues.get(request.topic, request.queue) else {
            result.next_offset = correct(0);
            return result;
        };
        if let Some(log) = self.compacted(&queue) {
            self.get_compacted(&queue, log, request, &mut result);
            return result;
        }
        let (min, max) = (queue.min(), queue.end());
        (result.min_offset, result.max_offset) = (min, max);
        let (status, next) = match offset {
            _ if max == 0 => (GetStatus::NoMessageInQueue, correct(0)),
            _ if offset < min => (GetStatus::OffsetTooSmall, correct(min)),
            _ if offset == max => (GetStatus::OffsetOverflowOne, correct(offset)),
            _ if offset > max => (GetStatus::OffsetOverflowBadly, correct(max)),
            _ => {
                self.collect(&queue, request, &mut result);
                return result;
            }
        };
        (result.status, result.next_offset) = (status, next);
        result
    }

    fn collect(&self, queue: &Arc<ConsumeQueue>, request: &GetRequest<'_>, result: &mut GetResult) {
        let limits = Limits::new(&self.config, request);
        let units = self.config.max_filter_message_size.div_ceil(queue.kind.unit_len());
        let scan = units.max(request.max_messages) as i64;
        let end = (request.offset + scan).min(result.max_offset);
        let mut units = Vec::with_capacity(UNITS_AT_ONCE);
        (result.status, result.next_offset) = (GetStatus::NoMatchedMessage, request.offset);
        while result.next_offset < end {
            let next = result.next_offset;
            units.clear();
            let want = UNITS_AT_ONCE.min((end - next) as usize);
            let stop = match self.queues.read(queue, next, want, request.may_block, &mut units) {
                UnitRead::Found if !units.is_empty() => {
                    self.take_units(queue, &mut units, end, request, &limits, result)
                }
                UnitRead::Cold => Some(Stop::Cold),
                UnitRead::Found if !request.may_block => Some(Stop::Cold),
                UnitRead::Found if self.mended(queue, next).is_some() => continue,
                damaged => {
                    if next == request.offset {
                        result.status = GetStatus::OffsetFoundNull;
                        result.next_offset = match damaged {
                            UnitRead::Found => self.queues.after_hole(queue, next),
                            _ => self.queues.after_file_of(queue, next, request.may_block),
                        };
                    }
                    break;
                }
            };
            if let Some(stop) = stop {
                result.cold = matches!(stop, Stop::Cold) && result.messages.is_empty();
                break;
            }
        }
    }

    /// Takes the messages of the units before `end`.
    fn take_units(
        &self,
        queue: &Arc<ConsumeQueue>,
        units: &mut [Unit],
        end: i64,
        request: &GetRequest<'_>,
        limits: &Limits,
        result: &mut GetResult,
    ) -> Option<Stop> {
        if units.iter().any(|unit| is_address(unit.tags_code)) {
            if !request.may_block {
                return Some(Stop::Cold);
            }
            self.ask_records(queue, units);
        }
        let within = units.partition_point(|unit| unit.queue_offset < end);
        if let (0, Some(behind)) = (within, units.first()) {
            result.next_offset = behind.queue_offset;
            return Some(Stop::Full);
        }
        self.take_messages(queue, units.get(..within).unwrap_or_default(), request, limits, result)
    }

    fn take_messages(
        &self,
        queue: &Arc<ConsumeQueue>,
        units: &[Unit],
        request: &GetRequest<'_>,
        limits: &Limits,
        result: &mut GetResult,
    ) -> Option<Stop> {
        let log_end = self.positions.written();
        let memory = self.in_memory_bytes();
        let min_physical = self.log.min_offset();
        let surely = SURELY_RESIDENT.min(self.memory_bytes / 64);
        let mut residency = Residency::new(&self.log, log_end.saturating_sub(surely));
        for unit in units {
            let behind = log_end.saturating_sub(unit.physical_offset);
            let (size, count) = (unit.size as usize, unit.count.max(0) as usize);
            if limits.full((result.count, result.bytes), (count, size), behind <= memory) {
                return Some(Stop::Full);
            }
            let gone = unit.is_filler() || unit.physical_offset < min_physical;
            if gone || request.filter.is_none_or(|f| f.tags_code_matches(unit.tags_code)) {
                let record =
                    if gone { Ok(None) } else { self.take_record(queue, unit, &mut residency, request.may_block) };
                match record {
                    Err(stop) => return Some(stop),
                    Ok(None) if result.messages.is_empty() => result.status = GetStatus::MessageWasRemoving,
                    Ok(None) => {}
                    Ok(Some(record)) if request.filter.is_some_and(|f| !f.record_matches(&record)) => {}
                    Ok(Some(record)) => {
                        result.suggest_slave = behind > memory;
                        result.count += count;
                        result.bytes += size;
                        result.messages.push(record);
                        result.status = GetStatus::Found;
                    }
                }
            }
            result.next_offset = unit.end();
        }
        None
    }

    /// The record of a unit; `None` when the message is gone.
    fn take_record(
        &self,
        queue: &Arc<ConsumeQueue>,
        unit: &Unit,
        residency: &mut Residency<'_>,
        may_block: bool,
    ) -> Result<Option<Bytes>, Stop> {
        let resident = residency.holds(unit);
        if !resident && !may_block {
            return Err(Stop::Cold);
        }
        if !resident {
            residency.read_ahead(unit);
        }
        let record = self.record(unit, resident);
        // What retention has taken since this read began is not damaged.
        if record.is_some() || unit.physical_offset < self.log.min_offset() {
            return Ok(record);
        }
        if !may_block {
            return Err(Stop::Cold);
        }
        Ok(self.mended(queue, unit.queue_offset).and_then(|unit| self.record(&unit, false)))
    }

    /// Finds the tags codes that a crash has taken from the extension of a queue in the records.
    fn ask_records(&self, queue: &ConsumeQueue, units: &mut [Unit]) {
        for unit in units.iter_mut().filter(|unit| is_address(unit.tags_code)) {
            let record = self.record_at(unit.physical_offset);
            let view = record.as_ref().and_then(|record| RecordView::parse(record).ok());
            unit.tags_code = view.map_or(0, |view| unit_of(&self.config, queue, unit.physical_offset, &view).tags_code);
        }
    }

    /// The record of a unit; `None` when it is gone or is no record of that size.
    pub(crate) fn record(&self, unit: &Unit, resident: bool) -> Option<Bytes> {
        let size = unit.size as usize;
        if unit.physical_end() > self.positions.written() {
            return None;
        }
        let record = if resident {
            self.log.slice(unit.physical_offset, size)
        } else {
            self.log.read_copy(unit.physical_offset, size)
        }?;
        record.starts_with(&unit.size.to_be_bytes()).then_some(record)
    }

    /// How far behind the end of the log data counts as being in memory.
    pub(crate) fn in_memory_bytes(&self) -> u64 {
        self.memory_bytes / 100 * self.config.access_in_memory_max_ratio
    }

    /// Units of a queue from `offset` on, at most `max`, without the messages. Empty when there are none. May wait for the disk.
    pub fn units(&self, topic: &str, queue: i32, offset: i64, max: usize) -> Vec<Unit> {
        let mut units = Vec::new();
        let Some(queue) = self.queues.get(topic, queue) else { return units };
        let mut next = offset.max(queue.min());
        while units.len() < max && next < queue.end() {
            let mut some = Vec::new();
            let read = self.queues.read(&queue, next, max - units.len(), true, &mut some);
            if read != UnitRead::Found {
                break;
            }
            next = match some.last() {
                Some(last) => last.end(),
                None if self.mended(&queue, next).is_some() => continue,
                None => match self.queues.after_hole(&queue, next) {
                    behind if behind > next => behind,
                    _ => break,
                },
            };
            self.ask_records(&queue, &mut some);
            units.append(&mut some);
        }
        units.retain(|u| !u.is_filler());
        units
    }

    /// Whether a queue still begins with message 0, and that one is so near the end of the commit log that it is probably in
    /// memory. Does not wait for the disk.
    pub fn begins_in_memory(&self, topic: &str, queue: i32) -> bool {
        let Some(queue) = self.queues.get(topic, queue).filter(|queue| queue.min() == 0) else { return false };
        let mut first = Vec::with_capacity(1);
        let read = self.queues.read(&queue, 0, 1, false, &mut first);
        let near = |unit: &Unit| {
            unit.queue_offset == 0
                && !unit.is_filler()
                && self.positions.written().saturating_sub(unit.physical_offset) <= self.in_memory_bytes()
        };
        read == UnitRead::Found && first.first().is_some_and(near)
    }

    /// First readable offset; 0 for a queue that does not exist.
    pub fn min_offset(&self, topic: &str, queue: i32) -> i64 {
        self.queues.get(topic, queue).map_or(0, |q| self.readable_range(&q).0)
    }

    /// The offset the next readable message will get; 0 for a queue that does not exist.
    pub fn max_offset(&self, topic: &str, queue: i32) -> i64 {
        self.queues.get(topic, queue).map_or(0, |q| self.readable_range(&q).1)
    }

    /// Queue ids of a topic that have messages, ascending.
    pub fn queue_ids(&self, topic: &str) -> Vec<i32> {
        self.queues.queue_ids(topic)
    }

    /// Topics that have queues in the store.
    pub fn topics(&self) -> Vec<String> {
        self.queues.topic_names().iter().map(|t| t.to_string()).collect()
    }

    pub fn min_physical_offset(&self) -> u64 {
        self.log.min_offset()
    }

    /// End of what was written.
    pub fn max_physical_offset(&self) -> u64 {
        self.positions.written()
    }
}
