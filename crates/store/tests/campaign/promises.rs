//! What producers and readers were told, and whether the store still stands by it.

use std::collections::{BTreeMap, HashSet};

use protocol::record::RecordView;
use store::*;

use crate::support::request;

/// One message that was given a place in a queue.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) body: String,
    pub(crate) key: String,
    pub(crate) physical: u64,
    /// It must survive the process.
    pub(crate) written: bool,
    /// It must survive the machine.
    pub(crate) safe: bool,
}

/// One queue: all that may be found at each offset.
#[derive(Default, Clone)]
pub(crate) struct Queue {
    pub(crate) told: BTreeMap<i64, Vec<Told>>,
    /// What the queue held before its topic was deleted by a process that could not say that it had done so.
    before: Vec<BTreeMap<i64, Vec<Told>>>,
    /// A deletion of its topic failed, or could not be noted: until one succeeds, what was there before may come back.
    in_doubt: bool,
    /// A reader has seen everything below, and it was on the disk then.
    pub(crate) seen: i64,
}

impl Queue {
    pub(crate) fn tell(&mut self, offset: i64, told: Told) {
        let there = self.told.entry(offset).or_default();
        assert!(!there.iter().any(|t| t.safe || t.written), "offset {offset} is given twice: {there:?}, {told:?}");
        there.push(told);
    }

    /// The topic is deleted. Once that is certain nothing of before ever comes back.
    pub(crate) fn delete(&mut self, certain: bool) {
        self.before.push(std::mem::take(&mut self.told));
        if certain {
            self.before.clear();
        }
        self.in_doubt = !certain;
        self.seen = 0;
    }

    /// Deleting the topic has failed.
    pub(crate) fn doubt(&mut self) {
        self.in_doubt = true;
    }

    pub(crate) fn all(&mut self) -> impl Iterator<Item = &mut Told> {
        self.told.values_mut().flatten()
    }

    /// Compares with the store after a start. What is found is safe from then on.
    pub(crate) fn check(&mut self, store: &Store, topic: &str, queue: i32) -> Result<Vec<Told>, String> {
        let found = read(store, topic, queue)?;
        let (min, end) = (store.min_offset(topic, queue), store.max_offset(topic, queue));
        if min + (found.len() as i64) < end {
            for unit in store.units(topic, queue, min + found.len() as i64 - 1, 5) {
                tracing::warn!(?unit, there = store.record_at(unit.physical_offset).is_some(), "at the end");
            }
        }
        if self.in_doubt {
            return self.adopt(&found);
        }
        let mut fits = Self::fits(&self.told, &found, self.seen, (min, end), store.min_physical_offset())
            .map(|known| (self.told.clone(), known));
        if fits.is_err() && !self.told.values().flatten().any(|t| t.safe) {
            for old in self.before.iter().rev() {
                match Self::fits(old, &found, 0, (min, end), u64::MAX) {
                    Ok(known) => {
                        fits = Ok((old.clone(), known));
                        break;
                    }
                    Err(why) => fits = fits.map_err(|what| format!("{what}; before: {why}")),
                }
            }
        }
        let (from, known) = fits?;
        // What was removed from the front may come back, as far as its records are in the log.
        let mut earlier = from;
        earlier.retain(|offset, _| *offset < min);
        earlier.values_mut().flatten().for_each(|told| (told.safe, told.written) = (false, false));
        let found =
            known.iter().map(|(offset, told)| (*offset, vec![Told { written: true, safe: true, ..told.clone() }]));
        self.told = earlier.into_iter().chain(found).collect();
        Ok(known.into_iter().map(|(_, told)| told).collect())
    }

    /// Takes what is there for what must be there, as long as all of it was once sent.
    fn adopt(&mut self, found: &[(i64, u64, String)]) -> Result<Vec<Told>, String> {
        let mut known = Vec::new();
        let mut told = BTreeMap::new();
        for (offset, physical, body) in found {
            let ever = self.before.iter().chain([&self.told]).filter_map(|queue| queue.get(offset)).flatten();
            let one =
                ever.into_iter().find(|told| told.body == *body).ok_or_else(|| format!("nobody sent {body:.20}"))?;
            let one = Told { physical: *physical, written: true, safe: true, ..one.clone() };
            known.push(one.clone());
            told.insert(*offset, vec![one]);
        }
        // After a crash of the machine it may be there again.
        self.before.push(std::mem::replace(&mut self.told, told));
        self.seen = 0;
        Ok(known)
    }

    fn fits(
        told: &BTreeMap<i64, Vec<Told>>,
        found: &[(i64, u64, String)],
        seen: i64,
        (min, end): (i64, i64),
        min_physical: u64,
    ) -> Result<Vec<(i64, Told)>, String> {
        let mut known = Vec::new();
        let mut bodies = HashSet::new();
        for (i, (offset, physical, body)) in found.iter().enumerate() {
            if *offset != min + i as i64 {
                let after = i.checked_sub(1).and_then(|before| found.get(before)).map(|(_, physical, _)| physical);
                return Err(format!("offset {offset} at {physical} instead of {} after {after:?}", min + i as i64));
            }
            let here = told.get(offset).into_iter().flatten().find(|t| t.body == *body);
            let here =
                here.ok_or_else(|| format!("offset {offset} has {body:.20}, told was {:?}", told.get(offset)))?;
            if !bodies.insert(body) {
                return Err(format!("{body:.20} twice"));
            }
            known.push((*offset, Told { physical: *physical, ..here.clone() }));
        }
        if min + found.len() as i64 != end {
            return Err(format!("{} messages from {min} on, but the end is {end}", found.len()));
        }
        if end < seen {
            return Err(format!("the end is {end}, a reader has seen {seen}"));
        }
        for (offset, told) in told.iter().flat_map(|(offset, told)| told.iter().map(move |t| (*offset, t))) {
            if told.safe && told.physical >= min_physical && !(min..end).contains(&offset) {
                return Err(format!("offset {offset} is lost: {min}..{end}, {told:?}"));
            }
        }
        Ok(known)
    }
}

/// Offset, place and body of every message of a queue.
fn read(store: &Store, topic: &str, queue: i32) -> Result<Vec<(i64, u64, String)>, String> {
    let mut all = Vec::new();
    let mut offset = store.min_offset(topic, queue);
    while offset < store.max_offset(topic, queue) {
        let got = store.get(&request(topic, queue, offset));
        if got.messages.is_empty() {
            return Err(format!("nothing at {offset}: {:?}", got.status));
        }
        for record in &got.messages {
            let view = RecordView::parse(record).map_err(|e| format!("{e:?}"))?;
            if !view.body_crc_matches() {
                return Err(format!("a damaged body at {}", view.queue_offset));
            }
            all.push((view.queue_offset, view.physical_offset as u64, String::from_utf8_lossy(view.body).into_owned()));
        }
        offset = got.next_offset;
    }
    Ok(all)
}

/// The key finds the message, once.
pub(crate) fn check_key(store: &Store, topic: &str, told: &Told) -> Result<(), String> {
    let found = store.query_key(topic, &told.key, 10, 0, i64::MAX).messages;
    let places: Vec<i64> = found.iter().filter_map(|r| Some(RecordView::parse(r).ok()?.physical_offset)).collect();
    if places != [told.physical as i64] {
        return Err(format!("key {} of the message at {} finds {places:?}", told.key, told.physical));
    }
    Ok(())
}
