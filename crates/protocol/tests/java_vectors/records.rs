//! Stored records and batches.

use protocol::record::*;
use serde_json::Value;

use crate::primitives::{address, property_map};
use crate::{Vector, hex, vectors};

fn compare(name: &str, view: &RecordView<'_>, expect: &Value) {
    for (what, found) in [
        ("totalSize", view.size() as i64),
        ("queueId", view.queue_id.into()),
        ("bodyCrc", view.body_crc.into()),
        ("flag", view.flag.into()),
        ("queueOffset", view.queue_offset),
        ("physicalOffset", view.physical_offset),
        ("sysFlag", view.sys_flag.into()),
        ("bornTimestamp", view.born_timestamp),
        ("storeTimestamp", view.store_timestamp),
        ("reconsumeTimes", view.reconsume_times.into()),
        ("preparedTransactionOffset", view.prepared_transaction_offset),
    ] {
        assert_eq!(expect[what], found, "{name}: {what}");
    }
    assert_eq!(view.born_host, address(&expect["bornHost"]), "{name}");
    assert_eq!(view.store_host, address(&expect["storeHost"]), "{name}");
    assert_eq!(expect["topic"], view.topic, "{name}");
    assert_eq!(view.body, hex(expect["body"].as_str().unwrap()), "{name}");
    assert_eq!(property_map(view.properties), serde_json::from_value(expect["properties"].clone()).unwrap(), "{name}");
    assert_eq!(expect["msgId"], MessageId::new(view.store_host, view.physical_offset).as_str(), "{name}");
}

/// The view's content as a message to be stored again, its offsets and store time to be patched in.
fn again<'a>(view: &RecordView<'a>) -> NewRecord<'a> {
    NewRecord {
        topic: view.topic,
        queue_id: view.queue_id,
        flag: view.flag,
        sys_flag: view.sys_flag,
        queue_offset: 0,
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
    }
}

fn encoded(record: &NewRecord<'_>, like: &RecordView<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    assert_eq!(encode_record(&mut out, record), Ok(like.size()));
    patch_queue_offset(&mut out, like.queue_offset);
    patch_physical_offset(&mut out, like.physical_offset);
    patch_store_timestamp(&mut out, like.store_timestamp);
    if record.with_property_crc {
        patch_property_crc(&mut out);
    }
    out
}

fn one(vector: &Vector) {
    let (name, bytes, expect) = (&vector.name, vector.bytes(), vector.expect());
    // The client's own encoder leaves the checksum out.
    let without_crc = name.starts_with("client/");
    let view = match scan(&bytes, !without_crc) {
        Scan::Record(view) => view,
        other => panic!("{name}: {other:?}"),
    };
    compare(name, &view, expect);
    let mut record = again(&view);
    if let Some(covered) = expect["recordCrcOver"].as_u64() {
        assert_eq!(covered as usize, bytes.len() - PROPERTY_CRC_LENGTH, "{name}");
        assert!(property_crc_matches(&bytes), "{name}");
        record.with_property_crc = true;
        record.properties = &view.properties[..view.properties.len() - PROPERTY_CRC_LENGTH];
    }
    let java_magic = expect["magic"].as_i64().unwrap() as i32 as u32;
    if java_magic == MAGIC_V2 && view.topic.len() <= LONGEST_V1_TOPIC {
        // Java's encoder was told to write version 2; ours does so only where version 1 has no room.
        return;
    }
    let mut written = encoded(&record, &view);
    if without_crc {
        written[8..12].fill(0);
    }
    assert_eq!(written, bytes, "{name}");
}

#[test]
fn records_read_and_write_back() {
    for vector in vectors("records.jsonl") {
        let (name, bytes, expect) = (&vector.name, vector.bytes(), vector.expect());
        match vector.kind() {
            "record" => one(&vector),
            "batch" => {
                let items: Vec<_> = batch_items(&bytes).map(Result::unwrap).collect();
                let expected = expect.as_array().unwrap();
                assert_eq!(items.len(), expected.len(), "{name}");
                let mut written = Vec::new();
                for (item, expect) in items.iter().zip(expected) {
                    assert_eq!(expect["flag"], item.flag, "{name}");
                    assert_eq!(item.body, hex(expect["body"].as_str().unwrap()), "{name}");
                    let properties = serde_json::from_value(expect["properties"].clone()).unwrap();
                    assert_eq!(property_map(item.properties), properties, "{name}");
                    encode_batch_item(&mut written, item).unwrap();
                }
                assert_eq!(written, bytes, "{name}");
            }
            "records" => {
                let batch = hex(vector.line["batchHex"].as_str().unwrap());
                let items: Vec<_> = batch_items(&batch).map(Result::unwrap).collect();
                let views: Vec<_> = records(&bytes).map(Result::unwrap).collect();
                assert_eq!(views.len(), items.len(), "{name}");
                let mut written = Vec::new();
                for ((view, item), expect) in views.iter().zip(&items).zip(expect.as_array().unwrap()) {
                    compare(name, view, expect);
                    let record =
                        NewRecord { flag: item.flag, body: item.body, properties: item.properties, ..again(view) };
                    written.extend(encoded(&record, view));
                }
                assert_eq!(written, bytes, "{name}: the broker stores the items of a batch as they came");
            }
            other => panic!("{name}: unknown kind {other}"),
        }
    }
}
