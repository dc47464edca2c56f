//! Ordered stop, and clients that find their way round it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use protocol::Command;
use remoting::{Client, ClientConfig, NameServers};
use support::*;
use tokio::net::{TcpListener, TcpStream};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_stopping_server_sends_new_clients_away_and_serves_old_ones() {
    let (server, service) = serve(config());
    let addr = server.local_addr();
    let mut raw = Raw::to(addr).await;
    raw.send(&encoded(&[Command::request(PARK)])).await;
    until("the request is parked", || service.parked.lock().len() == 1).await;
    let stopping = tokio::spawn(server.shutdown(10 * SECOND));
    tokio::time::timeout(5 * SECOND, async { while TcpStream::connect(addr).await.is_ok() {} })
        .await
        .expect("new connections should be refused");
    let mut old = Command::request(ECHO);
    old.version = 475;
    raw.send(&encoded(&[Command::request(ECHO), old])).await;
    let away = raw.next().await.unwrap();
    assert_eq!((away.opaque, away.code, away.remark.as_deref()), (0, 1500, Some("please go away")));
    let served = raw.next().await.unwrap();
    assert_eq!((served.opaque, served.code), (1, 0));
    assert!(!stopping.is_finished(), "one request is not answered yet");
    service.release();
    assert_eq!(raw.next().await.unwrap().opaque, 0, "the parked request is answered before the end");
    assert!(raw.next().await.is_none());
    stopping.await.unwrap();
}

#[tokio::test]
async fn a_stop_does_not_wait_longer_than_its_grace() {
    let (server, service) = serve(config());
    let mut raw = Raw::to(server.local_addr()).await;
    raw.send(&encoded(&[Command::request(PARK)])).await;
    until("the request is parked", || service.parked.lock().len() == 1).await;
    let started = std::time::Instant::now();
    server.shutdown(Duration::from_millis(200)).await;
    assert!(started.elapsed() < 5 * SECOND);
    assert!(raw.next().await.is_none());
    assert_eq!(service.closed.lock().len(), 1);
}

#[tokio::test]
async fn a_client_told_to_go_away_asks_again_over_a_new_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let serving = tokio::spawn(async move {
        // The first connection stays open: requests of others may still be answered on it.
        let mut kept = Vec::new();
        for code in [1500, 0] {
            let mut raw = Raw::over(listener.accept().await.unwrap().0);
            let request = raw.next().await.unwrap();
            let mut answer = Command::response(code);
            answer.opaque = request.opaque;
            let mut wire = bytes::BytesMut::new();
            answer.encode(&mut wire);
            raw.send(&wire).await;
            kept.push(raw);
        }
        kept.len()
    });
    let client = Client::new(ClientConfig::default(), None);
    let answer = client.request(&addr, Command::request(ECHO), 5 * SECOND).await.unwrap();
    assert_eq!(answer.code, 0);
    assert_eq!(serving.await.unwrap(), 2);
}

#[tokio::test]
async fn name_servers_fail_over_and_stick() {
    let (first, first_service) = serve(config());
    let (second, second_service) = serve(config());
    let list = format!("{};{}", first.local_addr(), second.local_addr());
    let client = Client::new(ClientConfig::default(), None);
    let servers = NameServers::new(client, &list);
    for _ in 0..10 {
        servers.request(Command::request(ECHO), SECOND).await.unwrap();
    }
    let met = (first_service.connected.lock().len(), second_service.connected.lock().len());
    assert!(met == (1, 0) || met == (0, 1), "one should be asked, were {met:?}");
    let (gone, other) = if met.0 == 1 { (first, second_service) } else { (second, first_service) };
    gone.shutdown(Duration::ZERO).await;
    for _ in 0..3 {
        servers.request(Command::request(ECHO), SECOND).await.unwrap();
    }
    assert_eq!(other.connected.lock().len(), 1);
    let all = servers.request_all(Command::request(ECHO), SECOND).await;
    assert_eq!(all.iter().filter(|(_, result)| result.is_ok()).count(), 1);
    assert_eq!(all.len(), 2);
}

#[tokio::test]
async fn an_address_where_nobody_listens_fails_quickly() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = Client::new(ClientConfig::default(), None);
    let error = client.request(&port.to_string(), Command::request(ECHO), 3 * SECOND).await.unwrap_err();
    assert!(error.to_string().contains("cannot connect to 127.0.0.1"), "{error}");
}
