//! Unique keys for messages whose producer made none.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU16, Ordering};

use protocol::record::UniqueKey;

/// Makes keys of Java's form: they tell brokers, processes, moments and messages apart.
#[derive(Debug)]
pub struct UniqueKeys {
    ip: IpAddr,
    process: u16,
    salt: u32,
    counter: AtomicU16,
}

const DAY_MS: i64 = 86_400_000;

impl UniqueKeys {
    /// `salt` tells two brokers of one process or of reused process ids apart.
    pub fn new(ip: IpAddr, process: u32, salt: u32) -> Self {
        let ip = if ip.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { ip };
        Self { ip, process: process as u16, salt, counter: AtomicU16::new(0) }
    }

    /// A new key; `now` in milliseconds since 1970.
    pub fn make(&self, now: i64) -> String {
        let key = UniqueKey {
            ip: self.ip,
            process: self.process,
            salt: self.salt,
            millis_of_month: (now - month_start(now)) as i32,
            counter: self.counter.fetch_add(1, Ordering::Relaxed),
        };
        key.to_string()
    }
}

/// The first moment of the month (UTC) that `now` lies in; both in milliseconds since 1970.
fn month_start(now: i64) -> i64 {
    let days = now.div_euclid(DAY_MS);
    // Days of eras of 400 years that start on the first of March, after Howard Hinnant's calendar algorithms.
    let day_of_era = (days + 719_468).rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5;
    (days - day_of_month) * DAY_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_start_on_the_first() {
        for (now, start) in [
            (0, 0),
            (1_700_000_000_000, 1_698_796_800_000),
            (1_709_251_199_999, 1_706_745_600_000),
            (1_709_251_200_000, 1_709_251_200_000),
            (1_704_067_200_000, 1_704_067_200_000),
        ] {
            assert_eq!(month_start(now), start, "{now}");
        }
    }

    #[test]
    fn keys_differ_and_read_back() {
        let keys = UniqueKeys::new("192.0.2.2".parse().unwrap(), 0x1_364F, 0x5FFD_2B27);
        let (first, second) = (keys.make(1_700_000_000_000), keys.make(1_700_000_000_000));
        assert_ne!(first, second);
        let read = UniqueKey::parse(&first).unwrap();
        assert_eq!((read.process, read.millis_of_month, read.counter), (0x364F, 1_203_200_000, 0));
        assert!(first.starts_with("C0000202364F5FFD2B27"));
    }
}
