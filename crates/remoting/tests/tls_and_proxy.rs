//! TLS and PROXY headers on real sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::Path;
use std::time::Duration;

use protocol::Command;
use remoting::{Client, ClientAuth, ClientConfig, ProxyInfo, TlsFiles, TlsMode, TlsSettings};
use support::*;

const SECOND: Duration = Duration::from_secs(1);

fn client(tls: Option<TlsSettings>) -> Client {
    Client::new(ClientConfig { tls, ..ClientConfig::default() }, None)
}

async fn echo(addr: std::net::SocketAddr, tls: Option<TlsSettings>, bytes: usize) -> Result<(), String> {
    let body = vec![42u8; bytes];
    let request = Command::request(ECHO).with_body(body.clone());
    let answer =
        client(tls).request(&addr.to_string(), request, 10 * SECOND).await.map_err(|error| error.to_string())?;
    assert!(answer.body == body, "the body came back changed");
    Ok(())
}

#[tokio::test]
async fn permissive_by_default_serves_both() {
    let (server, _service) = serve(config());
    echo(server.local_addr(), None, 10).await.unwrap();
    echo(server.local_addr(), Some(TlsSettings::default()), 10).await.unwrap();
    echo(server.local_addr(), Some(TlsSettings::default()), 3_000_000).await.unwrap();
}

#[tokio::test]
async fn the_other_modes_close_the_wrong_kind() {
    for (mode, plain, encrypted) in [(TlsMode::Disabled, true, false), (TlsMode::Enforcing, false, true)] {
        let mut config = config();
        config.tls.mode = mode;
        let (server, _service) = serve(config);
        assert_eq!(echo(server.local_addr(), None, 10).await.is_ok(), plain, "{mode:?}");
        let result = echo(server.local_addr(), Some(TlsSettings::default()), 10).await;
        assert_eq!(result.is_ok(), encrypted, "{mode:?}");
    }
}

/// A signer and certificates by it, in PEM.
struct Signer {
    cert: rcgen::Certificate,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

impl Signer {
    fn new() -> Self {
        let mut params = rcgen::CertificateParams::new(vec![]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let cert = params.self_signed(&key).unwrap();
        Self { cert, issuer: rcgen::Issuer::new(params, key) }
    }

    fn write(&self, folder: &Path, name: &str) -> TlsFiles {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec![format!("{name}.example")]).unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        let at = |end: &str| folder.join(format!("{name}.{end}"));
        std::fs::write(at("key"), key.serialize_pem()).unwrap();
        std::fs::write(at("pem"), cert.pem()).unwrap();
        std::fs::write(at("ca"), self.cert.pem()).unwrap();
        TlsFiles { key: Some(at("key")), cert: Some(at("pem")), trust: Some(at("ca")), check_peer: true }
    }
}

#[tokio::test]
async fn certificates_are_checked_both_ways_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (signer, stranger) = (Signer::new(), Signer::new());
    let files = signer.write(folder.path(), "broker");
    let mut config = config();
    config.tls = TlsSettings {
        test_mode: false,
        client_auth: ClientAuth::Require,
        server: files.clone(),
        ..TlsSettings::default()
    };
    let (server, _service) = serve(config);
    let client = |files: TlsFiles| Some(TlsSettings { test_mode: false, client: files, ..TlsSettings::default() });
    let good = signer.write(folder.path(), "client");
    echo(server.local_addr(), client(good.clone()), 10).await.expect("another name is no reason to refuse");
    let foreign = stranger.write(folder.path(), "stranger");
    echo(server.local_addr(), client(foreign.clone()), 10).await.expect_err("the server's signer is not trusted");
    let unproven = TlsFiles { trust: good.trust.clone(), ..foreign };
    echo(server.local_addr(), client(unproven), 10).await.expect_err("the client's signer is not trusted");
    let silent = TlsFiles { key: None, cert: None, ..good };
    echo(server.local_addr(), client(silent), 10).await.expect_err("a certificate is demanded");
}

#[tokio::test]
async fn a_new_certificate_is_loaded_while_connections_live() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (Signer::new(), Signer::new());
    let files = old.write(folder.path(), "broker");
    let trust_old = old.write(folder.path(), "old");
    let trust_new = new.write(folder.path(), "new");
    let mut config = config();
    config.tls = TlsSettings { test_mode: false, server: files.clone(), ..TlsSettings::default() };
    let (server, _service) = serve(config);
    let trusting = |trust: &TlsFiles| {
        let client = TlsFiles { trust: trust.trust.clone(), check_peer: true, ..TlsFiles::default() };
        Some(TlsSettings { test_mode: false, client, ..TlsSettings::default() })
    };
    let addr = server.local_addr().to_string();
    let living = client(trusting(&trust_old));
    living.request(&addr, Command::request(ECHO), 5 * SECOND).await.unwrap();
    echo(server.local_addr(), trusting(&trust_new), 10).await.expect_err("not yet");
    // First a half-written pair, then a whole one.
    std::fs::write(files.cert.as_ref().unwrap(), "-----BEGIN CERT").unwrap();
    std::fs::write(files.key.as_ref().unwrap(), "-----BEGIN PRIV").unwrap();
    tokio::time::sleep(Duration::from_millis(700)).await;
    echo(server.local_addr(), trusting(&trust_old), 10).await.expect("the old certificate is kept");
    new.write(folder.path(), "broker");
    let deadline = std::time::Instant::now() + 10 * SECOND;
    while echo(server.local_addr(), trusting(&trust_new), 10).await.is_err() {
        assert!(std::time::Instant::now() < deadline, "the new certificate was not loaded within 10 s");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    living.request(&addr, Command::request(ECHO), 5 * SECOND).await.unwrap();
}

#[tokio::test]
async fn missing_files_are_named() {
    let mut config = config();
    config.tls.test_mode = false;
    config.tls.server.cert = Some("/nowhere/cert.pem".into());
    config.tls.server.key = Some("/nowhere/key.pem".into());
    let service = std::sync::Arc::new(TestService::default());
    let error = remoting::Server::bind(config, service).unwrap_err().to_string();
    assert!(error.contains("/nowhere/cert.pem"), "{error}");
}

#[tokio::test]
async fn a_proxy_header_gives_the_peer_its_address() {
    let (server, service) = serve(config());
    let mut raw = Raw::to(server.local_addr()).await;
    raw.send(b"PROXY TCP4 203.0.113.7 10.0.0.1 5555 9876\r\n").await;
    raw.send(&encoded(&[Command::request(ECHO)])).await;
    raw.next().await.unwrap();
    let conn = service.connected.lock()[0].clone();
    assert_eq!(conn.remote_addr().to_string(), "203.0.113.7:5555");
    let info = conn.get::<ProxyInfo>().unwrap();
    assert!(info.attributes().contains(&("proxy_protocol_server_port".to_owned(), "9876".to_owned())));
}

#[tokio::test]
async fn a_proxy_header_may_come_in_pieces_and_before_tls() {
    let (server, service) = serve(config());
    let mut stream = tokio::net::TcpStream::connect(server.local_addr()).await.unwrap();
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0C".to_vec();
    header.extend_from_slice(&[198, 51, 100, 1, 10, 0, 0, 1, 0x1F, 0x90, 0x26, 0x94]);
    stream.set_nodelay(true).unwrap();
    for byte in header {
        tokio::io::AsyncWriteExt::write_all(&mut stream, &[byte]).await.unwrap();
    }
    let config = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    // The certificate is self-signed, so this client refuses it; that the server speaks TLS is enough here.
    let refused = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config))
        .connect("localhost".try_into().unwrap(), stream)
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("certificate"), "{refused}");
    let mut raw = Raw::to(server.local_addr()).await;
    raw.send(b"\r\n\r\n\0\r\nQUIT\n\x20\x00\0\0").await;
    raw.send(&encoded(&[Command::request(ECHO)])).await;
    raw.next().await.unwrap();
    let conn = service.connected.lock().last().unwrap().clone();
    assert_eq!(conn.remote_addr().ip().to_string(), "127.0.0.1", "a LOCAL header names nobody");
}

#[tokio::test]
async fn rubbish_instead_of_a_proxy_header_closes() {
    let (server, service) = serve(config());
    let mut raw = Raw::to(server.local_addr()).await;
    raw.send(b"PROXY rubbish\r\n").await;
    assert!(raw.next().await.is_none());
    assert!(service.connected.lock().is_empty(), "the service never met this peer");
}
