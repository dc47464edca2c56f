//! Threads for what may take milliseconds: registrations, long lists, files.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use parking_lot::Mutex;

type Job = Box<dyn FnOnce() + Send>;

/// How far the threads step back behind those that answer routes, when there are fewer processors than threads.
const NICENESS: i32 = 5;

/// Request bodies that may wait here, in bytes. How many requests wait is bounded by their lane.
const WAITING_BYTES: usize = 256 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Workers {
    jobs: mpsc::Sender<Job>,
    bytes: Arc<AtomicUsize>,
}

/// Room for one request's body, given back when dropped.
#[derive(Debug)]
pub(crate) struct Room {
    taken: usize,
    bytes: Arc<AtomicUsize>,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.bytes.fetch_sub(self.taken, Ordering::Relaxed);
    }
}

impl Workers {
    pub(crate) fn start(threads: usize) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        for at in 0..threads.max(1) {
            let queue = queue.clone();
            std::thread::Builder::new().name(format!("worker-{at}")).spawn(move || work(&queue))?;
        }
        Ok(Self { jobs, bytes: Arc::default() })
    }

    /// `None` when too much waits already.
    pub(crate) fn room(&self, body: usize) -> Option<Room> {
        let room = Room { taken: body, bytes: self.bytes.clone() };
        let before = self.bytes.fetch_add(body, Ordering::Relaxed);
        (before == 0 || before + body <= WAITING_BYTES).then_some(room)
    }

    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) {
        // The threads live as long as this sender.
        let _ = self.jobs.send(Box::new(job));
    }
}

fn work(queue: &Mutex<mpsc::Receiver<Job>>) {
    // On Linux this is the thread's own; where it is not allowed, nothing is lost but the order.
    let _ = rustix::process::nice(NICENESS);
    loop {
        let job = queue.lock().recv();
        let Ok(job) = job else {
            return;
        };
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("a request failed in an unforeseen way; it stays unanswered");
        }
    }
}
