//! The stored record: the reference bytes, and every way bytes can fail to be one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::SocketAddr;

use bytes::{BufMut, BytesMut};
use protocol::record::*;

fn hex(text: &str) -> Vec<u8> {
    let text: String = text.split_whitespace().collect();
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn sample<'a>(topic: &'a str, body: &'a [u8], properties: &'a [u8]) -> NewRecord<'a> {
    NewRecord {
        topic,
        queue_id: 2,
        flag: 0,
        sys_flag: 0,
        queue_offset: 7,
        physical_offset: 4096,
        born_timestamp: 1_700_000_000_000,
        born_host: addr("127.0.0.1:10000"),
        store_timestamp: 1_700_000_000_001,
        store_host: addr("127.0.0.1:10911"),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body,
        properties,
        more_properties: b"",
        with_property_crc: false,
    }
}

const REFERENCE: &str = "00000086 daa320a7 69c865ed 00000002 00000000 0000000000000007
    0000000000001000 00000000 0000018bcfe56800 7f000001 00002710
    0000018bcfe56801 7f000001 00002a9f 00000000 0000000000000000
    0000000e 48656c6c6f20526f636b65744d51
    09 546f70696354657374 0014 54414753 01 54616741 02 4b455953 01 4b455931 02";

#[test]
fn reference_record_both_ways() {
    let expected = hex(REFERENCE);
    let mut record = sample("TopicTest", b"Hello RocketMQ", b"TAGS\x01TagA\x02KEYS\x01KEY1\x02");
    let mut out = Vec::new();
    assert_eq!(encode_record(&mut out, &record), Ok(134));
    assert_eq!(out, expected);

    record.properties = b"TAGS\x01TagA";
    record.more_properties = b"KEYS\x01KEY1\x02";
    record.queue_offset = 0;
    record.physical_offset = 0;
    record.store_timestamp = 0;
    out.clear();
    encode_record(&mut out, &record).unwrap();
    patch_queue_offset(&mut out, 7);
    patch_physical_offset(&mut out, 4096);
    patch_store_timestamp(&mut out, 1_700_000_000_001);
    assert_eq!(out, expected, "patched fields and joined properties");

    let Scan::Record(view) = scan(&expected, true) else { panic!("no record") };
    assert_eq!(view.topic, "TopicTest");
    assert_eq!(view.body, b"Hello RocketMQ");
    assert_eq!((view.queue_id, view.queue_offset, view.physical_offset), (2, 7, 4096));
    assert_eq!((view.born_host, view.store_host), (record.born_host, record.store_host));
    assert_eq!((view.born_timestamp, view.store_timestamp), (1_700_000_000_000, 1_700_000_000_001));
    assert_eq!(view.property(property::TAGS), Some("TagA"));
    assert_eq!(view.property(property::KEYS), Some("KEY1"));
    assert_eq!(view.property("NONE"), None);
}

#[test]
fn long_topics_and_ipv6_hosts() {
    let topic = "t".repeat(128);
    for (born, store, size) in
        [("[::1]:1", "1.2.3.4:2", 104), ("1.2.3.4:1", "[::1]:2", 104), ("[::2]:1", "[::1]:2", 116)]
    {
        let mut record = sample(&topic, b"", b"");
        record.born_host = addr(born);
        record.store_host = addr(store);
        let mut out = BytesMut::new();
        encode_record(&mut out, &record).unwrap();
        assert_eq!(out.len(), size + 128);
        patch_store_timestamp(&mut out, 5);
        let view = RecordView::parse(&out).unwrap();
        assert_eq!((view.born_host, view.store_host), (record.born_host, record.store_host));
        assert_eq!((view.store_timestamp, view.topic), (5, &topic[..]));
        assert_eq!(view.sys_flag & sys_flag::BORN_HOST_V6 != 0, record.born_host.is_ipv6());
    }
    let longest = "t".repeat(127);
    assert_eq!(record_length(&sample(&longest, b"", b"")), Ok(91 + 127));
    let too_long = vec![b'x'; 32768];
    assert_eq!(record_length(&sample("t", b"", &too_long)), Err(RecordError::PropertiesTooLong(32768)));
}

#[test]
fn damage_is_told_apart() {
    let good = hex(REFERENCE);
    let reason = |bytes: &[u8]| match scan(bytes, true) {
        Scan::Bad(bad) => (bad.reason, bad.size),
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(&[0; 64]), (BadReason::Unwritten, None));
    assert_eq!(reason(&good[..7]), (BadReason::Short(7), None));
    assert_eq!(reason(&good[..133]), (BadReason::CutOff { stated: 134, have: 133 }, None));
    let changed = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    assert_eq!(reason(&changed(7, 0xA8)), (BadReason::Magic(0xDAA3_20A8), None));
    assert!(matches!(reason(&changed(95, 0)), (BadReason::Crc { .. }, Some(134))));
    // A length that contradicts the total size is the "half message" that running readers step over.
    assert_eq!(reason(&changed(3, 0x85)), (BadReason::Lengths(133), Some(133)));
    assert_eq!(reason(&changed(87, 0x0D)).1, Some(134));
    assert_eq!(reason(&changed(84, 0x80)), (BadReason::Range, Some(134)));
    assert_eq!(reason(&changed(104, 0xFF)), (BadReason::Topic, Some(134)));
    let mut crc = changed(95, 0);
    assert!(matches!(scan(&crc, false), Scan::Record(view) if !view.body_crc_matches()));
    crc.truncate(8);
    let mut blank = BytesMut::new();
    encode_blank(&mut blank, 77);
    assert!(matches!(scan(&blank, true), Scan::Blank(77)));
}

#[test]
fn every_cut_and_flip_is_survived() {
    let good = hex(REFERENCE);
    for cut in 0..good.len() {
        assert!(!matches!(scan(&good[..cut], true), Scan::Record(_)));
    }
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            let _ = scan(&bytes, true);
        }
    }
}

#[test]
fn concatenated_records() {
    let mut all = Vec::new();
    for body in [&b"a"[..], b"bb", b""] {
        encode_record(&mut all, &sample("T", body, b"")).unwrap();
    }
    let bodies: Vec<&[u8]> = records(&all).map(|record| record.unwrap().body).collect();
    assert_eq!(bodies, [&b"a"[..], b"bb", b""]);
    all.put_u8(1);
    assert!(records(&all).last().unwrap().is_err());
}

#[test]
fn property_crc_covers_the_record() {
    for properties in [&b"A\x011\x02"[..], b"A\x011", b""] {
        let mut record = sample("T", b"body", properties);
        record.with_property_crc = true;
        let mut out = Vec::new();
        let length = encode_record(&mut out, &record).unwrap();
        assert_eq!(length, out.len());
        patch_queue_offset(&mut out, 99);
        assert!(!property_crc_matches(&out));
        patch_property_crc(&mut out);
        assert!(property_crc_matches(&out));
        let view = RecordView::parse(&out).unwrap();
        assert_eq!(view.property(property::CRC32).map(str::len), Some(10));
        out[30] ^= 1;
        assert!(!property_crc_matches(&out));
    }
}

#[test]
fn batches_both_ways() {
    let items = [
        BatchItem { flag: 1, body: b"one", properties: b"A\x011\x02" },
        BatchItem { flag: -1, body: b"", properties: b"" },
        BatchItem { flag: 0, body: &[7; 300], properties: b"B\x012" },
    ];
    let mut body = Vec::new();
    for item in &items {
        encode_batch_item(&mut body, item).unwrap();
    }
    let read: Vec<_> = batch_items(&body).collect::<Result<_, _>>().unwrap();
    assert_eq!(read, items);
    for cut in 1..body.len() {
        if let Some(Err(error)) = batch_items(&body[..cut]).last() {
            assert!(error.index < 3);
        }
    }
    body[16] = 0x80;
    assert_eq!(batch_items(&body).collect::<Vec<_>>(), [Err(BatchError { index: 0 })]);
}
