//! The body of a registration, plain and compressed.
//!
//! The compressed form is a zlib stream of length-prefixed parts:
//! ```text
//! | 4 + n data version JSON | 4 topic count | ( 4 + n topic line )* | 4 + n filter server JSON |
//! | 4 mapping count | ( 4 + n mapping JSON )* |      the last line from 5.0.0 on
//! ```

use std::io::{Read, Write};

use bytes::{Buf, BufMut};
use serde::de::DeserializeOwned;

use super::{TopicConfig, TopicConfigAndMappingSerializeWrapper, TopicConfigSerializeWrapper, TopicQueueMappingInfo};
use crate::json::{self, JsonError};
use crate::{VERSION_3_0_11, VERSION_5_0_0};

bodies! {
    /// Asks REGISTER_BROKER (103).
    pub struct RegisterBrokerBody {
        topic_config_serialize_wrapper: TopicConfigAndMappingSerializeWrapper,
        /// Empty removes what the name server knows, absent leaves it.
        filter_server_list: Option<Vec<String>>,
    }
}

/// Why a registration's body cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    #[error("the compressed body is damaged: {0}")]
    Inflate(std::io::Error),
    #[error("the body is larger than {0} bytes when inflated")]
    TooLarge(usize),
    #[error("the body ends early or has a negative length")]
    CutOff,
    #[error(transparent)]
    Json(#[from] JsonError),
}

impl RegisterBrokerBody {
    /// Reads a body as a sender of `version` wrote it, inflating it to no more than `limit` bytes. A body that is
    /// compressed although the header denies it is still read: a Java broker sends that.
    pub fn decode(body: &[u8], compressed: bool, version: i32, limit: usize) -> Result<Self, RegisterError> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        if compressed || body.first() == Some(&0x78) {
            return decode_parts(&inflate(body, limit)?, version);
        }
        if version < VERSION_3_0_11 {
            let topics: TopicConfigSerializeWrapper = json::from_slice(body)?;
            return Ok(Self {
                topic_config_serialize_wrapper: TopicConfigAndMappingSerializeWrapper {
                    topic_config_table: topics.topic_config_table,
                    data_version: topics.data_version,
                    ..TopicConfigAndMappingSerializeWrapper::default()
                },
                filter_server_list: None,
            });
        }
        Ok(json::from_slice(body)?)
    }

    /// Writes the body. The compressed form loses `order` and `topicSysFlag` of the topics.
    pub fn encode(&self, compressed: bool) -> Vec<u8> {
        if !compressed {
            return json::to_legacy(self);
        }
        let wrapper = &self.topic_config_serialize_wrapper;
        let mut plain = Vec::new();
        put_part(&mut plain, &json::to_legacy(&wrapper.data_version));
        put_count(&mut plain, wrapper.topic_config_table.len());
        for topic in wrapper.topic_config_table.values() {
            put_part(&mut plain, topic.to_line().as_bytes());
        }
        put_part(&mut plain, &json::to_legacy(self.filter_server_list.as_deref().unwrap_or_default()));
        put_count(&mut plain, wrapper.topic_queue_mapping_info_map.len());
        for mapping in wrapper.topic_queue_mapping_info_map.values() {
            put_part(&mut plain, &json::to_legacy(mapping));
        }
        deflate(&plain)
    }
}

fn decode_parts(plain: &[u8], version: i32) -> Result<RegisterBrokerBody, RegisterError> {
    let mut rest = plain;
    let mut wrapper =
        TopicConfigAndMappingSerializeWrapper { data_version: json_part(&mut rest)?, ..Default::default() };
    for _ in 0..count(&mut rest)? {
        let line = part(&mut rest)?;
        if let Some(topic) = TopicConfig::from_line(&String::from_utf8_lossy(line)) {
            wrapper.topic_config_table.insert(topic.topic_name.clone(), topic);
        }
    }
    let filter_server_list = Some(json_part(&mut rest)?);
    if version >= VERSION_5_0_0 {
        for _ in 0..count(&mut rest)? {
            let mapping: TopicQueueMappingInfo = json_part(&mut rest)?;
            wrapper.topic_queue_mapping_info_map.insert(mapping.topic.clone(), mapping);
        }
    }
    Ok(RegisterBrokerBody { topic_config_serialize_wrapper: wrapper, filter_server_list })
}

fn count(rest: &mut &[u8]) -> Result<usize, RegisterError> {
    let count = rest.try_get_i32().map_err(|_| RegisterError::CutOff)?;
    // Every part takes four bytes at least, so a count cannot make the loop run past the text.
    usize::try_from(count).ok().filter(|count| *count <= rest.len()).ok_or(RegisterError::CutOff)
}

fn part<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], RegisterError> {
    let length = count(rest)?;
    let (part, after) = rest.split_at_checked(length).ok_or(RegisterError::CutOff)?;
    *rest = after;
    Ok(part)
}

fn json_part<T: DeserializeOwned>(rest: &mut &[u8]) -> Result<T, RegisterError> {
    Ok(json::from_slice(part(rest)?)?)
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.put_i32(i32::try_from(count).unwrap_or(i32::MAX));
}

fn put_part(out: &mut Vec<u8>, part: &[u8]) {
    put_count(out, part.len());
    out.extend_from_slice(part);
}

fn inflate(body: &[u8], limit: usize) -> Result<Vec<u8>, RegisterError> {
    let mut plain = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    flate2::read::ZlibDecoder::new(body).take(most).read_to_end(&mut plain).map_err(RegisterError::Inflate)?;
    if plain.len() > limit { Err(RegisterError::TooLarge(limit)) } else { Ok(plain) }
}

fn deflate(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    // Writing into a Vec does not fail.
    let _ = encoder.write_all(plain);
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> RegisterBrokerBody {
        let mut body = RegisterBrokerBody { filter_server_list: Some(Vec::new()), ..Default::default() };
        let wrapper = &mut body.topic_config_serialize_wrapper;
        wrapper.data_version = crate::body::DataVersion { counter: 1, state_version: 0, timestamp: 1_700_000_000_000 };
        for name in ["TopicA", "TopicB"] {
            let topic =
                TopicConfig { topic_name: name.into(), read_queue_nums: 8, write_queue_nums: 8, ..Default::default() };
            wrapper.topic_config_table.insert(name.into(), topic);
        }
        wrapper.topic_config_table.get_mut("TopicB").unwrap().attributes.insert("a".into(), "b".into());
        let mapping = TopicQueueMappingInfo { topic: "TopicA".into(), total_queues: 3, ..Default::default() };
        wrapper.topic_queue_mapping_info_map.insert("TopicA".into(), mapping);
        body
    }

    #[test]
    fn both_forms_read_back() {
        let body = sample();
        for compressed in [false, true] {
            let bytes = body.encode(compressed);
            assert_eq!(bytes[0], if compressed { 0x78 } else { b'{' });
            for claimed in [compressed, false] {
                assert_eq!(RegisterBrokerBody::decode(&bytes, claimed, 493, 1 << 20).unwrap(), body);
            }
        }
        let old = RegisterBrokerBody::decode(&body.encode(true), true, 400, 1 << 20).unwrap();
        assert!(old.topic_config_serialize_wrapper.topic_queue_mapping_info_map.is_empty());
    }

    #[test]
    fn the_reference_payload() {
        let mut plain = Vec::new();
        plain.put_u32(0x38);
        plain.extend_from_slice(br#"{"counter":1,"stateVersion":0,"timestamp":1700000000000}"#);
        plain.put_u32(1);
        plain.put_u32(0x1a);
        plain.extend_from_slice(b"TopicA 8 8 6 SINGLE_TAG {}");
        plain.put_u32(2);
        plain.extend_from_slice(b"[]");
        plain.put_u32(0);
        let read = decode_parts(&plain, 493).unwrap();
        let mut expected = sample();
        let wrapper = &mut expected.topic_config_serialize_wrapper;
        wrapper.topic_config_table.remove("TopicB");
        wrapper.topic_queue_mapping_info_map.clear();
        assert_eq!(read, expected);
        assert_eq!(inflate(&expected.encode(true), 1 << 20).unwrap(), plain);
        for cut in 0..plain.len() {
            assert!(decode_parts(&plain[..cut], 493).is_err());
        }
    }

    #[test]
    fn inflation_is_bounded() {
        let bomb = deflate(&vec![0; 1 << 20]);
        assert!(matches!(RegisterBrokerBody::decode(&bomb, true, 493, 1000), Err(RegisterError::TooLarge(1000))));
        assert!(RegisterBrokerBody::decode(b"x\x9cjunk", true, 493, 1000).is_err());
    }
}
