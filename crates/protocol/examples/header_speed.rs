//! Measures the hot headers: `cargo run --release -p rocketmq-protocol --example header_speed`, with
//! the name of one measurement as an argument for that one alone.

use std::hint::black_box;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use protocol::frame::{self, Head, MAX_FRAME_LENGTH, encode_parts};
use protocol::headers::{SendMessageRequestV2, hot};
use protocol::record::{self, MessageId, NewRecord};
use protocol::{Command, ExtFields, SerializeType};

/// Short runs, so that the best of them was not interrupted even on a busy machine.
const ROUNDS: u32 = 1000;
const RUNS: usize = 1000;

fn time(name: &str, mut work: impl FnMut()) {
    if std::env::args().nth(1).is_some_and(|wanted| name.trim() != wanted) {
        return;
    }
    let best = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                work();
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
        })
        .fold(f64::MAX, f64::min);
    println!("{name:44} {best:7.0} ns");
}

fn send_frame(serialize: SerializeType) -> Bytes {
    let header = SendMessageRequestV2 {
        producer_group: "please_rename_unique_group_name".into(),
        topic: "TopicTest".into(),
        default_topic: "TBW102".into(),
        default_topic_queue_nums: 4,
        queue_id: 3,
        born_timestamp: 1_700_000_000_000,
        properties: Some("KEYS\u{1}OrderID188\u{2}UNIQ_KEY\u{1}7F000001000018B4AAC2000000000001\u{2}WAIT\u{1}true\u{2}TAGS\u{1}TagA\u{2}".into()),
        reconsume_times: Some(0),
        broker_name: Some("broker-a".into()),
        ..SendMessageRequestV2::default()
    };
    let mut command = Command::request(310).with_header(&header);
    command.serialize = serialize;
    let mut wire = BytesMut::new();
    command.encode(&mut wire);
    wire.freeze()
}

fn main() {
    for serialize in [SerializeType::Json, SerializeType::Binary] {
        let wire = send_frame(serialize);
        println!("{serialize:?}: {} bytes", wire.len());
        let mut input = BytesMut::with_capacity(64 << 10);
        time("  decode", || {
            input.extend_from_slice(&wire);
            black_box(frame::decode(&mut input, MAX_FRAME_LENGTH).ok());
            input.reserve(4096);
        });
        time("  decode and read the send header", || {
            input.extend_from_slice(&wire);
            if let Ok(Some(command)) = frame::decode(&mut input, MAX_FRAME_LENGTH) {
                black_box(hot::SendMessage::read(&command.fields).ok());
            }
            input.reserve(4096);
        });
        time("  only fill the buffer", || {
            input.extend_from_slice(&wire);
            black_box(input.split());
            input.reserve(4096);
        });
        let fields: ExtFields = match frame::decode(&mut BytesMut::from(&wire[..]), MAX_FRAME_LENGTH) {
            Ok(Some(command)) => command.fields,
            _ => return,
        };
        time("  only read the send header", || {
            black_box(hot::SendMessage::read(&fields).ok());
        });
        let host = ([127, 0, 0, 1], 10911).into();
        let mut out = BytesMut::with_capacity(4096);
        time("  write a send answer", || {
            out.clear();
            let id = MessageId::new(host, 123_456_789);
            let answer = hot::SendMessageAnswer {
                msg_id: id.as_str().into(),
                queue_id: 3,
                queue_offset: 123_456,
                transaction_id: None,
                batch_uniq_id: None,
                recall_handle: None,
            };
            let head = Head::response(0, 77, None, serialize);
            encode_parts(&mut out, &head, &mut |sink| answer.write(sink), 0);
            black_box(&out);
        });
    }
    let host = ([127, 0, 0, 1], 10911).into();
    let record = NewRecord {
        topic: "TopicTest",
        queue_id: 3,
        flag: 0,
        sys_flag: 0,
        queue_offset: 1,
        physical_offset: 2,
        born_timestamp: 3,
        born_host: host,
        store_timestamp: 4,
        store_host: host,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: &[7; 1024],
        properties: b"KEYS\x01OrderID188\x02UNIQ_KEY\x017F000001000018B4AAC2000000000001\x02TAGS\x01TagA\x02",
        more_properties: b"CLUSTER\x01DefaultCluster\x02",
        with_property_crc: false,
    };
    let mut out = Vec::with_capacity(4096);
    time("encode a record of 1 KiB", || {
        out.clear();
        black_box(record::encode_record(&mut out, &record).ok());
    });
    time("scan it with its CRC", || {
        black_box(record::scan(&out, true));
    });
    time("scan it without", || {
        black_box(record::scan(&out, false));
    });
    time("find its tag", || {
        black_box(record::RecordView::parse(&out).ok().and_then(|view| view.property("TAGS")));
    });
}
