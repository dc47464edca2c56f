//! GET_ROUTEINFO_BY_TOPIC.

use std::borrow::Cow;

use protocol::{Command, VERSION_4_9_4, response_code};
use remoting::Connection;

use super::Answer;
use crate::route_table::{Dialect, RouteForm};
use crate::shared::{ORDER_TOPIC_CONFIG, Shared};

/// Extension fields by which a client asks for the brokers of its own zone.
const ZONE_MODE: &str = "__ZONE_MODE";
pub(super) const ZONE_NAME: &str = "__ZONE_NAME";

/// What the request says, read in one pass: nothing else is asked as often.
#[derive(Default)]
struct Query<'a> {
    topic: Option<Cow<'a, str>>,
    standard_json: bool,
    zone_mode: bool,
    zone: Option<Cow<'a, str>>,
}

impl<'a> Query<'a> {
    fn read(request: &'a Command) -> Self {
        let mut query = Self::default();
        for (key, value) in request.fields.iter() {
            match key.as_ref() {
                "topic" => query.topic = Some(value),
                "acceptStandardJsonOnly" => query.standard_json = value.eq_ignore_ascii_case("true"),
                ZONE_MODE => query.zone_mode = value.eq_ignore_ascii_case("true"),
                ZONE_NAME => query.zone = Some(value),
                _ => {}
            }
        }
        query
    }

    fn zone(&self) -> Option<&str> {
        self.zone.as_deref().filter(|zone| self.zone_mode && !zone.trim().is_empty())
    }
}

pub(super) fn route(shared: &Shared, _: &Connection, request: &Command) -> Result<Answer, Answer> {
    let settings = shared.settings.load();
    let config = &settings.namesrv;
    if config.need_wait_for_service && shared.uptime().as_secs() < config.wait_seconds_for_service.into() {
        return Err(Answer::refuse(response_code::SYSTEM_ERROR, "name server not ready"));
    }
    let query = Query::read(request);
    let topic = query.topic.as_deref().unwrap_or("null");
    let order_conf = if config.order_message_enable { shared.kv.get(ORDER_TOPIC_CONFIG, topic) } else { None };
    let form = RouteForm {
        dialect: if request.version >= VERSION_4_9_4 || query.standard_json {
            Dialect::Standard
        } else {
            Dialect::Legacy
        },
        acting_master: config.support_acting_master,
        order_conf: order_conf.as_deref(),
        zone: query.zone(),
    };
    match shared.table.route(topic, &form) {
        Some(body) => Ok(Answer::body(body)),
        None => Err(unknown_topic(topic)),
    }
}

/// Java's words: clients show them, and some compare them.
fn unknown_topic(topic: &str) -> Answer {
    Answer::refuse(
        response_code::TOPIC_NOT_EXIST,
        format!(
            "No topic route info in name server for the topic: {topic}\n\
             See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
        ),
    )
}
