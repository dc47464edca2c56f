//! Bad input, bounded memory, bounded time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use bytes::{BufMut, BytesMut};
use protocol::{Command, FrameError};
use remoting::{Client, ClientConfig, CloseReason};
use support::*;

const SECOND: Duration = Duration::from_secs(1);

async fn echo(addr: std::net::SocketAddr) {
    let client = Client::new(ClientConfig::default(), None);
    let answer = client.request(&addr.to_string(), Command::request(ECHO), 5 * SECOND).await.unwrap();
    assert_eq!(answer.code, 0);
}

async fn is_closed_after(bytes: &[u8]) -> CloseReason {
    let (server, service) = serve(config());
    let mut raw = Raw::to(server.local_addr()).await;
    raw.send(bytes).await;
    assert!(raw.next().await.is_none(), "the server should close");
    until("the service knows", || !service.closed.lock().is_empty()).await;
    echo(server.local_addr()).await;
    service.why_closed().unwrap()
}

#[tokio::test]
async fn one_byte_more_than_16_mib_closes() {
    let mut bytes = BytesMut::new();
    bytes.put_u32(16 * 1024 * 1024 + 1 - 4);
    bytes.put_u32(10);
    let why = is_closed_after(&bytes).await;
    assert!(matches!(why, CloseReason::BadFrame(FrameError::TooLong { .. })), "{why}");
}

#[tokio::test]
async fn a_header_past_its_frame_closes() {
    let mut bytes = BytesMut::new();
    bytes.put_u32(8);
    bytes.put_u32(5);
    bytes.put_u32(0);
    let why = is_closed_after(&bytes).await;
    assert!(matches!(why, CloseReason::BadFrame(FrameError::HeaderPastFrame { .. })), "{why}");
}

#[tokio::test]
async fn random_bytes_close() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut bytes: Vec<u8> = (0..2000).map(|_| random.u8(..)).collect();
        // A first byte of zero would be the begin of a long frame, which may well be waited for.
        bytes[0] |= 0x40;
        is_closed_after(&bytes).await;
    }
}

#[tokio::test]
async fn good_frames_before_a_bad_one_are_answered() {
    let (server, _service) = serve(config());
    let mut raw = Raw::to(server.local_addr()).await;
    let mut bytes = encoded(&vec![Command::request(ECHO); 3]);
    bytes.put_slice(&[0xFF; 64]);
    raw.send(&bytes).await;
    for opaque in 0..3 {
        assert_eq!(raw.next().await.unwrap().opaque, opaque);
    }
    assert!(raw.next().await.is_none());
}

#[tokio::test]
async fn a_full_lane_answers_overload_and_rejects_have_their_own_words() {
    let (server, service) = serve(config());
    let mut raw = Raw::to(server.local_addr()).await;
    raw.send(&encoded(&[vec![Command::request(LANE); 3], vec![Command::request(REJECT)]].concat())).await;
    let busy = raw.next().await.unwrap();
    assert_eq!((busy.opaque, busy.code), (2, 2));
    assert_eq!(busy.remark.as_deref(), Some("[OVERLOAD]system busy, start flow control for a while"));
    let rejected = raw.next().await.unwrap();
    assert_eq!((rejected.opaque, rejected.code), (3, 2));
    assert_eq!(rejected.remark.as_deref(), Some("[REJECTREQUEST]system busy, start flow control for a while"));
    assert_eq!(service.lane.in_flight(), 2);
    service.release();
    assert_eq!(service.lane.in_flight(), 0, "an answer gives the place back");
    let answers = [raw.next().await.unwrap().opaque, raw.next().await.unwrap().opaque];
    assert_eq!(answers, [0, 1]);
}

#[tokio::test]
async fn oneway_requests_are_never_answered() {
    let (server, _service) = serve(config());
    let mut raw = Raw::to(server.local_addr()).await;
    let mut oneway: Vec<Command> = [ECHO, 9999, REJECT, GROUPED, COUNT].map(Command::request).to_vec();
    oneway.iter_mut().for_each(Command::mark_oneway);
    oneway.push(Command::request(ECHO));
    raw.send(&encoded(&oneway)).await;
    assert_eq!(raw.next().await.unwrap().opaque, 5, "the only two-way request was the last");
}

#[tokio::test]
async fn more_unanswered_requests_than_allowed_are_overload() {
    let mut config = config();
    config.limits.unanswered = 10;
    let (server, service) = serve(config);
    let mut raw = Raw::to(server.local_addr()).await;
    raw.send(&encoded(&vec![Command::request(PARK); 11])).await;
    let busy = raw.next().await.unwrap();
    assert_eq!((busy.opaque, busy.code), (10, 2));
    assert_eq!(service.release(), 10);
}

#[tokio::test]
async fn a_peer_that_reads_nothing_is_paused_then_closed_and_others_are_unharmed() {
    let mut config = config();
    config.limits.write_stall = Duration::from_millis(500);
    let (server, service) = serve(config);
    let raw = Raw::to(server.local_addr()).await;
    let ask = Command::request(LARGE).with_field("bytes", "1000000");
    let _ = raw.io.try_write(&encoded(&vec![ask; 500])).unwrap();
    until("the peer is stuck", || service.connected.lock().first().is_some_and(|conn| conn.queued_bytes() > 0)).await;
    let stuck = service.connected.lock()[0].clone();
    let mut most = 0;
    until("the peer is closed", || {
        most = most.max(stuck.queued_bytes());
        !service.closed.lock().is_empty()
    })
    .await;
    assert_eq!(service.why_closed(), Some(CloseReason::SlowReader));
    assert!(most <= 3_000_000, "{most} bytes were held for a peer that reads nothing");
    assert!(!stuck.is_open());
    echo(server.local_addr()).await;
}

#[tokio::test]
async fn a_slow_reader_gets_everything_in_order() {
    let (server, service) = serve(config());
    let mut raw = Raw::to(server.local_addr()).await;
    let requests: Vec<Command> =
        (0..200).map(|at| Command::request(LARGE).with_field("bytes", (100_000 + at).to_string())).collect();
    raw.send(&encoded(&requests)).await;
    for at in 0..200 {
        let answer = raw.next().await.unwrap();
        assert_eq!((answer.opaque, answer.body.len()), (at, 100_000 + at as usize));
        assert!(answer.body.iter().all(|byte| *byte == 7));
    }
    let conn = service.connected.lock()[0].clone();
    until("nothing is queued", || conn.queued_bytes() == 0).await;
}

#[tokio::test]
async fn answers_given_later_beyond_the_limit_close_the_peer() {
    let mut config = config();
    config.limits.out_max_bytes = 2_000_000;
    let (server, service) = serve(config);
    let mut raw = Raw::to(server.local_addr()).await;
    raw.send(&encoded(&vec![Command::request(PARK); 40])).await;
    until("all are parked", || service.parked.lock().len() == 40).await;
    for reply in std::mem::take(&mut *service.parked.lock()) {
        reply.send(Command::response(0).with_body(vec![0u8; 500_000]));
    }
    until("the peer is closed", || !service.closed.lock().is_empty()).await;
    assert_eq!(service.why_closed(), Some(CloseReason::SlowReader));
}

#[tokio::test]
async fn idle_connections_are_closed_and_busy_ones_are_not() {
    let mut config = config();
    config.limits.idle = Duration::from_millis(400);
    let (server, service) = serve(config);
    let mut silent = Raw::to(server.local_addr()).await;
    let mut spoke = Raw::to(server.local_addr()).await;
    spoke.send(&encoded(&[Command::request(ECHO)])).await;
    spoke.next().await.unwrap();
    let mut busy = Raw::to(server.local_addr()).await;
    let beats = async {
        let mut beat = Command::request(COUNT);
        beat.mark_oneway();
        for _ in 0..12 {
            busy.send(&encoded(&[beat.clone()])).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let ends = async {
        assert!(silent.next().await.is_none(), "a peer that never spoke is idle too");
        assert!(spoke.next().await.is_none());
    };
    tokio::join!(beats, ends);
    assert_eq!(service.closed.lock().iter().map(|(_, why)| why.clone()).collect::<Vec<_>>(), [CloseReason::Idle]);
    busy.send(&encoded(&[Command::request(ECHO)])).await;
    assert!(busy.next().await.is_some(), "one-way requests keep a connection alive");
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed() {
    let mut config = config();
    config.max_connections = 2;
    let (server, _service) = serve(config);
    let mut kept = Vec::new();
    for _ in 0..2 {
        let mut raw = Raw::to(server.local_addr()).await;
        raw.send(&encoded(&[Command::request(ECHO)])).await;
        raw.next().await.unwrap();
        kept.push(raw);
    }
    let mut third = Raw::to(server.local_addr()).await;
    assert!(third.next().await.is_none());
    kept.pop();
    tokio::time::timeout(5 * SECOND, async {
        loop {
            let mut raw = Raw::to(server.local_addr()).await;
            let _ = raw.io.try_write(&encoded(&[Command::request(ECHO)]));
            if raw.next().await.is_some() {
                return;
            }
        }
    })
    .await
    .expect("a place should be free again");
}

#[tokio::test]
async fn many_peers_that_read_nothing_share_one_bound() {
    let mut config = config();
    config.out_total_bytes = 3_000_000;
    let (server, service) = serve(config);
    let mut peers = Vec::new();
    for _ in 0..8 {
        let raw = Raw::to(server.local_addr()).await;
        let ask = Command::request(LARGE).with_field("bytes", "1000000");
        let _ = raw.io.try_write(&encoded(&vec![ask; 100])).unwrap();
        peers.push(raw);
    }
    // The write stall of this server is a minute; what closes the peers within seconds is the bound.
    until("peers were closed until what is held fits", || {
        let held: usize = server.connections().iter().map(|conn| conn.queued_bytes()).sum();
        service.closed.lock().len() >= 4 && held <= 4_000_000
    })
    .await;
    assert!(service.closed.lock().iter().all(|(_, why)| *why == CloseReason::SlowReader));
    echo(server.local_addr()).await;
}
