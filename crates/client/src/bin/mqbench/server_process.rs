//! What the server's processes used, by `/proc`.

/// A look at some processes together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// User and system time in microseconds.
    pub(crate) cpu_micros: u64,
    pub(crate) resident_bytes: u64,
}

/// `None` when one of them is not there.
pub(crate) fn usage(pids: &[u32]) -> Option<Usage> {
    if pids.is_empty() {
        return None;
    }
    let mut sum = Usage::default();
    for pid in pids {
        let one = usage_of(*pid)?;
        sum.cpu_micros += one.cpu_micros;
        sum.resident_bytes += one.resident_bytes;
    }
    Some(sum)
}

fn usage_of(pid: u32) -> Option<Usage> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse(&stat, rustix::param::clock_ticks_per_second(), rustix::param::page_size() as u64)
}

/// Fields are counted behind the command's name, which may hold blanks and brackets.
fn parse(stat: &str, ticks_per_second: u64, page_bytes: u64) -> Option<Usage> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let ticks = number(11)? + number(12)?;
    Some(Usage { cpu_micros: ticks * 1_000_000 / ticks_per_second.max(1), resident_bytes: number(21)? * page_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let stat = "77 (a) b) S 1 1 1 0 -1 4194560 5000 0 0 0 150 50 0 0 20 0 9 0 100 123456 321 18446744073709551615";
        let usage = parse(stat, 100, 4096).unwrap();
        assert_eq!((usage.cpu_micros, usage.resident_bytes), (2_000_000, 321 * 4096));
    }

    #[test]
    fn this_process_is_found() {
        assert!(usage(&[std::process::id()]).unwrap().resident_bytes > 0);
        assert!(usage(&[u32::MAX]).is_none());
    }
}
