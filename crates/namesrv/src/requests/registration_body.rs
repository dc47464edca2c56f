//! The body of REGISTER_BROKER in its three forms: JSON, zlib over length-prefixed parts, and the bare topic table of
//! brokers before 3.0.11.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};

use flate2::bufread::ZlibDecoder;
use serde::Deserialize;

use super::json_in::{Entries, from_slice};
use crate::route_table::{DataVersion, MappingInfo, TopicEntry};

/// What a compressed body may inflate to: a million topics of one broker fit, a zlib bomb does not.
pub const MAX_INFLATED_BYTES: u64 = 128 * 1024 * 1024;

/// Most topics, and most mappings, of one body: small ones take more memory than bytes of the body.
const MAX_ENTRIES: usize = 1_000_000;

/// What one part of a compressed body may be long: a topic's line, a mapping, or the list of filter servers.
const MAX_PART_BYTES: usize = 4 * 1024 * 1024;

/// The first byte of a zlib stream as Java and everybody else writes it; JSON begins with a brace.
const ZLIB_MARK: u8 = 0x78;

/// Why a body cannot be used. The registration is answered with SYSTEM_ERROR.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    #[error("Failed to decode RegisterBrokerBody: {0}")]
    Json(String),
    #[error("Failed to decode RegisterBrokerBody: zlib stream: {0}")]
    Zlib(String),
    #[error("Failed to decode RegisterBrokerBody: it inflates to more than {MAX_INFLATED_BYTES} bytes")]
    TooLong,
    #[error("Failed to decode RegisterBrokerBody: it holds more than {MAX_ENTRIES} topics or mappings")]
    TooMany,
    #[error("Failed to decode RegisterBrokerBody: {0}")]
    Malformed(&'static str),
}

/// What a broker says of its topics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistrationBody {
    pub data_version: DataVersion,
    pub topics: Vec<TopicEntry>,
    pub mappings: Vec<(String, MappingInfo)>,
    pub filter_servers: Option<Vec<String>>,
}

/// Decodes `body` as a broker of `version` wrote it. `compressed` is what its header says.
pub fn decode(body: &[u8], compressed: bool, version: i32) -> Result<RegistrationBody, BodyError> {
    if version < protocol::VERSION_3_0_11 {
        return decode_topic_table(body);
    }
    match body.first() {
        None => Ok(RegistrationBody { filter_servers: Some(Vec::new()), ..empty() }),
        // Java brokers with `compressedRegister=true` compress and forget to say so.
        Some(&first) if compressed || first == ZLIB_MARK => inflate(body, version),
        Some(_) => decode_json(body),
    }
}

/// What a registration without body counts as.
fn empty() -> RegistrationBody {
    let data_version = DataVersion { state_version: 0, timestamp: 0, counter: Some(0) };
    RegistrationBody { data_version, ..RegistrationBody::default() }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Body {
    topic_config_serialize_wrapper: Option<Wrapper>,
    filter_server_list: Option<Vec<String>>,
}

impl Default for Body {
    fn default() -> Self {
        Self { topic_config_serialize_wrapper: None, filter_server_list: Some(Vec::new()) }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Wrapper {
    data_version: Option<Version>,
    topic_config_table: Entries<TopicConfig>,
    topic_queue_mapping_info_map: Entries<Mapping>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Version {
    state_version: i64,
    timestamp: i64,
    counter: Option<i64>,
}

impl Version {
    fn read(self) -> DataVersion {
        DataVersion { state_version: self.state_version, timestamp: self.timestamp, counter: self.counter }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TopicConfig {
    topic_name: Option<String>,
    read_queue_nums: i32,
    write_queue_nums: i32,
    perm: i32,
    topic_sys_flag: i32,
}

impl Default for TopicConfig {
    /// What a fresh Java object holds.
    fn default() -> Self {
        Self { topic_name: None, read_queue_nums: 16, write_queue_nums: 16, perm: 6, topic_sys_flag: 0 }
    }
}

impl TopicConfig {
    /// The map's key stands in for a missing name.
    fn entry(self, key: String) -> TopicEntry {
        TopicEntry {
            topic: self.topic_name.unwrap_or(key),
            read_queues: self.read_queue_nums,
            write_queues: self.write_queue_nums,
            perm: self.perm,
            sys_flag: self.topic_sys_flag,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Mapping {
    topic: Option<String>,
    scope: Option<String>,
    total_queues: i32,
    bname: Option<String>,
    epoch: i64,
    dirty: bool,
    curr_id_map: Option<BTreeMap<i32, i32>>,
}

impl Default for Mapping {
    fn default() -> Self {
        Self {
            topic: None,
            scope: Some("__global__".to_owned()),
            total_queues: 0,
            bname: None,
            epoch: 0,
            dirty: false,
            curr_id_map: Some(BTreeMap::new()),
        }
    }
}

impl From<Mapping> for MappingInfo {
    fn from(read: Mapping) -> Self {
        Self {
            topic: read.topic,
            scope: read.scope,
            total_queues: read.total_queues,
            broker_name: read.bname,
            epoch: read.epoch,
            dirty: read.dirty,
            current_ids: read.curr_id_map,
        }
    }
}

impl Wrapper {
    fn read(self) -> RegistrationBody {
        let topics = self.topic_config_table.0.into_iter().map(|(key, config)| config.entry(key)).collect();
        let mappings = self.topic_queue_mapping_info_map.0.into_iter().map(|(key, info)| (key, info.into())).collect();
        let data_version = self.data_version.map_or_else(|| empty().data_version, Version::read);
        RegistrationBody { data_version, topics, mappings, filter_servers: None }
    }
}

fn decode_json(body: &[u8]) -> Result<RegistrationBody, BodyError> {
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(BodyError::Malformed("no JSON object"));
    }
    let body: Body = from_slice(body).map_err(BodyError::Json)?;
    let read = body.topic_config_serialize_wrapper.map_or_else(empty, Wrapper::read);
    Ok(RegistrationBody { filter_servers: body.filter_server_list, ..read })
}

fn decode_topic_table(body: &[u8]) -> Result<RegistrationBody, BodyError> {
    if body.is_empty() {
        return Ok(empty());
    }
    from_slice::<Wrapper>(body).map(Wrapper::read).map_err(BodyError::Json)
}

/// Reads the data version that QUERY_DATA_VERSION carries.
pub(super) fn decode_data_version(body: &[u8]) -> Result<DataVersion, String> {
    from_slice::<Version>(body).map(Version::read)
}

/// Reads length-prefixed parts out of a zlib stream, never holding more than one of them.
struct Parts<'a> {
    stream: std::io::Take<ZlibDecoder<BufReader<&'a [u8]>>>,
    part: Vec<u8>,
}

impl Parts<'_> {
    fn fail(&self, error: &std::io::Error) -> BodyError {
        if self.stream.limit() == 0 { BodyError::TooLong } else { BodyError::Zlib(error.to_string()) }
    }

    /// How many topics or mappings follow.
    fn count(&mut self) -> Result<usize, BodyError> {
        let count = self.length()?;
        if count > MAX_ENTRIES { Err(BodyError::TooMany) } else { Ok(count) }
    }

    fn length(&mut self) -> Result<usize, BodyError> {
        let mut bytes = [0; 4];
        self.stream.read_exact(&mut bytes).map_err(|error| self.fail(&error))?;
        usize::try_from(i32::from_be_bytes(bytes)).map_err(|_| BodyError::Malformed("a negative length"))
    }

    fn part(&mut self) -> Result<&[u8], BodyError> {
        let length = self.length()?;
        if length > MAX_PART_BYTES {
            return Err(BodyError::TooLong);
        }
        self.part.clear();
        // Grows with what is there, not with what the length says.
        let read = (&mut self.stream).take(length as u64).read_to_end(&mut self.part);
        match read {
            Ok(read) if read == length => Ok(&self.part),
            Ok(_) if self.stream.limit() == 0 => Err(BodyError::TooLong),
            Ok(_) => Err(BodyError::Zlib("it ends too early".to_owned())),
            Err(error) => Err(self.fail(&error)),
        }
    }

    fn text(&mut self) -> Result<&str, BodyError> {
        std::str::from_utf8(self.part()?).map_err(|_| BodyError::Malformed("not UTF-8"))
    }
}

fn inflate(body: &[u8], version: i32) -> Result<RegistrationBody, BodyError> {
    let stream = ZlibDecoder::new(BufReader::new(body)).take(MAX_INFLATED_BYTES);
    let mut parts = Parts { stream, part: Vec::new() };
    let data_version = decode_data_version(parts.part()?).map_err(BodyError::Json)?;
    let mut topics = Vec::new();
    for _ in 0..parts.count()? {
        topics.extend(topic_line(parts.text()?)?);
    }
    // Java logs a list it cannot read and goes on without.
    let filter_servers = from_slice::<Option<Vec<String>>>(parts.part()?).unwrap_or_else(|_| Some(Vec::new()));
    let mut mappings = Vec::new();
    if version >= protocol::VERSION_5_0_0 {
        for _ in 0..parts.count()? {
            let info: MappingInfo = from_slice::<Mapping>(parts.part()?).map_err(BodyError::Json)?.into();
            mappings.push((info.topic.clone().unwrap_or_default(), info));
        }
    }
    Ok(RegistrationBody { data_version, topics, mappings, filter_servers })
}

/// `name read write perm filterType {attributes}`, parted by single blanks. A line of fewer than five parts is
/// skipped; flags and order are not part of it.
fn topic_line(line: &str) -> Result<Option<TopicEntry>, BodyError> {
    let mut words = line.split(' ');
    let (Some(topic), Some(read), Some(write), Some(perm), Some(_filter)) =
        (words.next(), words.next(), words.next(), words.next(), words.next())
    else {
        return Ok(None);
    };
    let number = |text: &str| text.parse::<i32>().map_err(|_| BodyError::Malformed("a topic's number is none"));
    Ok(Some(TopicEntry {
        topic: topic.to_owned(),
        read_queues: number(read)?,
        write_queues: number(write)?,
        perm: number(perm)?,
        sys_flag: 0,
    }))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const JSON: &str = r#"{"filterServerList":["f:1"],"topicConfigSerializeWrapper":{"dataVersion":{"counter":3,"stateVersion":1,"timestamp":1700000000000},"mappingDataVersion":{"counter":0,"stateVersion":0,"timestamp":1},"topicConfigTable":{"T":{"attributes":{},"order":false,"perm":6,"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"T","topicSysFlag":1,"writeQueueNums":"4"},"Bare":{}},"topicQueueMappingDetailMap":{},"topicQueueMappingInfoMap":{"T":{"bname":"a","currIdMap":{"0":1},"dirty":false,"epoch":5,"scope":"s","topic":"T","totalQueues":2}}}}"#;

    fn zlib(parts: &[&[u8]]) -> Vec<u8> {
        let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        parts.iter().for_each(|part| out.write_all(part).unwrap());
        out.finish().unwrap()
    }

    fn sized(text: &str) -> Vec<u8> {
        let mut out = (text.len() as i32).to_be_bytes().to_vec();
        out.extend_from_slice(text.as_bytes());
        out
    }

    fn compressed() -> Vec<u8> {
        zlib(&[
            &sized(r#"{"counter":1,"stateVersion":0,"timestamp":1700000000000}"#),
            &2i32.to_be_bytes(),
            &sized("TopicA 8 7 6 SINGLE_TAG {}"),
            &sized("too short"),
            &sized("[]"),
            &1i32.to_be_bytes(),
            &sized(r#"{"bname":"a","topic":"TopicA","totalQueues":1}"#),
        ])
    }

    #[test]
    fn json_is_read_with_quoted_numbers_and_defaults() {
        let body = decode(JSON.as_bytes(), false, 493).unwrap();
        assert_eq!(body.data_version, DataVersion { state_version: 1, timestamp: 1_700_000_000_000, counter: Some(3) });
        let topic = |name: &str, read, write, flag| TopicEntry {
            topic: name.into(),
            read_queues: read,
            write_queues: write,
            perm: 6,
            sys_flag: flag,
        };
        assert_eq!(body.topics, [topic("T", 8, 4, 1), topic("Bare", 16, 16, 0)]);
        assert_eq!(body.filter_servers.as_deref(), Some(&["f:1".to_owned()][..]));
        assert_eq!(body.mappings[0].1.current_ids.as_ref().unwrap()[&0], 1);
    }

    #[test]
    fn compressed_bodies_are_read_whether_announced_or_not() {
        for announced in [true, false] {
            let body = decode(&compressed(), announced, 413).unwrap();
            assert_eq!((body.topics.len(), body.topics[0].write_queues, body.mappings.len()), (1, 7, 1));
            assert_eq!(body.filter_servers, Some(Vec::new()));
            assert_eq!(body.mappings[0].1.scope.as_deref(), Some("__global__"));
        }
        assert!(decode(&compressed(), true, 412).unwrap().mappings.is_empty(), "before 5.0.0 there is no such part");
    }

    #[test]
    fn old_brokers_send_the_topic_table_alone_and_may_send_nothing() {
        let table = r#"{"dataVersion":{"counter":1,"timestamp":2},"topicConfigTable":{"T":{"topicName":"T"}}}"#;
        let body = decode(table.as_bytes(), false, 36).unwrap();
        assert_eq!((body.topics.len(), body.filter_servers), (1, None));
        assert_eq!(decode(b"", false, 36).unwrap().data_version.counter, Some(0));
        assert_eq!(decode(b"", false, 493).unwrap().filter_servers, Some(Vec::new()));
    }

    #[test]
    fn broken_streams_and_bombs_are_refused() {
        let whole = compressed();
        let read = decode(&whole, true, 493).unwrap();
        for cut in 1..whole.len() {
            // The last bytes of a stream hold nothing but its end and its checksum.
            let cut_off = decode(&whole[..cut], true, 493);
            assert!(cut_off.is_err() || cut_off.as_ref() == Ok(&read) && cut + 12 > whole.len(), "cut at {cut}");
        }
        assert!(decode(b"{}", true, 493).is_err());
        assert!(matches!(decode(&zlib(&[&(-1i32).to_be_bytes()]), true, 493), Err(BodyError::Malformed(_))));
        let line = vec![b'x'; 1024 * 1024];
        let mut bomb = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        bomb.write_all(&sized("{}")).unwrap();
        bomb.write_all(&1_000_000i32.to_be_bytes()).unwrap();
        for _ in 0..129 {
            bomb.write_all(&(line.len() as i32).to_be_bytes()).unwrap();
            bomb.write_all(&line).unwrap();
        }
        assert_eq!(decode(&bomb.finish().unwrap(), true, 493), Err(BodyError::TooLong));
        let many = zlib(&[&sized("{}"), &1_000_001i32.to_be_bytes()]);
        assert_eq!(decode(&many, true, 493), Err(BodyError::TooMany));
        let long = zlib(&[&sized("{}"), &0i32.to_be_bytes(), &i32::MAX.to_be_bytes()]);
        assert_eq!(decode(&long, true, 493), Err(BodyError::TooLong));
    }
}
