//! Finding single messages: QUERY_MESSAGE (12) by key, VIEW_MESSAGE_BY_ID (33) by place in the commit log.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use protocol::headers::{QueryMessageRequest, QueryMessageResponse, ViewMessageRequest};
use protocol::record::RecordView;
use protocol::{Command, response_code as code};

use crate::broker::Broker;
use crate::context::{Answer, Context, Refusal};

/// The mark of a query for a unique key, of which one message is wanted whatever number is asked for.
const UNIQUE_KEY_QUERY: &str = "_UNIQUE_KEY_QUERY";

/// Answers with whole records, oldest first. Messages whose keys merely share a hash are among them; clients look again.
pub fn query_message(broker: &Arc<Broker>, _context: &Context<'_>, request: &Command) -> Answer {
    let header: QueryMessageRequest = request.header()?;
    let unique = request.fields.get(UNIQUE_KEY_QUERY).is_some_and(|text| text == "true");
    let most = if unique { broker.store_config().default_query_max_num as i32 } else { header.max_num };
    let most = usize::try_from(most).unwrap_or(0);
    let (begin, end) = (header.begin_timestamp, header.end_timestamp);
    let found = match header.index_type.as_deref() {
        Some("T") => broker.store.query_tags(&header.topic, &header.key, most, begin, end),
        // Keys and unique keys stand side by side.
        _ => broker.store.query_key(&header.topic, &header.key, most, begin, end),
    };
    let fields = QueryMessageResponse {
        index_last_update_timestamp: found.index_last_update_timestamp,
        index_last_update_phyoffset: found.index_last_update_physical_offset as i64,
    };
    if found.messages.is_empty() {
        let remark = "can not find message, maybe time range not correct";
        return Ok(Command::response(code::QUERY_NOT_FOUND).with_remark(remark).with_header(&fields));
    }
    Ok(Command::response(code::SUCCESS).with_header(&fields).with_body(joined(found.messages)))
}

/// Answers with the record that starts at the given place.
pub fn view_message(broker: &Arc<Broker>, _context: &Context<'_>, request: &Command) -> Answer {
    let header: ViewMessageRequest = request.header()?;
    let bytes = u64::try_from(header.offset).ok().and_then(|offset| broker.store.record_at(offset));
    match bytes.filter(|bytes| RecordView::parse(bytes).is_ok()) {
        Some(bytes) => Ok(Command::response(code::SUCCESS).with_body(bytes)),
        None => Err(Refusal::system(format!("can not find message by the offset, {}", header.offset))),
    }
}

fn joined(messages: Vec<Bytes>) -> Bytes {
    let mut body = BytesMut::with_capacity(messages.iter().map(Bytes::len).sum());
    messages.iter().for_each(|message| body.extend_from_slice(message));
    body.freeze()
}
