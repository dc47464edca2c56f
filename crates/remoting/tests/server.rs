//! What a peer notices of the server over plain TCP.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use protocol::{Command, SerializeType};
use remoting::{CallError, Client, ClientConfig, CloseReason, Connection, Reply, ServerRequestHandler};
use support::*;

const SECOND: Duration = Duration::from_secs(1);

fn client() -> Client {
    Client::new(ClientConfig::default(), None)
}

#[tokio::test]
async fn answers_carry_opaque_fields_body_and_serialisation_of_the_request() {
    let (server, _service) = serve(config());
    let mut raw = Raw::to(server.local_addr()).await;
    for serialize in [SerializeType::Json, SerializeType::Binary] {
        let mut request = Command::request(ECHO).with_field("topic", "T\"ü").with_body("body");
        request.serialize = serialize;
        request.opaque = -5;
        let mut wire = bytes::BytesMut::new();
        request.encode(&mut wire);
        raw.send(&wire).await;
        let answer = raw.next().await.unwrap();
        assert_eq!((answer.opaque, answer.code, answer.is_response()), (-5, 0, true));
        assert_eq!(answer.serialize, serialize);
        assert_eq!(answer.fields.get("topic").as_deref(), Some("T\"ü"));
        assert_eq!(&answer.body[..], b"body");
    }
}

#[tokio::test]
async fn frames_of_one_read_make_one_batch() {
    let (server, service) = serve(config());
    let mut raw = Raw::to(server.local_addr()).await;
    let wire = encoded(&vec![Command::request(GROUPED); 20]);
    raw.send(&wire).await;
    for opaque in 0..20 {
        assert_eq!(raw.next().await.unwrap().opaque, opaque);
    }
    assert_eq!(*service.batches.lock(), [20]);
}

#[tokio::test]
async fn a_frame_may_come_byte_by_byte() {
    let (server, _service) = serve(config());
    let mut raw = Raw::to(server.local_addr()).await;
    raw.io.set_nodelay(true).unwrap();
    for byte in encoded(&[Command::request(ECHO).with_body("slow")]) {
        raw.send(&[byte]).await;
    }
    assert_eq!(&raw.next().await.unwrap().body[..], b"slow");
}

#[tokio::test]
async fn large_frames_go_both_ways() {
    let (server, _service) = serve(config());
    let body: Vec<u8> = (0..9_000_000u32).map(|at| at as u8).collect();
    let request = Command::request(ECHO).with_body(body.clone());
    let answer = client().request(&server.local_addr().to_string(), request, 10 * SECOND).await.unwrap();
    assert!(answer.body == body, "the body came back changed");
}

#[tokio::test]
async fn unknown_codes_are_refused_with_javas_words() {
    let (server, _service) = serve(config());
    let answer = client().request(&server.local_addr().to_string(), Command::request(9999), SECOND).await.unwrap();
    assert_eq!((answer.code, answer.remark.as_deref()), (3, Some(" request type 9999 not supported")));
}

struct Answering;

impl ServerRequestHandler for Answering {
    fn call(&self, _conn: &Connection, request: Command, reply: Reply) {
        assert_eq!(request.code, 2001);
        reply.send(Command::response(0).with_body("from the client"));
    }
}

#[tokio::test]
async fn the_server_may_ask_the_client() {
    let (server, _service) = serve(config());
    let addr = server.local_addr().to_string();
    let client = Client::new(ClientConfig::default(), Some(Arc::new(Answering)));
    let answer = client.request(&addr, Command::request(ASK_BACK), SECOND).await.unwrap();
    assert_eq!(&answer.body[..], b"from the client");
}

#[tokio::test]
async fn a_server_request_that_nobody_answers_times_out() {
    let (server, _service) = serve(config());
    let mut raw = Raw::to(server.local_addr()).await;
    raw.send(&encoded(&[Command::request(ASK_BACK)])).await;
    assert_eq!(raw.next().await.unwrap().code, 2001);
    let answer = raw.next().await.unwrap();
    assert_eq!(answer.code, 1);
    assert!(answer.remark.unwrap().contains("within 300 ms"));
}

#[tokio::test]
async fn a_time_out_leaves_the_connection_to_others() {
    let (server, service) = serve(config());
    let addr = server.local_addr().to_string();
    let client = client();
    let error = client.request(&addr, Command::request(PARK), Duration::from_millis(50)).await.unwrap_err();
    assert!(matches!(error, CallError::Timeout { .. }), "{error}");
    assert_eq!(service.release(), 1);
    assert_eq!(client.request(&addr, Command::request(ECHO), SECOND).await.unwrap().code, 0);
    assert_eq!(service.connected.lock().len(), 1, "the client should have kept its connection");
}

#[tokio::test]
async fn requests_fail_when_the_connection_is_lost() {
    let (server, service) = serve(config());
    let addr = server.local_addr().to_string();
    let client = client();
    let call = client.request(&addr, Command::request(PARK), 10 * SECOND);
    let cut = async {
        until("the request is there", || service.parked.lock().len() == 1).await;
        service.connected.lock()[0].close(CloseReason::Local("test"));
    };
    let (result, ()) = tokio::join!(call, cut);
    assert!(matches!(result, Err(CallError::Closed { .. })), "{result:?}");
    assert_eq!(client.request(&addr, Command::request(ECHO), SECOND).await.unwrap().code, 0);
}
