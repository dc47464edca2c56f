//! Typed headers: what is required, what defaults, and that the borrowed readers agree with the owned ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use bytes::BytesMut;
use protocol::frame::{self, MAX_FRAME_LENGTH};
use protocol::headers::*;
use protocol::{Command, ExtFields, HeaderError, SerializeType, request_code as code};

fn received(mut command: Command, serialize: SerializeType) -> Command {
    command.serialize = serialize;
    let mut wire = BytesMut::new();
    command.encode(&mut wire);
    frame::decode(&mut wire, MAX_FRAME_LENGTH).unwrap().unwrap()
}

fn send() -> SendMessageRequest {
    SendMessageRequest {
        producer_group: "group".into(),
        topic: "topic \"quoted\"".into(),
        default_topic: "TBW102".into(),
        queue_id: 3,
        sys_flag: 4,
        born_timestamp: 1_700_000_000_000,
        flag: -1,
        properties: Some("KEYS\u{1}k\u{2}TAGS\u{1}标签\u{2}".into()),
        reconsume_times: Some(0),
        ..SendMessageRequest::default()
    }
}

#[test]
fn long_and_short_send_headers_read_alike() {
    let long = send();
    let short = SendMessageRequestV2::from(long.clone());
    for serialize in [SerializeType::Json, SerializeType::Binary] {
        let as_long = received(Command::request(code::SEND_MESSAGE).with_header(&long), serialize);
        let as_short = received(Command::request(code::SEND_MESSAGE_V2).with_header(&short), serialize);
        assert_eq!(as_long.header::<SendMessageRequest>().unwrap(), long);
        assert_eq!(as_short.header::<SendMessageRequestV2>().unwrap(), short);
        assert_eq!(SendMessageRequest::from(short.clone()), long);
        let hot = hot::SendMessage::read(&as_long.fields).unwrap();
        assert_eq!(hot, hot::SendMessage::read(&as_short.fields).unwrap());
        assert_eq!(hot.properties.as_deref(), long.properties.as_deref());
        assert_eq!((hot.queue_id, hot.flag, hot.default_topic_queue_nums), (3, -1, 4));
        let mut written = ExtFields::default();
        hot.write(&mut written);
        assert_eq!(hot::SendMessage::read(&written).unwrap(), hot);
    }
}

#[test]
fn missing_and_unreadable_fields_are_named() {
    let fields = Command::request(11).with_field("consumerGroup", "g").with_field("queueId", "x").fields;
    let wrong = HeaderError::Invalid { field: "queueId", value: "x".into() };
    assert_eq!(hot::PullMessage::read(&fields), Err(wrong.clone()));
    assert_eq!(Command { fields, ..Command::request(11) }.header::<PullMessageRequest>(), Err(wrong));
    let empty = ExtFields::default();
    assert_eq!(hot::UpdateConsumerOffset::read(&empty), Err(HeaderError::Missing("consumerGroup")));
    assert_eq!(Command::request(105).header::<GetRouteInfoRequest>(), Err(HeaderError::Missing("topic")));
}

#[test]
fn old_senders_leave_fields_out() {
    let all = Command::request(code::GET_ALL_TOPIC_CONFIG).header::<GetAllTopicConfigRequest>().unwrap();
    assert_eq!(all.topic_seq, None);
    let query =
        Command::request(14).with_field("consumerGroup", "g").with_field("topic", "t").with_field("queueId", "1");
    assert!(query.header::<QueryConsumerOffsetRequest>().unwrap().set_zero_if_not_found);
    let search = Command::request(29)
        .with_field("topic", "t")
        .with_field("queueId", "1")
        .with_field("timestamp", "5")
        .with_field("boundaryType", "upper");
    assert_eq!(search.header::<SearchOffsetRequest>().unwrap().boundary_type, BoundaryType::Upper);
    assert_eq!(GetMaxOffsetRequest::default(), GetMaxOffsetRequest { topic: "".into(), queue_id: 0, committed: true });
}
