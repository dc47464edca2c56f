//! What a send's property string says to the broker, and what the broker writes into it.
//!
//! The string is scanned once and stays bytes. A usual send needs no more than the broker's own pairs behind it.

use protocol::record::{properties, property};

/// The properties a send is decided by.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SendProperties<'a> {
    pub tags: Option<&'a str>,
    pub uniq_key: Option<&'a str>,
    pub keys: Option<&'a str>,
    pub delay: Option<&'a str>,
    pub wait: Option<&'a str>,
    pub transaction: bool,
    /// Asks for delivery at a time of its own, by one of the timer properties.
    pub timer: bool,
    pub inner_num: bool,
    /// Holds a pair that the broker sets itself or deletes, or text that is no pair.
    pub needs_cleaning: bool,
}

impl<'a> SendProperties<'a> {
    pub fn scan(text: &'a [u8]) -> Self {
        let mut found = Self::default();
        let mut pairs_length = 0;
        for (key, value) in properties::iter(text) {
            pairs_length += key.len() + value.len() + 2;
            let slot = match key {
                b"TAGS" => &mut found.tags,
                b"UNIQ_KEY" => &mut found.uniq_key,
                b"KEYS" => &mut found.keys,
                b"DELAY" => &mut found.delay,
                b"WAIT" => &mut found.wait,
                b"TRAN_MSG" => {
                    found.transaction = value.eq_ignore_ascii_case(b"true");
                    continue;
                }
                b"TIMER_DELIVER_MS" | b"TIMER_DELAY_SEC" | b"TIMER_DELAY_MS" => {
                    found.timer = true;
                    continue;
                }
                b"INNER_NUM" => {
                    found.inner_num = true;
                    continue;
                }
                b"MSG_REGION" | b"TRACE_ON" | b"CLUSTER" | b"POP_CK" => {
                    found.needs_cleaning = true;
                    continue;
                }
                _ => continue,
            };
            *slot = std::str::from_utf8(value).ok();
        }
        // The last pair need not be ended.
        found.needs_cleaning |= pairs_length != text.len() && pairs_length != text.len() + 1;
        found
    }

    /// The delay level; an error when it is no number.
    pub fn delay_level(&self) -> Result<i32, std::num::ParseIntError> {
        self.delay.map_or(Ok(0), str::parse)
    }

    /// Whether the answer waits for the flush and the replicas; only the word says no.
    pub fn waits_for_store(&self) -> bool {
        self.wait.is_none_or(|text| text.eq_ignore_ascii_case("true"))
    }
}

/// The pairs every message gets from the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerPairs {
    bytes: Vec<u8>,
}

impl BrokerPairs {
    pub fn new(region: &str, trace_on: bool, cluster: &str) -> Self {
        let trace_on = if trace_on { "true" } else { "false" };
        let pairs = [(property::MSG_REGION, region), (property::TRACE_ON, trace_on), (property::CLUSTER, cluster)];
        Self { bytes: properties::from_pairs(pairs) }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Writes into `out` what is left for the disk when the broker's pairs are to follow and what is no pair is dropped, as
/// Java drops it.
pub fn cleaned(out: &mut Vec<u8>, text: &[u8]) {
    out.clear();
    for (key, value) in properties::iter(text) {
        if !matches!(key, b"MSG_REGION" | b"TRACE_ON" | b"CLUSTER" | b"POP_CK") {
            out.extend_from_slice(key);
            out.push(properties::KEY_END);
            out.extend_from_slice(value);
            out.push(properties::PAIR_END);
        }
    }
}

/// Turns the properties of a delayed message into those it waits with: the level that counts, where it goes afterwards, and no
/// timer, which the level outdoes.
pub fn wait_in_level(text: &mut Vec<u8>, level: i32, topic: &str, queue: i32) {
    for timer in [property::TIMER_DELIVER_MS, property::TIMER_DELAY_SEC, property::TIMER_DELAY_MS] {
        properties::delete(text, timer);
    }
    properties::set(text, property::DELAY, &level.to_string());
    properties::set(text, property::REAL_TOPIC, topic);
    properties::set(text, property::REAL_QUEUE_ID, &queue.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<u8> {
        properties::from_pairs(list.iter().copied())
    }

    #[test]
    fn one_scan_finds_what_counts() {
        let text =
            pairs(&[("TAGS", "a"), ("KEYS", "k1 k2"), ("UNIQ_KEY", "U"), ("WAIT", "false"), ("x", "y"), ("TAGS", "b")]);
        let found = SendProperties::scan(&text);
        assert_eq!((found.tags, found.keys, found.uniq_key), (Some("b"), Some("k1 k2"), Some("U")));
        assert!(!found.waits_for_store() && !found.transaction && !found.timer && !found.needs_cleaning);
        assert_eq!(found.delay_level(), Ok(0));
        let found = SendProperties::scan(b"DELAY\x013\x02TRAN_MSG\x01TRUE\x02TIMER_DELAY_MS\x015\x02CLUSTER\x01c");
        assert!(found.transaction && found.timer && found.needs_cleaning && found.waits_for_store());
        assert_eq!(found.delay_level(), Ok(3));
        assert!(SendProperties::scan(b"DELAY\x01abc").delay_level().is_err());
    }

    #[test]
    fn the_brokers_pairs_replace_the_producers() {
        let mut out = Vec::new();
        cleaned(&mut out, &pairs(&[("CLUSTER", "mine"), ("a", "1"), ("POP_CK", "x"), ("TRACE_ON", "no")]));
        assert_eq!(out, pairs(&[("a", "1")]));
        cleaned(&mut out, b"MSG_REGION\x01here\x02");
        assert_eq!(out, b"");
        let untidy = b"a\x01\x02junk\x02b\x01c";
        assert!(SendProperties::scan(untidy).needs_cleaning);
        cleaned(&mut out, untidy);
        assert_eq!(out, b"b\x01c\x02");
        assert!(!SendProperties::scan(b"a\x011\x02b\x012").needs_cleaning);
        let broker = BrokerPairs::new("DefaultRegion", true, "DefaultCluster");
        assert_eq!(
            broker.as_bytes(),
            b"MSG_REGION\x01DefaultRegion\x02TRACE_ON\x01true\x02CLUSTER\x01DefaultCluster\x02"
        );
    }

    #[test]
    fn a_delayed_message_waits_with_javas_properties() {
        let mut text = pairs(&[("DELAY", "99"), ("TAGS", "x"), ("TIMER_DELAY_SEC", "5"), ("REAL_TOPIC", "old")]);
        wait_in_level(&mut text, 18, "PT1", 1);
        assert_eq!(text, pairs(&[("TAGS", "x"), ("DELAY", "18"), ("REAL_TOPIC", "PT1"), ("REAL_QID", "1")]));
    }
}
