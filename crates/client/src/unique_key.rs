//! Message ids made by the client.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

use protocol::record::UniqueKey;

use crate::clock::now_ms;

/// A new value for the property `UNIQ_KEY`: this process, this millisecond, and a counter.
pub fn unique_key() -> String {
    static COUNTER: AtomicU16 = AtomicU16::new(0);
    static SALT: OnceLock<u32> = OnceLock::new();
    UniqueKey {
        ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        process: std::process::id() as u16,
        salt: *SALT.get_or_init(|| fastrand::u32(..)),
        // Java counts from the start of the month. Any number that only grows tells messages apart as well.
        millis_of_month: (now_ms() % (31 * 24 * 3600 * 1000)) as i32,
        counter: COUNTER.fetch_add(1, Ordering::Relaxed),
    }
    .to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_are_long_enough_and_different() {
        let keys: HashSet<String> = (0..10_000).map(|_| unique_key()).collect();
        assert_eq!(keys.len(), 10_000);
        assert!(keys.iter().all(|key| key.len() == 32 && UniqueKey::parse(key).is_some()));
    }
}
