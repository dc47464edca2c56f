//! Counters, gauges and histograms, and their page in Prometheus' text form.
//!
//! A handle is made once and then costs one atomic addition per use. Values that are cheaper to ask for than to keep are
//! given by a closure when the page is rendered.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

/// Label sets of one family beyond which new ones share one series, labelled `overflow="true"`.
const SERIES_LIMIT: usize = 10_000;

/// A number that only grows.
#[derive(Debug, Clone, Default)]
pub struct Counter(Arc<AtomicU64>);

impl Counter {
    pub fn increment(&self) {
        self.add(1);
    }

    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A number that goes up and down.
#[derive(Debug, Clone, Default)]
pub struct Gauge(Arc<AtomicI64>);

impl Gauge {
    pub fn set(&self, value: i64) {
        self.0.store(value, Relaxed);
    }

    pub fn add(&self, amount: i64) {
        self.0.fetch_add(amount, Relaxed);
    }

    pub fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

/// Observations counted by size. The unit is the caller's; say it in the name.
#[derive(Debug, Clone)]
pub struct Histogram(Arc<HistogramCells>);

#[derive(Debug)]
struct HistogramCells {
    /// Upper bounds, inclusive, ascending; one more cell holds what is larger.
    bounds: Vec<u64>,
    cells: Vec<AtomicU64>,
    sum: AtomicU64,
}

impl Histogram {
    fn new(bounds: &[u64]) -> Histogram {
        let mut bounds = bounds.to_vec();
        bounds.sort_unstable();
        bounds.dedup();
        let cells = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram(Arc::new(HistogramCells { bounds, cells, sum: AtomicU64::new(0) }))
    }

    pub fn observe(&self, value: u64) {
        let cell = self.0.bounds.partition_point(|bound| *bound < value);
        self.0.cells[cell].fetch_add(1, Relaxed);
        self.0.sum.fetch_add(value, Relaxed);
    }

    /// Number of observations.
    pub fn count(&self) -> u64 {
        self.0.cells.iter().map(|cell| cell.load(Relaxed)).sum()
    }
}

#[derive(Debug, Clone)]
enum Series {
    Counter(Counter),
    Gauge(Gauge),
    Histogram(Histogram),
}

struct Family {
    name: String,
    help: String,
    kind: &'static str,
    /// Labels as they are rendered, without braces.
    series: Vec<(String, Series)>,
    overflow: Option<Series>,
}

type Collector = Box<dyn Fn(&mut Page) + Send + Sync>;

/// All metrics of a process.
#[derive(Default)]
pub struct Registry {
    families: Mutex<Vec<Family>>,
    collectors: Mutex<Vec<Collector>>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("families", &self.families.lock().len()).finish_non_exhaustive()
    }
}

/// Label names and values.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

impl Registry {
    pub fn new() -> Registry {
        Registry::default()
    }

    /// The counter of that name and labels; the same one for the same arguments. End the name in `_total`.
    pub fn counter(&self, name: &str, help: &str, labels: Labels<'_>) -> Counter {
        match self.series(name, help, "counter", labels, || Series::Counter(Counter::default())) {
            Series::Counter(counter) => counter,
            _ => Counter::default(),
        }
    }

    /// The gauge of that name and labels.
    pub fn gauge(&self, name: &str, help: &str, labels: Labels<'_>) -> Gauge {
        match self.series(name, help, "gauge", labels, || Series::Gauge(Gauge::default())) {
            Series::Gauge(gauge) => gauge,
            _ => Gauge::default(),
        }
    }

    /// The histogram of that name and labels. `bounds` count for the first call of a label set.
    pub fn histogram(&self, name: &str, help: &str, labels: Labels<'_>, bounds: &[u64]) -> Histogram {
        match self.series(name, help, "histogram", labels, || Series::Histogram(Histogram::new(bounds))) {
            Series::Histogram(histogram) => histogram,
            _ => Histogram::new(bounds),
        }
    }

    /// Calls `collector` for each rendering; it adds rows that are not kept anywhere.
    pub fn collect(&self, collector: impl Fn(&mut Page) + Send + Sync + 'static) {
        self.collectors.lock().push(Box::new(collector));
    }

    /// A series registered under another kind gets a handle that is on no page.
    fn series(
        &self,
        name: &str,
        help: &str,
        kind: &'static str,
        labels: Labels<'_>,
        new: impl Fn() -> Series,
    ) -> Series {
        let labels = render_labels(labels);
        let mut families = self.families.lock();
        let at = families.iter().position(|family| family.name == name).unwrap_or_else(|| {
            let (name, help) = (name.to_string(), help.to_string());
            families.push(Family { name, help, kind, series: Vec::new(), overflow: None });
            families.len() - 1
        });
        let family = &mut families[at];
        if family.kind != kind {
            tracing::error!("metric {name} is a {}, not a {kind}", family.kind);
            return new();
        }
        if let Some((_, series)) = family.series.iter().find(|(known, _)| *known == labels) {
            return series.clone();
        }
        if family.series.len() >= SERIES_LIMIT {
            return family.overflow.get_or_insert_with(new).clone();
        }
        let series = new();
        family.series.push((labels, series.clone()));
        series
    }

    /// The page, in Prometheus' text format 0.0.4.
    pub fn render(&self) -> String {
        let mut page = Page::default();
        for family in self.families.lock().iter() {
            page.head(&family.name, &family.help, family.kind);
            for (labels, series) in &family.series {
                page.series(&family.name, labels, series);
            }
            if let Some(series) = &family.overflow {
                page.series(&family.name, "overflow=\"true\"", series);
            }
        }
        for collector in self.collectors.lock().iter() {
            collector(&mut page);
        }
        page.text
    }
}

/// The page while it is written.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
    last: String,
}

impl Page {
    /// Adds a row of a gauge. Rows of one name must follow each other.
    pub fn gauge(&mut self, name: &str, help: &str, labels: Labels<'_>, value: f64) {
        self.row(name, help, "gauge", labels, value);
    }

    /// Adds a row of a counter.
    pub fn counter(&mut self, name: &str, help: &str, labels: Labels<'_>, value: f64) {
        self.row(name, help, "counter", labels, value);
    }

    /// Adds a histogram: how many observations were at most so large, for each upper bound, then how many there were and
    /// their sum.
    pub fn histogram(
        &mut self,
        name: &str,
        help: &str,
        labels: Labels<'_>,
        at_most: &[(f64, u64)],
        count: u64,
        sum: f64,
    ) {
        self.head(name, help, "histogram");
        let labels = render_labels(labels);
        let bounds = at_most.iter().map(|(bound, count)| (bound.to_string(), *count));
        for (bound, count) in bounds.chain([("+Inf".to_string(), count)]) {
            self.bucket(name, &labels, &bound, count);
        }
        self.line(&format!("{name}_sum"), &labels, sum);
        self.line(&format!("{name}_count"), &labels, count);
    }

    fn bucket(&mut self, name: &str, labels: &str, bound: &str, count: u64) {
        let separator = if labels.is_empty() { "" } else { "," };
        self.line(&format!("{name}_bucket"), &format!("{labels}{separator}le=\"{bound}\""), count);
    }

    fn row(&mut self, name: &str, help: &str, kind: &str, labels: Labels<'_>, value: f64) {
        if self.last != name {
            self.head(name, help, kind);
        }
        self.line(name, &render_labels(labels), value);
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        self.last = name.to_string();
    }

    fn series(&mut self, name: &str, labels: &str, series: &Series) {
        match series {
            Series::Counter(counter) => self.line(name, labels, counter.get()),
            Series::Gauge(gauge) => self.line(name, labels, gauge.get()),
            Series::Histogram(histogram) => self.cells(name, labels, &histogram.0),
        }
    }

    fn cells(&mut self, name: &str, labels: &str, cells: &HistogramCells) {
        let bounds = cells.bounds.iter().map(u64::to_string).chain(["+Inf".to_string()]);
        let mut count = 0;
        for (bound, cell) in bounds.zip(&cells.cells) {
            count += cell.load(Relaxed);
            self.bucket(name, labels, &bound, count);
        }
        self.line(&format!("{name}_sum"), labels, cells.sum.load(Relaxed));
        self.line(&format!("{name}_count"), labels, count);
    }

    fn line(&mut self, name: &str, labels: &str, value: impl fmt::Display) {
        let _ = match labels {
            "" => writeln!(self.text, "{name} {value}"),
            labels => writeln!(self.text, "{name}{{{labels}}} {value}"),
        };
    }
}

fn render_labels(labels: Labels<'_>) -> String {
    let mut text = String::new();
    for (name, value) in labels {
        if !text.is_empty() {
            text.push(',');
        }
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(text, "{name}=\"{value}\"");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page() {
        let registry = Registry::new();
        let requests = registry.counter("requests_total", "Requests.", &[("code", "105")]);
        registry.counter("requests_total", "Requests.", &[("code", "105")]).add(2);
        requests.increment();
        registry.counter("requests_total", "Requests.", &[("code", "a\"\\\n")]);
        registry.gauge("brokers", "Brokers\nalive.", &[]).set(-4);
        let latency = registry.histogram("latency_microseconds", "Latency.", &[("lane", "x")], &[10, 100]);
        for value in [0, 10, 11, 1000] {
            latency.observe(value);
        }
        registry.collect(|page| {
            page.gauge("topics", "Topics.", &[("cluster", "a")], 1.0);
            page.gauge("topics", "Topics.", &[("cluster", "b")], 2.5);
            page.histogram("put", "Puts.", &[("cluster", "a")], &[(0.5, 1), (10.0, 3)], 4, 99.5);
        });
        let expected = "\
# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{code=\"105\"} 3
requests_total{code=\"a\\\"\\\\\\n\"} 0
# HELP brokers Brokers\\nalive.
# TYPE brokers gauge
brokers -4
# HELP latency_microseconds Latency.
# TYPE latency_microseconds histogram
latency_microseconds_bucket{lane=\"x\",le=\"10\"} 2
latency_microseconds_bucket{lane=\"x\",le=\"100\"} 3
latency_microseconds_bucket{lane=\"x\",le=\"+Inf\"} 4
latency_microseconds_sum{lane=\"x\"} 1021
latency_microseconds_count{lane=\"x\"} 4
# HELP topics Topics.
# TYPE topics gauge
topics{cluster=\"a\"} 1
topics{cluster=\"b\"} 2.5
# HELP put Puts.
# TYPE put histogram
put_bucket{cluster=\"a\",le=\"0.5\"} 1
put_bucket{cluster=\"a\",le=\"10\"} 3
put_bucket{cluster=\"a\",le=\"+Inf\"} 4
put_sum{cluster=\"a\"} 99.5
put_count{cluster=\"a\"} 4
";
        assert_eq!(registry.render(), expected);
    }

    #[test]
    fn series_are_bounded() {
        let registry = Registry::new();
        for number in 0..SERIES_LIMIT + 5 {
            registry.counter("many_total", "Many.", &[("n", &number.to_string())]).increment();
        }
        let page = registry.render();
        assert_eq!(page.lines().count(), 2 + SERIES_LIMIT + 1);
        assert!(page.ends_with("many_total{overflow=\"true\"} 5\n"));
    }

    #[test]
    fn one_name_has_one_kind() {
        let registry = Registry::new();
        registry.counter("x", "", &[]).add(1);
        registry.gauge("x", "", &[]).set(9);
        assert_eq!(registry.render(), "# HELP x \n# TYPE x counter\nx 1\n");
    }
}
