//! Encoded route answers, kept until something they show changes, up to a limit of bytes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;

use super::json_text::Dialect;

/// What makes two answers for one topic differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteForm<'a> {
    pub dialect: Dialect,
    /// Whether the smallest slave stands in for a lost master (`supportActingMaster`).
    pub acting_master: bool,
    pub order_conf: Option<&'a str>,
    /// Only brokers of this zone, and those without master.
    pub zone: Option<&'a str>,
}

#[derive(Debug)]
struct Variant {
    dialect: Dialect,
    acting_master: bool,
    order_conf: Option<Box<str>>,
    zone: Option<Box<str>>,
    body: Bytes,
}

impl Variant {
    fn is(&self, form: &RouteForm<'_>) -> bool {
        self.dialect == form.dialect
            && self.acting_master == form.acting_master
            && self.order_conf.as_deref() == form.order_conf
            && self.zone.as_deref() == form.zone
    }
}

/// A topic seldom has more than two; zones make more.
const VARIANTS: usize = 8;

/// The encoded answers of one topic.
#[derive(Debug)]
pub(crate) struct EncodedRoute {
    /// The brokers' version that these answers are known to agree with.
    checked: AtomicU64,
    used: AtomicBool,
    variants: Vec<Arc<Variant>>,
}

impl EncodedRoute {
    pub(crate) fn checked(&self) -> u64 {
        self.checked.load(Ordering::Relaxed)
    }

    pub(crate) fn set_checked(&self, version: u64) {
        self.checked.fetch_max(version, Ordering::Relaxed);
    }

    pub(crate) fn body(&self, form: &RouteForm<'_>) -> Option<Bytes> {
        let variant = self.variants.iter().find(|variant| variant.is(form))?;
        self.used.store(true, Ordering::Relaxed);
        Some(variant.body.clone())
    }

    fn bytes(&self) -> usize {
        let bodies: usize = self.variants.iter().map(|variant| variant.body.len() + size_of::<Variant>()).sum();
        bodies + 128
    }
}

/// The encoded answers of one shard.
#[derive(Debug, Default)]
pub(crate) struct EncodedRoutes {
    by_topic: HashMap<Arc<str>, EncodedRoute>,
    /// Topics in the order they came in; one used since its last turn gets another.
    ring: VecDeque<Arc<str>>,
    bytes: usize,
}

impl EncodedRoutes {
    pub(crate) fn get(&self, topic: &str) -> Option<&EncodedRoute> {
        self.by_topic.get(topic)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn forget(&mut self, topic: &str) {
        if self.by_topic.is_empty() {
            return;
        }
        if let Some(gone) = self.by_topic.remove(topic) {
            self.bytes -= gone.bytes();
        }
    }

    /// Keeps `body`, made from the brokers' `version`, and makes room for it. One that does not fit is not kept.
    pub(crate) fn keep(&mut self, topic: &str, form: &RouteForm<'_>, version: u64, body: Bytes, limit: usize) {
        let mut variants = match self.by_topic.remove(topic) {
            Some(known) => {
                self.bytes -= known.bytes();
                if known.checked() == version { known.variants } else { Vec::new() }
            }
            None => Vec::new(),
        };
        variants.retain(|variant| !variant.is(form));
        if variants.len() == VARIANTS {
            variants.remove(0);
        }
        variants.push(Arc::new(Variant {
            dialect: form.dialect,
            acting_master: form.acting_master,
            order_conf: form.order_conf.map(Into::into),
            zone: form.zone.map(Into::into),
            body,
        }));
        let route = EncodedRoute { checked: AtomicU64::new(version), used: AtomicBool::new(false), variants };
        if !self.make_room(route.bytes(), limit) {
            return;
        }
        self.bytes += route.bytes();
        let topic: Arc<str> = topic.into();
        self.ring.push_back(topic.clone());
        self.by_topic.insert(topic, route);
        if self.ring.len() > 2 * self.by_topic.len() + 16 {
            let by_topic = &self.by_topic;
            self.ring.retain(|name| is_current(by_topic, name));
        }
    }

    fn make_room(&mut self, needed: usize, limit: usize) -> bool {
        if needed > limit {
            return false;
        }
        while self.bytes + needed > limit {
            let Some(topic) = self.ring.pop_front() else {
                return false;
            };
            if !is_current(&self.by_topic, &topic) {
                continue;
            }
            if self.by_topic.get(&topic).is_some_and(|route| route.used.swap(false, Ordering::Relaxed)) {
                self.ring.push_back(topic);
            } else {
                self.forget(&topic);
            }
        }
        true
    }
}

/// Whether the ring's name is the one under which the route is kept, and not left over from an earlier stay.
fn is_current(by_topic: &HashMap<Arc<str>, EncodedRoute>, name: &Arc<str>) -> bool {
    by_topic.get_key_value(name).is_some_and(|(key, _)| Arc::ptr_eq(key, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: RouteForm<'static> =
        RouteForm { dialect: Dialect::Standard, acting_master: false, order_conf: None, zone: None };

    #[test]
    fn the_limit_holds_and_used_routes_stay() {
        let mut routes = EncodedRoutes::default();
        let body = Bytes::from(vec![b'x'; 1000]);
        for at in 0..100 {
            routes.keep(&format!("t{at}"), &FORM, 1, body.clone(), 20_000);
            if let Some(first) = routes.get("t0") {
                assert!(first.body(&FORM).is_some());
            }
            assert!(routes.bytes() <= 20_000);
        }
        assert!(routes.get("t0").is_some(), "asked for at each step");
        assert!(routes.get("t1").is_none(), "never asked for again");
        assert!(routes.ring.len() <= 2 * routes.by_topic.len() + 16);
    }

    #[test]
    fn keeping_and_forgetting_does_not_grow_the_ring() {
        let mut routes = EncodedRoutes::default();
        for version in 0..10_000 {
            routes.keep("t", &FORM, version, Bytes::from_static(b"{}"), 20_000);
            routes.forget("t");
        }
        assert_eq!(routes.bytes(), 0);
        assert!(routes.ring.len() <= 32);
    }

    #[test]
    fn forms_are_told_apart_and_an_older_version_is_dropped() {
        let mut routes = EncodedRoutes::default();
        let zone = RouteForm { zone: Some("z"), ..FORM };
        routes.keep("t", &FORM, 1, Bytes::from_static(b"1"), 20_000);
        routes.keep("t", &zone, 1, Bytes::from_static(b"2"), 20_000);
        assert_eq!(routes.get("t").unwrap().body(&FORM).unwrap(), "1");
        assert_eq!(routes.get("t").unwrap().body(&zone).unwrap(), "2");
        routes.keep("t", &zone, 2, Bytes::from_static(b"3"), 20_000);
        assert!(routes.get("t").unwrap().body(&FORM).is_none());
    }
}
