//! Whatever is written is read back, for content that proptest makes up.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use bytes::BytesMut;
use proptest::prelude::*;
use protocol::frame::{self, MAX_FRAME_LENGTH};
use protocol::json;
use protocol::record::*;
use protocol::{Command, SerializeType};

fn host() -> impl Strategy<Value = SocketAddr> {
    (any::<IpAddr>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip, port))
}

prop_compose! {
    fn command()(
        code in any::<i16>(),
        version in any::<i16>(),
        opaque in any::<i32>(),
        flag in any::<i32>(),
        remark in prop::option::of(".{1,40}"),
        fields in prop::collection::btree_map(".{1,20}", ".{1,60}", 0..12),
        body in prop::collection::vec(any::<u8>(), 0..100),
        binary in any::<bool>(),
    ) -> Command {
        let mut command = Command::request(code.into()).with_body(body);
        command.version = version.into();
        command.opaque = opaque;
        command.flag = flag;
        command.remark = remark.map(Into::into);
        command.serialize = if binary { SerializeType::Binary } else { SerializeType::Json };
        for (key, value) in fields {
            command.fields.set(key, value);
        }
        command
    }
}

proptest! {
    #[test]
    fn frames(commands in prop::collection::vec(command(), 1..4), cut in any::<prop::sample::Index>()) {
        let mut wire = BytesMut::new();
        for command in &commands {
            command.encode(&mut wire);
        }
        // In two pieces, as a socket might deliver them.
        let rest = wire.split_off(cut.index(wire.len()));
        let mut read = Vec::new();
        for piece in [BytesMut::new(), rest] {
            wire.unsplit(piece);
            while let Some(command) = frame::decode(&mut wire, MAX_FRAME_LENGTH).unwrap() {
                read.push(command);
            }
        }
        prop_assert_eq!(read.len(), commands.len());
        for (read, sent) in read.iter().zip(&commands) {
            prop_assert_eq!((read.code, read.version, read.opaque, read.flag), (sent.code, sent.version, sent.opaque, sent.flag));
            prop_assert_eq!(&read.remark, &sent.remark);
            prop_assert_eq!(&read.body, &sent.body);
            prop_assert!(read.fields.iter().eq(sent.fields.iter()));
        }
    }

    #[test]
    fn stored_records(
        topic in "[a-zA-Z%_]{1,200}",
        body in prop::collection::vec(any::<u8>(), 0..200),
        properties in prop::collection::vec(any::<u8>(), 0..60),
        more_properties in prop::collection::vec(any::<u8>(), 0..60),
        numbers in any::<([i32; 4], [i64; 5])>(),
        (born_host, store_host) in (host(), host()),
        with_property_crc in any::<bool>(),
    ) {
        let ([queue_id, flag, sys_flag, reconsume_times], longs) = numbers;
        let [queue_offset, physical_offset, born_timestamp, store_timestamp, prepared_transaction_offset] = longs;
        let record = NewRecord {
            topic: &topic,
            queue_id,
            flag,
            sys_flag,
            queue_offset,
            physical_offset,
            born_timestamp,
            born_host,
            store_timestamp,
            store_host,
            reconsume_times,
            prepared_transaction_offset,
            body: &body,
            properties: &properties,
            more_properties: &more_properties,
            with_property_crc,
        };
        let mut out = Vec::new();
        let length = encode_record(&mut out, &record).unwrap();
        prop_assert_eq!(length, out.len());
        prop_assert_eq!(record_length(&record), Ok(length));
        if with_property_crc {
            patch_property_crc(&mut out);
            prop_assert!(property_crc_matches(&out));
        }
        let Scan::Record(view) = scan(&out, true) else { panic!("no record") };
        prop_assert_eq!((view.topic, view.body), (&topic[..], &body[..]));
        prop_assert_eq!([view.queue_id, view.flag, view.reconsume_times], [queue_id, flag, reconsume_times]);
        prop_assert_eq!(
            [view.queue_offset, view.physical_offset, view.born_timestamp, view.store_timestamp, view.prepared_transaction_offset],
            longs
        );
        prop_assert_eq!((view.born_host, view.store_host), (born_host, store_host));
        prop_assert!(view.properties.starts_with(&properties));
        // No cut of it is taken for a record.
        for cut in 0..out.len() {
            prop_assert!(!matches!(scan(&out[..cut], false), Scan::Record(_)));
        }
    }

    #[test]
    fn batches(items in prop::collection::vec((any::<i32>(), prop::collection::vec(any::<u8>(), 0..50), prop::collection::vec(any::<u8>(), 0..50)), 0..6)) {
        let items: Vec<_> = items.iter().map(|(flag, body, properties)| BatchItem { flag: *flag, body, properties }).collect();
        let mut body = Vec::new();
        for item in &items {
            encode_batch_item(&mut body, item).unwrap();
        }
        prop_assert_eq!(batch_items(&body).collect::<Result<Vec<_>, _>>(), Ok(items));
    }

    #[test]
    fn property_strings(pairs in prop::collection::btree_map("[^\u{1}\u{2}]{1,8}", "[^\u{2}]{1,8}", 0..8)) {
        let text = properties::from_pairs(pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())));
        for (key, value) in &pairs {
            prop_assert_eq!(properties::get(&text, key), Some(value.as_str()));
        }
        prop_assert_eq!(properties::iter(&text).count(), pairs.len());
    }

    #[test]
    fn json_tables(table in prop::collection::btree_map(any::<i64>(), prop::collection::btree_map(".{0,6}", any::<f64>(), 0..4), 0..5)) {
        for text in [json::to_legacy(&table), json::to_standard(&table), json::to_pretty(&table)] {
            let read: BTreeMap<i64, BTreeMap<String, f64>> = json::from_slice(&text).unwrap();
            prop_assert_eq!(&read, &table);
        }
        // The standard form is JSON for everybody.
        prop_assert!(serde_json::from_slice::<serde_json::Value>(&json::to_standard(&table)).is_ok());
    }
}
