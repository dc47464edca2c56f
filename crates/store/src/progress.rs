//! Says how far something long has got: nothing for what is quick, then a line every two seconds.

use std::sync::Arc;
use std::time::{Duration, Instant};

/// Work that takes longer than this is talked about, this often.
const EVERY: Duration = Duration::from_secs(2);

/// Where lines of progress go besides the log: an operator's screen.
pub type Screen = Arc<dyn Fn(&str) + Send + Sync>;

/// One piece of work that may take long.
pub(crate) struct Report {
    screen: Option<Screen>,
    began: Instant,
    next: Instant,
    spoke: bool,
}

impl Report {
    pub(crate) fn new(screen: Option<Screen>) -> Self {
        let began = Instant::now();
        Report { screen, began, next: began + EVERY, spoke: false }
    }

    /// Reads the clock, so it is not for every message. `line` is asked for only when it is time to say something.
    pub(crate) fn tick(&mut self, line: impl FnOnce() -> String) {
        let now = Instant::now();
        if now >= self.next {
            self.next = now + EVERY;
            self.spoke = true;
            self.say(&line());
        }
    }

    /// The end of work that was talked about.
    pub(crate) fn done(&self, line: impl FnOnce() -> String) {
        if self.spoke {
            self.say(&line());
        }
    }

    fn say(&self, line: &str) {
        let seconds = self.began.elapsed().as_secs();
        tracing::info!(seconds, "{line}");
        if let Some(screen) = &self.screen {
            screen(&format!("{line} ({seconds} s)"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_work_is_silent_and_long_work_speaks() {
        let lines: Arc<parking_lot::Mutex<Vec<String>>> = Arc::default();
        let heard = lines.clone();
        let mut report = Report::new(Some(Arc::new(move |line: &str| heard.lock().push(line.to_owned()))));
        report.tick(|| "one".into());
        report.done(|| "over".into());
        assert_eq!(*lines.lock(), Vec::<String>::new());
        report.next = Instant::now();
        report.tick(|| "two".into());
        report.tick(|| "three".into());
        report.done(|| "over".into());
        let lines = lines.lock();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("two (") && lines[1].starts_with("over ("), "{lines:?}");
    }
}
