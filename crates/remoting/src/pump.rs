//! The connection loop: read, hand over every whole frame, write all that is ready; sleep when there is nothing.

use std::future::poll_fn;
use std::io::IoSlice;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::BytesMut;
use protocol::{VERSION_5_3_1, frame};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::{Instant, Sleep};

use crate::out::{SLICES, Segments};
use crate::{CloseReason, Connection, Reply, Service, buffer_pool};

/// A read of up to this many bytes is moved into memory of its own size, so that a command kept for long (a parked
/// pull) does not keep a whole read buffer.
const TIGHT_READ: usize = 4 * 1024;
/// How many batches one connection may have handled before others on the same thread get their turn.
const ROUNDS: u32 = 16;
/// The begin of a frame up to this many bytes waits for its end in memory of its own size.
const SMALL_PARTIAL: usize = 16 * 1024;

/// When more than the server's limit waits for peers that do not read, those that have not read for this long go.
const STALL_UNDER_PRESSURE: std::time::Duration = std::time::Duration::from_secs(1);

/// What all connections of a server or a client share.
#[derive(Debug)]
pub(crate) struct Side {
    /// Clients that understand it are told to go away.
    pub(crate) draining: AtomicBool,
    /// Bytes that wait for peers that do not read.
    held: AtomicUsize,
    held_limit: usize,
}

impl Side {
    pub(crate) fn new(held_limit: usize) -> Self {
        Self { draining: AtomicBool::new(false), held: AtomicUsize::new(0), held_limit }
    }

    fn under_pressure(&self) -> bool {
        self.held.load(Ordering::Relaxed) > self.held_limit
    }

    /// One connection's part changes.
    fn change(&self, part: &mut usize, now: usize) {
        if now >= *part {
            self.held.fetch_add(now - *part, Ordering::Relaxed);
        } else {
            self.held.fetch_sub(*part - now, Ordering::Relaxed);
        }
        *part = now;
    }
}

pub(crate) struct Pump<S: Service, IO> {
    conn: Connection,
    service: Arc<S>,
    io: IO,
    side: Arc<Side>,
    /// This connection's part in [`Side::held`].
    held: usize,
    /// What was read and is not handed over yet.
    input: BytesMut,
    /// Whole frames may be left in `input`, because the out buffer was full.
    more: bool,
    /// What is being written.
    writing: Segments,
    needs_flush: bool,
    /// Reading waits until the out buffer has drained.
    paused: bool,
    last_activity: Instant,
    blocked_since: Option<Instant>,
    timer: Pin<Box<Sleep>>,
}

impl<S: Service, IO: AsyncRead + AsyncWrite + Unpin> Pump<S, IO> {
    pub(crate) fn new(conn: Connection, service: Arc<S>, io: IO, side: Arc<Side>, input: BytesMut) -> Self {
        let now = Instant::now();
        let timer = Box::pin(tokio::time::sleep_until(now + conn.limits().idle));
        Self {
            conn,
            service,
            io,
            side,
            held: 0,
            more: !input.is_empty(),
            input,
            writing: Segments::default(),
            needs_flush: false,
            paused: false,
            last_activity: now,
            blocked_since: None,
            timer,
        }
    }

    /// Runs until the connection is over.
    pub(crate) async fn run(mut self) -> CloseReason {
        let why = poll_fn(|cx| self.poll(cx)).await;
        self.conn.finish(&why);
        self.side.change(&mut self.held, 0);
        // The FIN should follow what was written; whether the peer is still there does not matter.
        let _ = poll_fn(|cx| match Pin::new(&mut self.io).poll_shutdown(cx) {
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => Poll::Ready(Ok(())),
        })
        .await;
        why
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<CloseReason> {
        self.conn.with_out(|out| out.waker = None);
        let mut rounds = 0;
        loop {
            if let Err(why) = self.write(cx) {
                return Poll::Ready(why);
            }
            if let Some(why) = self.conn.with_out(|out| out.closing.clone()) {
                return Poll::Ready(why);
            }
            if rounds == ROUNDS {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            rounds += 1;
            if self.more && self.may_read() {
                if let Err(why) = self.process() {
                    return Poll::Ready(self.last_words(cx, why));
                }
                continue;
            }
            if self.may_read() {
                match self.read(cx) {
                    Poll::Ready(Ok(())) => continue,
                    Poll::Ready(Err(why)) => return Poll::Ready(why),
                    Poll::Pending => {}
                }
            }
            if let Some(why) = self.check_time(cx) {
                return Poll::Ready(why);
            }
            if self.park(cx) {
                return Poll::Pending;
            }
        }
    }

    /// After a bad frame: the answers to the good ones before it still go out if the kernel takes them.
    fn last_words(&mut self, cx: &mut Context<'_>, why: CloseReason) -> CloseReason {
        let _ = self.write(cx);
        why
    }

    /// Goes to sleep unless something was appended meanwhile.
    fn park(&mut self, cx: &Context<'_>) -> bool {
        let blocked = !self.writing.is_empty();
        let in_write = self.writing.bytes();
        if blocked || self.held > 0 {
            self.side.change(&mut self.held, if blocked { self.conn.queued_bytes() } else { 0 });
        }
        self.conn.with_out(|out| {
            out.in_write = in_write;
            if out.closing.is_some() || (!blocked && !out.segments.is_empty()) {
                return false;
            }
            out.blocked = blocked;
            out.waker = Some(cx.waker().clone());
            true
        })
    }

    /// Whether the out buffer has room for more answers; between the two marks it stays as it was.
    fn may_read(&mut self) -> bool {
        let queued = self.conn.queued_bytes();
        let limits = self.conn.limits();
        if self.paused {
            self.paused = queued > limits.out_low_bytes;
        } else {
            self.paused = queued > limits.out_high_bytes;
        }
        !self.paused
    }

    /// Writes until there is nothing left or the kernel takes no more.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), CloseReason> {
        loop {
            if self.writing.is_empty() {
                let writing = &mut self.writing;
                self.conn.with_out(|out| {
                    std::mem::swap(writing, &mut out.segments);
                    out.in_write = writing.bytes();
                    out.blocked = false;
                });
                if self.writing.is_empty() {
                    self.blocked_since = None;
                    return self.flush(cx);
                }
            }
            match self.poll_write(cx) {
                Poll::Ready(Ok(0)) => return Err(CloseReason::PeerClosed),
                Poll::Ready(Ok(count)) => {
                    self.writing.advance(count);
                    self.needs_flush = true;
                    self.blocked_since = None;
                }
                Poll::Ready(Err(error)) => return Err(CloseReason::io(&error)),
                Poll::Pending => {
                    if self.blocked_since.is_none() {
                        self.blocked_since = Some(Instant::now());
                    }
                    let in_write = self.writing.bytes();
                    self.conn.with_out(|out| out.in_write = in_write);
                    return Ok(());
                }
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<usize>> {
        let io = Pin::new(&mut self.io);
        if let Some(single) = self.writing.single() {
            return io.poll_write(cx, single);
        }
        let mut slices = [IoSlice::new(&[]); SLICES];
        let count = self.writing.slices(&mut slices);
        io.poll_write_vectored(cx, &slices[..count])
    }

    fn flush(&mut self, cx: &mut Context<'_>) -> Result<(), CloseReason> {
        if !self.needs_flush {
            return Ok(());
        }
        match Pin::new(&mut self.io).poll_flush(cx) {
            Poll::Ready(Ok(())) => {
                self.needs_flush = false;
                self.last_activity = Instant::now();
                Ok(())
            }
            Poll::Ready(Err(error)) => Err(CloseReason::io(&error)),
            Poll::Pending => Ok(()),
        }
    }

    /// One read and everything that follows from it.
    fn read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CloseReason>> {
        let mut buffer = self.read_buffer();
        let result = pin!(self.io.read_buf(&mut buffer)).poll(cx);
        match result {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(CloseReason::PeerClosed)),
            Poll::Ready(Ok(_)) => {
                self.last_activity = Instant::now();
                self.keep(buffer, TIGHT_READ);
                match self.process() {
                    Ok(()) => Poll::Ready(Ok(())),
                    Err(why) => Poll::Ready(Err(self.last_words(cx, why))),
                }
            }
            Poll::Ready(Err(error)) => {
                self.keep(buffer, SMALL_PARTIAL);
                Poll::Ready(Err(CloseReason::io(&error)))
            }
            Poll::Pending => {
                self.keep(buffer, SMALL_PARTIAL);
                Poll::Pending
            }
        }
    }

    /// A buffer with room, that begins with what is left of the last read.
    fn read_buffer(&mut self) -> BytesMut {
        if self.input.is_empty() {
            return buffer_pool::take_read();
        }
        if self.input.len() <= SMALL_PARTIAL {
            let mut buffer = buffer_pool::take_read();
            buffer.extend_from_slice(&self.input);
            self.input = BytesMut::new();
            return buffer;
        }
        // Double what is there, but never beyond the frame: a peer must send bytes to make us hold memory.
        let mut buffer = std::mem::take(&mut self.input);
        let missing = frame_length(&buffer).saturating_sub(buffer.len());
        buffer.reserve(missing.clamp(1, buffer.len().max(buffer_pool::READ_BYTES)));
        buffer
    }

    /// Keeps what was read as `input`, in memory of its own size when it is short.
    fn keep(&mut self, buffer: BytesMut, short: usize) {
        if buffer.len() > short {
            self.input = buffer;
            return;
        }
        if !buffer.is_empty() {
            self.input = BytesMut::from(&buffer[..]);
        }
        buffer_pool::give_read(buffer);
    }

    /// Hands over the frames in `input`, as one batch, while the out buffer has room.
    fn process(&mut self) -> Result<(), CloseReason> {
        let mut batch = S::Batch::default();
        let mut failed = None;
        let mut handed = 0usize;
        self.more = false;
        loop {
            match frame::decode(&mut self.input, self.conn.limits().frame_bytes) {
                Ok(Some(command)) => self.hand_over(&mut batch, command),
                Ok(None) => break,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
            handed += 1;
            if self.conn.queued_bytes() > self.conn.limits().out_high_bytes {
                self.more = true;
                break;
            }
        }
        if handed > 0 {
            self.service.end_batch(&self.conn, &mut batch);
        }
        drop(batch);
        let rest = std::mem::take(&mut self.input);
        if rest.len() > SMALL_PARTIAL || self.more {
            self.input = rest;
        } else {
            self.keep(rest, SMALL_PARTIAL);
        }
        match failed {
            Some(error) => Err(CloseReason::BadFrame(error)),
            None => Ok(()),
        }
    }

    fn hand_over(&self, batch: &mut S::Batch, command: protocol::Command) {
        if command.is_response() {
            if let Some(response) = self.conn.resolve(command) {
                self.service.unmatched(&self.conn, batch, response);
            }
            return;
        }
        let reply = Reply::new(&self.conn, &command);
        if self.side.draining.load(Ordering::Relaxed) && command.version > VERSION_5_3_1 {
            reply.go_away();
        } else if self.conn.unanswered() > self.conn.limits().unanswered {
            reply.overloaded();
        } else {
            self.service.call(&self.conn, batch, command, reply);
        }
    }

    /// Ends connections that are idle or stuck, and sees to it that this is looked at again in time.
    fn check_time(&mut self, cx: &mut Context<'_>) -> Option<CloseReason> {
        let limits = self.conn.limits();
        let idle_at = self.last_activity + limits.idle;
        let patience =
            if self.side.under_pressure() { limits.write_stall.min(STALL_UNDER_PRESSURE) } else { limits.write_stall };
        let stuck_at = self.blocked_since.map(|since| since + patience);
        let next = stuck_at.map_or(idle_at, |stuck| stuck.min(idle_at));
        if next < self.timer.deadline() {
            self.timer.as_mut().reset(next);
        }
        // A timer that fires early, because there was activity since, is set again; it costs nothing per message.
        while self.timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            if stuck_at.is_some_and(|at| at <= now) {
                return Some(CloseReason::SlowReader);
            }
            if idle_at <= now {
                return Some(CloseReason::Idle);
            }
            self.timer.as_mut().reset(next);
        }
        None
    }
}

/// The length of the frame that `input` begins with, its length field included; 4 when that is not known yet.
fn frame_length(input: &BytesMut) -> usize {
    input.first_chunk::<4>().map_or(4, |prefix| u32::from_be_bytes(*prefix) as usize + 4)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use protocol::Command;
    use tokio::io::{AsyncWriteExt, DuplexStream, ReadBuf};

    use super::*;
    use crate::NoFields;
    use crate::server::Limits;

    /// Counts the writes that reach the socket.
    struct Counting {
        stream: DuplexStream,
        writes: Arc<AtomicUsize>,
    }

    impl AsyncRead for Counting {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            into: &mut ReadBuf<'_>,
        ) -> Poll<std::io::Result<()>> {
            Pin::new(&mut self.stream).poll_read(cx, into)
        }
    }

    impl AsyncWrite for Counting {
        fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
            self.writes.fetch_add(1, Ordering::Relaxed);
            Pin::new(&mut self.stream).poll_write(cx, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
            Pin::new(&mut self.stream).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
            Pin::new(&mut self.stream).poll_shutdown(cx)
        }
    }

    /// Answers code 1 at once and code 2 with the end of the batch.
    struct Answering;

    impl Service for Answering {
        type Batch = Vec<Reply>;

        fn call(&self, _conn: &Connection, batch: &mut Vec<Reply>, request: Command, reply: Reply) {
            match request.code {
                1 => reply.send_parts(0, None, &NoFields, ()),
                _ => batch.push(reply),
            }
        }

        fn end_batch(&self, _conn: &Connection, batch: &mut Vec<Reply>) {
            batch.drain(..).for_each(|reply| reply.send(Command::response(0)));
        }
    }

    async fn answers(stream: &mut DuplexStream, count: usize) {
        let mut input = BytesMut::new();
        for _ in 0..count {
            while frame::decode(&mut input, 1024).unwrap().is_none() {
                assert!(stream.read_buf(&mut input).await.unwrap() > 0, "closed early");
            }
        }
    }

    #[tokio::test]
    async fn all_answers_of_one_read_leave_with_one_write() {
        let (mut near, far) = tokio::io::duplex(256 * 1024);
        let writes = Arc::new(AtomicUsize::new(0));
        let any = "127.0.0.1:1".parse().unwrap();
        let conn = Connection::new(any, any, Arc::new(Limits::default()));
        let io = Counting { stream: far, writes: writes.clone() };
        tokio::spawn(Pump::new(conn, Arc::new(Answering), io, Arc::new(Side::new(usize::MAX)), BytesMut::new()).run());
        for round in 1..=3 {
            let mut wire = BytesMut::new();
            for opaque in 0..64 {
                let mut command = Command::request(1 + opaque % 2);
                command.opaque = opaque;
                command.encode(&mut wire);
            }
            near.write_all(&wire).await.unwrap();
            answers(&mut near, 64).await;
            assert_eq!(writes.load(Ordering::Relaxed), round, "writes after {round} reads of 64 frames");
        }
    }
}
