//! The requests a name server answers, one file per family; this one holds the table of them all.

mod brokers;
mod config;
mod json_in;
mod kv;
mod perms;
pub mod registration_body;
mod route;
mod topics;

use std::borrow::Cow;

use bytes::Bytes;
use protocol::request_code as code;
use protocol::{Command, Header, HeaderError, response_code};
use remoting::{Body, Connection, FieldWriter, Reply};

use crate::shared::Shared;

/// The answer to one request, before it is encoded.
#[derive(Debug)]
pub(crate) struct Answer {
    code: i32,
    remark: Option<Cow<'static, str>>,
    fields: Vec<(&'static str, String)>,
    body: Body,
}

impl Answer {
    fn success() -> Self {
        Self { code: response_code::SUCCESS, remark: None, fields: Vec::new(), body: Body::Empty }
    }

    fn body(body: impl Into<Bytes>) -> Self {
        Self { body: Body::One(body.into()), ..Self::success() }
    }

    fn header(header: &impl Header) -> Self {
        let mut fields = CollectedFields(Vec::new());
        header.write(&mut fields);
        Self { fields: fields.0, ..Self::success() }
    }

    fn refuse(code: i32, remark: impl Into<Cow<'static, str>>) -> Self {
        Self { code, remark: Some(remark.into()), ..Self::success() }
    }

    pub(crate) fn send(self, reply: Reply) {
        let fields = |out: &mut FieldWriter<'_>| self.fields.iter().for_each(|(key, value)| out.pair(key, value));
        reply.send_parts(self.code, self.remark.as_deref(), &fields, self.body);
    }
}

/// A header that cannot be read is a system error, as any exception of a Java processor is.
impl From<HeaderError> for Answer {
    fn from(error: HeaderError) -> Self {
        Self::refuse(response_code::SYSTEM_ERROR, error.to_string())
    }
}

struct CollectedFields(Vec<(&'static str, String)>);

impl protocol::FieldSink for CollectedFields {
    fn text(&mut self, key: &'static str, value: &str) {
        self.0.push((key, value.to_owned()));
    }

    fn int(&mut self, key: &'static str, value: i64) {
        self.0.push((key, value.to_string()));
    }
}

/// Which limit a request counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Route queries: registrations must not hold them up, nor the other way round.
    ClientRequest,
    Default,
}

/// Where a handler runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the connection's own task: it takes microseconds.
    Inline,
    /// On a worker thread: it may take milliseconds, wait for a registration or write a file.
    Worker,
}

type Handler = fn(&Shared, &Connection, &Command) -> Result<Answer, Answer>;

#[derive(Debug)]
pub(crate) struct Row {
    pub code: i32,
    pub name: &'static str,
    pub lane: Lane,
    pub place: Place,
    pub handler: Handler,
}

const fn inline(code: i32, name: &'static str, handler: Handler) -> Row {
    Row { code, name, lane: Lane::Default, place: Place::Inline, handler }
}

const fn worker(code: i32, name: &'static str, handler: Handler) -> Row {
    Row { code, name, lane: Lane::Default, place: Place::Worker, handler }
}

/// Every request, by ascending code.
pub(crate) static TABLE: [Row; 23] = [
    worker(code::PUT_KV_CONFIG, "PUT_KV_CONFIG", kv::put),
    inline(code::GET_KV_CONFIG, "GET_KV_CONFIG", kv::get),
    worker(code::DELETE_KV_CONFIG, "DELETE_KV_CONFIG", kv::delete),
    worker(code::REGISTER_BROKER, "REGISTER_BROKER", brokers::register),
    inline(code::UNREGISTER_BROKER, "UNREGISTER_BROKER", brokers::unregister),
    Row {
        code: code::GET_ROUTEINFO_BY_TOPIC,
        name: "GET_ROUTEINFO_BY_TOPIC",
        lane: Lane::ClientRequest,
        place: Place::Inline,
        handler: route::route,
    },
    inline(code::GET_BROKER_CLUSTER_INFO, "GET_BROKER_CLUSTER_INFO", brokers::cluster_info),
    worker(code::WIPE_WRITE_PERM_OF_BROKER, "WIPE_WRITE_PERM_OF_BROKER", perms::wipe),
    worker(code::GET_ALL_TOPIC_LIST_FROM_NAMESERVER, "GET_ALL_TOPIC_LIST_FROM_NAMESERVER", topics::all),
    worker(code::DELETE_TOPIC_IN_NAMESRV, "DELETE_TOPIC_IN_NAMESRV", topics::delete),
    worker(code::REGISTER_TOPIC_IN_NAMESRV, "REGISTER_TOPIC_IN_NAMESRV", topics::register),
    inline(code::GET_KVLIST_BY_NAMESPACE, "GET_KVLIST_BY_NAMESPACE", kv::list),
    worker(code::GET_TOPICS_BY_CLUSTER, "GET_TOPICS_BY_CLUSTER", topics::of_cluster),
    inline(code::GET_SYSTEM_TOPIC_LIST_FROM_NS, "GET_SYSTEM_TOPIC_LIST_FROM_NS", topics::system),
    worker(code::GET_UNIT_TOPIC_LIST, "GET_UNIT_TOPIC_LIST", topics::unit),
    worker(code::GET_HAS_UNIT_SUB_TOPIC_LIST, "GET_HAS_UNIT_SUB_TOPIC_LIST", topics::unit_sub),
    worker(code::GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, "GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST", topics::unit_sub_only),
    worker(code::UPDATE_NAMESRV_CONFIG, "UPDATE_NAMESRV_CONFIG", config::update),
    inline(code::GET_NAMESRV_CONFIG, "GET_NAMESRV_CONFIG", config::get),
    inline(code::QUERY_DATA_VERSION, "QUERY_DATA_VERSION", brokers::query_data_version),
    worker(code::ADD_WRITE_PERM_OF_BROKER, "ADD_WRITE_PERM_OF_BROKER", perms::add),
    inline(code::GET_BROKER_MEMBER_GROUP, "GET_BROKER_MEMBER_GROUP", brokers::member_group),
    inline(code::BROKER_HEARTBEAT, "BROKER_HEARTBEAT", brokers::heartbeat),
];

/// The row of a code, with its place in [`TABLE`].
pub(crate) fn find(code: i32) -> Option<(usize, &'static Row)> {
    let at = TABLE.binary_search_by_key(&code, |row| row.code).ok()?;
    TABLE.get(at).map(|row| (at, row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_can_be_found() {
        for row in &TABLE {
            assert_eq!(find(row.code).map(|(_, found)| found.name), Some(row.name));
        }
        assert!(find(107).is_none());
    }
}
