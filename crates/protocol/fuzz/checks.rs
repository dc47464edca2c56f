//! What must hold for any bytes. Shared by the fuzz targets and the test over the saved corpus.
#![allow(dead_code)]

use bytes::{BufMut, BytesMut};
use protocol::body::*;
use protocol::frame::{self, MAX_FRAME_LENGTH};
use protocol::headers::*;
use protocol::json;
use protocol::record::*;
use protocol::{Command, ExtFields, Header};

/// A frame that is read can be written and read again, and says the same.
pub(crate) fn frame(data: &[u8]) {
    let mut input = BytesMut::from(data);
    while let Ok(Some(command)) = frame::decode(&mut input, MAX_FRAME_LENGTH) {
        let mut wire = BytesMut::new();
        command.encode(&mut wire);
        let again = frame::decode(&mut wire, MAX_FRAME_LENGTH).expect("written frames are read").expect("as a whole");
        assert_eq!(
            (again.code, again.flag, again.opaque, again.version, again.language.name()),
            (command.code, command.flag, command.opaque, command.version, command.language.name())
        );
        assert_eq!(again.remark.as_deref().unwrap_or_default(), command.remark.as_deref().unwrap_or_default());
        assert_eq!(again.body, command.body);
        assert!(again.fields.iter().eq(command.fields.iter()));
        assert!(wire.is_empty());
    }
}

/// Headers made of the bytes are refused, or read the same after they were written.
pub(crate) fn headers(data: &[u8]) {
    for mark in [0u32, 1] {
        let mut wire = BytesMut::new();
        wire.put_u32(4 + data.len() as u32);
        wire.put_u32(mark << 24 | data.len() as u32);
        wire.put_slice(data);
        let Ok(Some(command)) = frame::decode(&mut wire, MAX_FRAME_LENGTH) else { continue };
        again::<SendMessageRequest>(&command);
        again::<SendMessageRequestV2>(&command);
        again::<SendMessageResponse>(&command);
        again::<PullMessageRequest>(&command);
        again::<PullMessageResponse>(&command);
        again::<SearchOffsetRequest>(&command);
        again::<CreateTopicRequest>(&command);
        again::<RegisterBrokerRequest>(&command);
        again::<UnregisterClientRequest>(&command);
        again::<PopMessageRequest>(&command);
        if let Ok(hot) = hot::SendMessage::read(&command.fields) {
            let mut fields = ExtFields::default();
            hot.write(&mut fields);
            assert_eq!(hot::SendMessage::read(&fields), Ok(hot));
        }
        // The borrowed and the owned readers agree on what is readable.
        let owned = command.header::<PullMessageRequest>().is_ok();
        assert_eq!(hot::PullMessage::read(&command.fields).is_ok(), owned);
        let owned = command.header::<UpdateConsumerOffsetRequest>().is_ok();
        assert_eq!(hot::UpdateConsumerOffset::read(&command.fields).is_ok(), owned);
    }
}

fn again<H: Header + PartialEq + std::fmt::Debug>(command: &Command) {
    if let Ok(header) = command.header::<H>() {
        let mut fields = ExtFields::default();
        header.write(&mut fields);
        assert_eq!(H::read(&fields).as_ref(), Ok(&header));
    }
}

/// JSON is refused, or written so that it is read and written the same again.
pub(crate) fn bodies(data: &[u8]) {
    if let Ok(node) = json::parse_node(data) {
        node.to_value();
        let writers: [fn(&json::Node<'_>) -> Vec<u8>; 2] = [|node| json::to_legacy(node), |node| json::to_pretty(node)];
        for write in writers {
            let once = write(&node);
            let read = json::parse_node(&once).expect("what was written is read");
            assert_eq!(write(&read), once);
        }
        serde_json_reads(&json::to_standard(&node));
    }
    typed::<TopicConfigAndMappingSerializeWrapper>(data);
    typed::<HeartbeatData>(data);
    typed::<TopicRouteData>(data);
    typed::<SubscriptionGroupWrapper>(data);
    typed::<ConsumeStats>(data);
    typed::<ConsumerOffsetSerializeWrapper>(data);
    typed::<ConsumerRunningInfo>(data);
    for compressed in [false, true] {
        for version in [30, 400, 493] {
            if let Ok(body) = RegisterBrokerBody::decode(data, compressed, version, 1 << 16) {
                let plain = RegisterBrokerBody::decode(&body.encode(false), false, 493, 1 << 20);
                assert_eq!(plain.expect("what was written is read"), body);
            }
        }
    }
    if let Ok(line) = std::str::from_utf8(data)
        && let Some(topic) = TopicConfig::from_line(line)
    {
        TopicConfig::from_line(&topic.to_line()).expect("a line again");
    }
}

/// Standard JSON has no bare keys: the lenient reader then meets nothing but texts for keys.
fn serde_json_reads(text: &[u8]) {
    fn texts(node: &json::Node<'_>) -> bool {
        match node {
            json::Node::List(items) => items.iter().all(texts),
            json::Node::Map(members) => {
                members.iter().all(|(key, value)| matches!(key, json::Node::Text(_)) && texts(value))
            }
            _ => true,
        }
    }
    assert!(texts(&json::parse_node(text).expect("standard JSON is read")));
}

fn typed<T: serde_like::Body>(data: &[u8]) {
    if let Some(value) = T::read(data) {
        let text = value.write();
        assert_eq!(T::read(&text).expect("what was written is read").write(), text);
    }
}

/// Keeps serde out of the fuzz crate's own dependencies.
mod serde_like {
    use super::*;

    pub(crate) trait Body: Sized {
        fn read(text: &[u8]) -> Option<Self>;
        fn write(&self) -> Vec<u8>;
    }

    macro_rules! body {
        ($($ty:ty),*) => {$(
            impl Body for $ty {
                fn read(text: &[u8]) -> Option<Self> {
                    json::from_slice(text).ok()
                }
                fn write(&self) -> Vec<u8> {
                    json::to_legacy(self)
                }
            }
        )*};
    }
    body!(
        TopicConfigAndMappingSerializeWrapper,
        HeartbeatData,
        TopicRouteData,
        SubscriptionGroupWrapper,
        ConsumeStats,
        ConsumerOffsetSerializeWrapper,
        ConsumerRunningInfo
    );
}

/// Records are refused, or encode to the same bytes; batches and ids do not come to harm.
pub(crate) fn record(data: &[u8]) {
    if let Scan::Record(view) = scan(data, true) {
        assert!(view.body_crc_matches());
    }
    for view in records(data).flatten() {
        let record = NewRecord {
            topic: view.topic,
            queue_id: view.queue_id,
            flag: view.flag,
            sys_flag: view.sys_flag,
            queue_offset: view.queue_offset,
            physical_offset: 0,
            born_timestamp: view.born_timestamp,
            born_host: view.born_host,
            store_timestamp: 0,
            store_host: view.store_host,
            reconsume_times: view.reconsume_times,
            prepared_transaction_offset: view.prepared_transaction_offset,
            body: view.body,
            properties: view.properties,
            more_properties: b"",
            with_property_crc: false,
        };
        let mut out = Vec::new();
        encode_record(&mut out, &record).expect("what was stored can be stored");
        patch_physical_offset(&mut out, view.physical_offset);
        patch_store_timestamp(&mut out, view.store_timestamp);
        if view.bytes[..8] == out[..8] {
            out[8..12].copy_from_slice(&view.bytes[8..12]);
            assert_eq!(out, view.bytes);
        }
        property_crc_matches(view.bytes);
    }
    let mut again = Vec::new();
    for item in batch_items(data).flatten() {
        encode_batch_item(&mut again, &item).expect("what was read can be written");
    }
    assert_eq!(batch_items(&again).flatten().count(), batch_items(data).flatten().count());
    if let Ok(text) = std::str::from_utf8(data) {
        if let Some((host, offset)) = decode_message_id(text) {
            assert!(MessageId::new(host, offset).as_str().eq_ignore_ascii_case(text));
        }
        if let Some(key) = UniqueKey::parse(text) {
            assert!(key.to_string().eq_ignore_ascii_case(text));
        }
        java_hash(text);
    }
}

/// Properties can be set and deleted whatever the string looked like.
pub(crate) fn properties(data: &[u8]) {
    let others = |all: &[u8]| -> Vec<(Vec<u8>, Vec<u8>)> {
        let pairs = properties::iter(all).filter(|(key, _)| *key != b"KEYS");
        pairs.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
    };
    let before = others(data);
    let mut all = data.to_vec();
    properties::set(&mut all, "KEYS", "k\u{1}1");
    assert_eq!(properties::get(&all, "KEYS"), Some("k\u{1}1"));
    assert_eq!(others(&all), before);
    assert!(properties::delete(&mut all, "KEYS"));
    assert!(!properties::contains(&all, "KEYS"));
    assert_eq!(others(&all), before);
    properties::append(&mut all, "KEYS", "2");
    assert_eq!(properties::get(&all, "KEYS"), Some("2"));
}
