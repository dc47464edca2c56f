//! A connection as everybody but its own task sees it.

use std::any::Any;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use parking_lot::Mutex;
use protocol::Command;
use tokio::sync::oneshot;

use crate::out::{Out, Segments};
use crate::server::Limits;
use crate::{CallError, CloseReason};

/// A handle to one connection; cheap to clone. It does not keep the connection open.
#[derive(Clone)]
pub struct Connection {
    inner: Arc<Inner>,
}

struct Inner {
    id: u64,
    remote: SocketAddr,
    local: SocketAddr,
    limits: Arc<Limits>,
    out: Mutex<Out>,
    /// Bytes appended and not yet taken by the kernel; a copy of what `out` knows, to be read without its lock.
    queued: AtomicUsize,
    open: AtomicBool,
    next_opaque: AtomicI32,
    pending: Mutex<HashMap<i32, oneshot::Sender<Result<Command, CloseReason>>>>,
    /// Requests of the peer that hold a `Reply`.
    unanswered: AtomicUsize,
    attributes: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Connection#{} {}", self.inner.id, self.inner.remote)
    }
}

impl PartialEq for Connection {
    fn eq(&self, other: &Self) -> bool {
        self.inner.id == other.inner.id
    }
}

impl Eq for Connection {}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Connection {
    pub(crate) fn new(remote: SocketAddr, local: SocketAddr, limits: Arc<Limits>) -> Self {
        Self {
            inner: Arc::new(Inner {
                id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
                remote,
                local,
                limits,
                out: Mutex::new(Out::default()),
                queued: AtomicUsize::new(0),
                open: AtomicBool::new(true),
                next_opaque: AtomicI32::new(0),
                pending: Mutex::new(HashMap::new()),
                unanswered: AtomicUsize::new(0),
                attributes: Mutex::new(Vec::new()),
            }),
        }
    }

    /// Unique in this process, never used again.
    pub fn id(&self) -> u64 {
        self.inner.id
    }

    /// The peer's address, as the PROXY protocol told it if it was spoken.
    pub fn remote_addr(&self) -> SocketAddr {
        self.inner.remote
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.inner.local
    }

    pub fn is_open(&self) -> bool {
        self.inner.open.load(Ordering::Acquire)
    }

    /// Requests of the peer that are not answered yet.
    pub fn unanswered(&self) -> usize {
        self.inner.unanswered.load(Ordering::Relaxed)
    }

    /// Bytes that wait for the peer to read them.
    pub fn queued_bytes(&self) -> usize {
        self.inner.queued.load(Ordering::Relaxed)
    }

    /// Closes the connection. What was appended before is offered to the kernel once. The first reason counts.
    pub fn close(&self, why: CloseReason) {
        self.inner.open.store(false, Ordering::Release);
        let waker = {
            let mut out = self.inner.out.lock();
            out.closing.get_or_insert(why);
            out.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Sends a request that wants no answer. `false` when the connection is closed; a full connection is closed too.
    pub fn send_oneway(&self, mut request: Command) -> bool {
        request.opaque = self.next_opaque();
        request.mark_oneway();
        self.send_frame(&request)
    }

    /// Asks the peer. Requests of both directions have their own opaques.
    pub async fn request(&self, mut request: Command, timeout: Duration) -> Result<Command, CallError> {
        request.opaque = self.next_opaque();
        let (sender, receiver) = oneshot::channel();
        let _waiting = self.wait_for(request.opaque, sender)?;
        if !self.send_frame(&request) {
            return Err(self.lost(self.why_closed()));
        }
        match tokio::time::timeout(timeout, receiver).await {
            Ok(Ok(Ok(response))) => Ok(response),
            Ok(Ok(Err(why))) => Err(self.lost(why)),
            Ok(Err(_)) => Err(self.lost(self.why_closed())),
            Err(_) => Err(CallError::Timeout { addr: self.inner.remote.to_string(), after: timeout }),
        }
    }

    /// Appends frames built by the caller, which keeps its own table of opaques; see [`crate::Service::unmatched`].
    /// `false` when the connection is closed.
    pub fn send_encoded(&self, write: impl FnOnce(&mut BytesMut)) -> bool {
        self.append(|segments| segments.write(write))
    }

    /// Sets the attribute of type `T`, replacing an earlier one.
    pub fn set<T: Any + Send + Sync>(&self, value: T) {
        let value: Arc<dyn Any + Send + Sync> = Arc::new(value);
        let mut list = self.inner.attributes.lock();
        match list.iter_mut().find(|known| known.is::<T>()) {
            Some(slot) => *slot = value,
            None => list.push(value),
        }
    }

    /// The attribute of type `T`.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let list = self.inner.attributes.lock();
        list.iter().find(|known| known.is::<T>()).and_then(|found| found.clone().downcast().ok())
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    pub(crate) fn next_opaque(&self) -> i32 {
        self.inner.next_opaque.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn enter(&self) {
        self.inner.unanswered.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.inner.unanswered.fetch_sub(1, Ordering::Relaxed);
    }

    /// Appends one frame; a long body is not copied.
    pub(crate) fn send_frame(&self, command: &Command) -> bool {
        self.append(|segments| {
            segments.write(|out| command.encode_head(out));
            segments.push_body(command.body.clone().into());
        })
    }

    /// Appends to the out buffer and ends the task's sleep, if it sleeps.
    pub(crate) fn append(&self, write: impl FnOnce(&mut Segments)) -> bool {
        let waker = {
            let mut out = self.inner.out.lock();
            if out.closed || out.closing.is_some() {
                return false;
            }
            write(&mut out.segments);
            let queued = out.segments.bytes() + out.in_write;
            self.inner.queued.store(queued, Ordering::Relaxed);
            if queued > self.inner.limits.out_max_bytes {
                self.inner.open.store(false, Ordering::Release);
                out.closing = Some(CloseReason::SlowReader);
                out.waker.take()
            } else if out.blocked {
                None
            } else {
                out.waker.take()
            }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Gives several answers from outside of the connection's task: it sleeps until the last one is there, so that they leave with
    /// one write and not each with its own.
    pub fn answer_together(&self, give: impl FnOnce()) {
        let waker = self.inner.out.lock().waker.take();
        give();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// For the connection's task: the state behind the lock, with the copy of its byte count kept right.
    pub(crate) fn with_out<R>(&self, change: impl FnOnce(&mut Out) -> R) -> R {
        let mut out = self.inner.out.lock();
        let result = change(&mut out);
        self.inner.queued.store(out.segments.bytes() + out.in_write, Ordering::Relaxed);
        result
    }

    /// Hands a response to whoever asked; gives it back when nobody did.
    pub(crate) fn resolve(&self, response: Command) -> Option<Command> {
        let waiting = self.inner.pending.lock().remove(&response.opaque);
        match waiting {
            Some(sender) => {
                // The asker may have gone away in this moment; then nobody misses the response.
                let _ = sender.send(Ok(response));
                None
            }
            None => Some(response),
        }
    }

    /// The task has ended: nothing goes in or out any more.
    pub(crate) fn finish(&self, why: &CloseReason) {
        self.inner.open.store(false, Ordering::Release);
        self.with_out(|out| {
            *out = Out { closed: true, closing: Some(why.clone()), ..Out::default() };
        });
        let pending = std::mem::take(&mut *self.inner.pending.lock());
        for (_, sender) in pending {
            let _ = sender.send(Err(why.clone()));
        }
    }

    fn wait_for(
        &self,
        opaque: i32,
        sender: oneshot::Sender<Result<Command, CloseReason>>,
    ) -> Result<Waiting<'_>, CallError> {
        let mut pending = self.inner.pending.lock();
        if pending.len() >= self.inner.limits.pending_requests {
            return Err(CallError::TooManyPending { addr: self.inner.remote.to_string() });
        }
        match pending.entry(opaque) {
            // Only after 2^32 further requests; the older one keeps its place.
            Entry::Occupied(_) => Err(CallError::TooManyPending { addr: self.inner.remote.to_string() }),
            Entry::Vacant(slot) => {
                slot.insert(sender);
                Ok(Waiting { conn: self, opaque })
            }
        }
    }

    fn why_closed(&self) -> CloseReason {
        self.inner.out.lock().closing.clone().unwrap_or(CloseReason::PeerClosed)
    }

    fn lost(&self, why: CloseReason) -> CallError {
        CallError::Closed { addr: self.inner.remote.to_string(), why }
    }
}

/// Takes the entry out of the table however the wait ends.
struct Waiting<'a> {
    conn: &'a Connection,
    opaque: i32,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.conn.inner.pending.lock().remove(&self.opaque);
    }
}
