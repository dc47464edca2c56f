//! The result, for people and for machines.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::server_process::Usage;
use crate::stats::Counts;

/// How the latencies were corrected for coordinated omission.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Correction {
    /// They count from when a message was due.
    DueTime,
    /// What a slow answer kept from being sent is filled in, one every so many microseconds: the median latency, which
    /// is how often a slot sends when nothing is slow.
    Filled(u64),
}

pub(crate) struct Direction {
    pub(crate) name: &'static str,
    pub(crate) counts: Counts,
    /// A due rate was given.
    pub(crate) open_loop: bool,
}

/// A look at the server and at ourselves, before and after.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Costs {
    pub(crate) server: Option<(Usage, Usage)>,
    pub(crate) own_cpu_micros: u64,
}

impl Direction {
    fn corrected(&self) -> (Histogram<u64>, Correction) {
        if self.open_loop {
            return (self.counts.latency.clone(), Correction::DueTime);
        }
        let interval = self.counts.latency.value_at_quantile(0.5).max(1);
        (self.counts.latency.clone_correct(interval), Correction::Filled(interval))
    }
}

fn quantiles(histogram: &Histogram<u64>) -> Value {
    json!({
        "p50": histogram.value_at_quantile(0.5),
        "p99": histogram.value_at_quantile(0.99),
        "p999": histogram.value_at_quantile(0.999),
        "max": histogram.max(),
        "mean": (histogram.mean() * 10.0).round() / 10.0,
    })
}

pub(crate) fn to_json(setup: Value, directions: &[Direction], elapsed: Duration, costs: &Costs) -> Value {
    let seconds = elapsed.as_secs_f64();
    let mut result = json!({ "setup": setup, "seconds": seconds });
    for direction in directions {
        let (corrected, correction) = direction.corrected();
        let counts = &direction.counts;
        let mut one = json!({
            "messages": counts.messages,
            "per_second": (counts.messages as f64 / seconds).round(),
            "bytes": counts.bytes,
            "failures": counts.failures,
            "latency_us": quantiles(&corrected),
            "latency_us_uncorrected": quantiles(&counts.latency),
            "correction": match correction {
                Correction::DueTime => json!("due time"),
                Correction::Filled(interval) => json!({ "filled_every_us": interval }),
            },
        });
        if !counts.end_to_end.is_empty() {
            one["end_to_end_us"] = quantiles(&counts.end_to_end);
        }
        result[direction.name] = one;
    }
    let messages = directions.first().map_or(0, |direction| direction.counts.messages);
    if let Some((before, after)) = costs.server {
        let cpu = after.cpu_micros.saturating_sub(before.cpu_micros);
        result["server"] = json!({
            "cpu_us": cpu,
            "cpu_us_per_message": per(cpu, messages),
            "cores": cpu as f64 / 1e6 / seconds,
            "resident_bytes": after.resident_bytes,
        });
    }
    result["generator"] = json!({
        "cpu_us": costs.own_cpu_micros,
        "cpu_us_per_message": per(costs.own_cpu_micros, messages),
    });
    result
}

fn per(micros: u64, messages: u64) -> f64 {
    (micros as f64 / messages.max(1) as f64 * 1000.0).round() / 1000.0
}

pub(crate) fn print(directions: &[Direction], elapsed: Duration, costs: &Costs) {
    let seconds = elapsed.as_secs_f64();
    for direction in directions {
        let counts = &direction.counts;
        let (corrected, correction) = direction.corrected();
        println!(
            "{:<8} {} messages in {seconds:.2} s: {:.0}/s, {:.1} MB/s, {} failed",
            direction.name,
            counts.messages,
            counts.messages as f64 / seconds,
            counts.bytes as f64 / 1e6 / seconds,
            counts.failed(),
        );
        for (what, count) in &counts.failures {
            println!("         {count} x {what}");
        }
        match correction {
            Correction::DueTime => println!("  latency {} (from the due time)", line(&corrected)),
            Correction::Filled(interval) => {
                println!("  latency {} (gaps filled every {interval} us)", line(&corrected));
                println!("  without the filling {}", line(&counts.latency));
            }
        }
        if !counts.end_to_end.is_empty() {
            println!("  end to end {}", line(&counts.end_to_end));
        }
    }
    let messages = directions.first().map_or(0, |direction| direction.counts.messages);
    if let Some((before, after)) = costs.server {
        let cpu = after.cpu_micros.saturating_sub(before.cpu_micros);
        println!(
            "server   {:.2} us CPU per message, {:.2} cores, {:.0} MB resident",
            per(cpu, messages),
            cpu as f64 / 1e6 / seconds,
            after.resident_bytes as f64 / 1e6,
        );
    }
    println!("mqbench  {:.2} us CPU per message", per(costs.own_cpu_micros, messages));
}

fn line(histogram: &Histogram<u64>) -> String {
    let at = |quantile| millis(histogram.value_at_quantile(quantile));
    format!("p50 {} p99 {} p99.9 {} max {}", at(0.5), at(0.99), at(0.999), millis(histogram.max()))
}

fn millis(micros: u64) -> String {
    format!("{:.3} ms", micros as f64 / 1000.0)
}

/// One line of progress.
pub(crate) fn progress(
    second: f64,
    laps: &[(&'static str, Counts)],
    lap: Duration,
    server: Option<(Usage, Usage)>,
) -> String {
    let mut text = format!("{second:>6.1} s");
    let mut first_messages = 0;
    for (at, (name, counts)) in laps.iter().enumerate() {
        if at == 0 {
            first_messages = counts.messages;
        }
        text += &format!(
            "  {name} {:.0}/s p50 {} p99 {} max {}",
            counts.messages as f64 / lap.as_secs_f64(),
            millis(counts.latency.value_at_quantile(0.5)),
            millis(counts.latency.value_at_quantile(0.99)),
            millis(counts.latency.max()),
        );
        if counts.failed() > 0 {
            text += &format!(" failed {}", counts.failed());
        }
    }
    if let Some((before, after)) = server {
        let cpu = after.cpu_micros.saturating_sub(before.cpu_micros);
        text += &format!("  server {:.2} us/msg {:.0} MB", per(cpu, first_messages), after.resident_bytes as f64 / 1e6);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Stats;

    #[test]
    fn a_stall_shows_in_the_corrected_quantiles() {
        let stats = Stats::new();
        stats.record(|counts| {
            for _ in 0..1000 {
                counts.latency.saturating_record(1000);
            }
            // One answer that took a second stands for the thousand messages that were not sent meanwhile.
            counts.latency.saturating_record(1_000_000);
        });
        let closed = Direction { name: "produce", counts: stats.total(), open_loop: false };
        let (corrected, _) = closed.corrected();
        assert!(closed.counts.latency.value_at_quantile(0.99) < 1100);
        assert!(corrected.value_at_quantile(0.99) > 900_000);
        let open = Direction { open_loop: true, ..closed };
        assert_eq!(open.corrected().0.len(), 1001, "due times need no filling");
    }
}
