//! Message ids, property strings, hashes and checksums.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use protocol::record::{MessageId, UniqueKey, crc31, decode_message_id, java_hash, properties};
use serde_json::Value;

use crate::{hex, vectors};

pub(crate) fn address(value: &Value) -> SocketAddr {
    let ip = hex(value["ip"].as_str().unwrap());
    let ip = match <[u8; 4]>::try_from(&ip[..]) {
        Ok(octets) => IpAddr::from(octets),
        Err(_) => IpAddr::from(<[u8; 16]>::try_from(&ip[..]).unwrap()),
    };
    SocketAddr::new(ip, u16::try_from(value["port"].as_u64().unwrap()).unwrap())
}

pub(crate) fn property_map(bytes: &[u8]) -> BTreeMap<String, String> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    properties::iter(bytes).map(|(key, value)| (text(key), text(value))).collect()
}

#[test]
fn primitives_agree() {
    let mut seen = BTreeMap::new();
    for vector in vectors("primitives.jsonl") {
        let (name, bytes, expect) = (&vector.name, vector.bytes(), vector.expect());
        *seen.entry(vector.kind().to_owned()).or_insert(0) += 1;
        match vector.kind() {
            "message_id" => {
                let text = String::from_utf8(bytes).unwrap();
                let (host, offset) = (address(&expect["host"]), expect["offset"].as_i64().unwrap());
                assert_eq!(decode_message_id(&text), Some((host, offset)), "{name}");
                assert_eq!(MessageId::new(host, offset).as_str(), text, "{name}");
            }
            "unique_id" => {
                let text = String::from_utf8(bytes).unwrap();
                let key = UniqueKey::parse(&text).unwrap();
                assert_eq!(
                    (expect["ip"].as_str(), expect["pid"].as_u64()),
                    (Some(&*key.ip.to_string()), Some(key.process.into()))
                );
                assert_eq!(key.to_string(), text, "{name}");
            }
            "properties" => {
                let expected: BTreeMap<String, String> = serde_json::from_value(expect.clone()).unwrap();
                assert_eq!(property_map(&bytes), expected, "{name}");
                for (key, value) in &expected {
                    assert_eq!(properties::get(&bytes, key), Some(value.as_str()), "{name}");
                }
            }
            "hash" => {
                let text = String::from_utf8(bytes).unwrap();
                assert_eq!(expect["hashCode"], java_hash(&text), "{name}");
                assert_eq!(expect["tagsCode"], i64::from(java_hash(&text)), "{name}");
            }
            "crc32" => assert_eq!(expect["crc32"], crc31(&bytes), "{name}"),
            other => panic!("{name}: unknown kind {other}"),
        }
    }
    assert_eq!(seen.len(), 5, "{seen:?}");
}
