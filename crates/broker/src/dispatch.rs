//! Every request code the broker serves: which lane it waits in and who answers it. Anything else is answered 3.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use protocol::{Command, request_code as code, response_code};
use remoting::{CloseReason, Connection, Lane, LanePermit, Reply, Service};

use crate::batch::Batch;
use crate::broker::Broker;
use crate::context::{Answer, Context, into_command};

/// Requests of one lane share a limit of how many may be under way; the others do not suffer when it is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneId {
    Send,
    Pull,
    Query,
    Client,
    Heartbeat,
    Consumer,
    Admin,
}

const LANE_COUNT: usize = 7;

/// Who answers.
#[derive(Clone, Copy)]
pub enum Handler {
    /// Answers at once and never waits for a disk, a lock held long or another server.
    Inline(fn(&Arc<Broker>, &Context<'_>, &Command) -> Answer),
    /// May wait: runs on a thread of its own.
    Blocking(fn(&Arc<Broker>, &Context<'_>, &Command) -> Answer),
    /// Answers through the reply, now, at the end of the batch, or much later.
    Deferred(fn(&Arc<Broker>, &Connection, &mut Batch, Command, Reply)),
}

/// One served request code.
pub struct Row {
    pub code: i32,
    pub lane: LaneId,
    pub handler: Handler,
}

const fn row(code: i32, lane: LaneId, handler: Handler) -> Row {
    Row { code, lane, handler }
}

#[allow(unused_imports)]
use Handler::{Blocking, Deferred, Inline};
#[allow(unused_imports)]
use LaneId::{Admin, Client, Consumer, Heartbeat, Pull, Query, Send as SendLane};

/// Sorted by code: it is searched by halves.
pub const TABLE: &[Row] = &[
];

fn find(code: i32) -> Option<&'static Row> {
    TABLE.binary_search_by_key(&code, |row| row.code).ok().and_then(|at| TABLE.get(at))
}

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// How many requests of each lane may be under way. Java's queue capacities.
#[derive(Debug, Clone, Copy)]
pub struct LaneLimits {
    pub send: usize,
    pub pull: usize,
    pub query: usize,
    pub client: usize,
    pub heartbeat: usize,
    pub consumer: usize,
    pub admin: usize,
}

/// The lanes of one broker.
pub struct Lanes([Lane; LANE_COUNT]);

impl Lanes {
    pub fn new(limits: LaneLimits) -> Self {
        Self([
            Lane::new("send", limits.send),
            Lane::new("pull", limits.pull),
            Lane::new("query", limits.query),
            Lane::new("client", limits.client),
            Lane::new("heartbeat", limits.heartbeat),
            Lane::new("consumer", limits.consumer),
            Lane::new("admin", limits.admin),
        ])
    }

    pub fn lane(&self, id: LaneId) -> &Lane {
        &self.0[id as usize]
    }

    pub fn try_enter(&self, id: LaneId) -> Option<LanePermit> {
        self.lane(id).try_enter()
    }
}

/// The broker as the remoting server sees it.
pub struct BrokerService(pub Arc<Broker>);

impl Service for BrokerService {
    type Batch = Batch;

    fn call(&self, conn: &Connection, batch: &mut Batch, request: Command, mut reply: Reply) {
        let broker = &self.0;
        let Some(row) = find(request.code) else {
            let remark = format!(" request type {} not supported", request.code);
            return reply.send(Command::response(response_code::REQUEST_CODE_NOT_SUPPORTED).with_remark(remark));
        };
        let Some(permit) = broker.lanes.try_enter(row.lane) else {
            let busy = "[OVERLOAD]system busy, start flow control for a while";
            return reply.send(Command::response(response_code::SYSTEM_BUSY).with_remark(busy));
        };
        reply.hold(permit);
        match row.handler {
            Inline(handler) => {
                let answer = handler(broker, &Context { conn, now: now_ms() }, &request);
                reply.send(into_command(answer));
            }
            Blocking(handler) => {
                let (broker, conn) = (broker.clone(), conn.clone());
                tokio::task::spawn_blocking(move || {
                    let answer = handler(&broker, &Context { conn: &conn, now: now_ms() }, &request);
                    reply.send(into_command(answer));
                });
            }
            Deferred(handler) => handler(broker, conn, batch, request, reply),
        }
    }

    fn end_batch(&self, conn: &Connection, batch: &mut Batch) {
        batch.end(&self.0, conn);
    }

    fn disconnected(&self, conn: &Connection, why: CloseReason) {
        let _ = why;
        self.0.connection_closed(conn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_has_no_code_twice() {
        assert!(TABLE.windows(2).all(|pair| pair[0].code < pair[1].code));
        let _ = code::SEND_MESSAGE;
    }
}
