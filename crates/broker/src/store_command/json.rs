//! A dumped record as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use protocol::record::{MAGIC_V2, MessageId, RecordView, properties, sys_flag};
use serde_json::{Map, Value, json};
use store::offline::{Damage, Dumped};

/// One line: a record with all its fields, or what stands where one should be.
pub(super) fn line(dumped: Dumped<'_>) -> Value {
    match dumped {
        Dumped::Record(record) => line_of_record(record),
        Dumped::Damage(damage) => line_of_damage(damage),
    }
}

fn line_of_record(record: &RecordView<'_>) -> Value {
    let mut line = json!({
        "offset": record.physical_offset,
        "size": record.size(),
        "version": if record.bytes.get(4..8) == Some(&MAGIC_V2.to_be_bytes()) { 2 } else { 1 },
        "msgId": MessageId::new(record.store_host, record.physical_offset).as_str(),
        "topic": record.topic,
        "queueId": record.queue_id,
        "queueOffset": record.queue_offset,
        "flag": record.flag,
        "sysFlag": record.sys_flag,
        "transaction": transaction(record.sys_flag),
        "compressed": record.sys_flag & sys_flag::COMPRESSED != 0,
        "bornTimestamp": record.born_timestamp,
        "bornHost": record.born_host.to_string(),
        "storeTimestamp": record.store_timestamp,
        "storeHost": record.store_host.to_string(),
        "reconsumeTimes": record.reconsume_times,
        "preparedTransactionOffset": record.prepared_transaction_offset,
        "bodyCrc": record.body_crc,
        "bodyCrcMatches": record.body_crc_matches(),
        "bodySize": record.body.len(),
        "propertiesSize": record.properties.len(),
        "properties": property_map(record.properties),
    });
    // A compressed body is shown as it is stored.
    let (name, body) = match std::str::from_utf8(record.body) {
        Ok(text) => ("body", text.to_owned()),
        Err(_) => ("bodyBase64", STANDARD.encode(record.body)),
    };
    line[name] = body.into();
    line
}

fn line_of_damage(damage: &Damage) -> Value {
    json!({
        "offset": damage.offset,
        "fault": damage.reason,
        "file": damage.path.display().to_string(),
        "position": damage.position,
        "next": damage.next,
    })
}

fn transaction(flags: i32) -> &'static str {
    match sys_flag::transaction(flags) {
        sys_flag::TRANSACTION_PREPARED => "prepared",
        sys_flag::TRANSACTION_COMMIT => "commit",
        sys_flag::TRANSACTION_ROLLBACK => "rollback",
        _ => "none",
    }
}

/// Of a repeated key the last value counts, as for every reader.
fn property_map(bytes: &[u8]) -> Map<String, Value> {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    properties::iter(bytes).map(|(key, value)| (text(key), Value::String(text(value)))).collect()
}
