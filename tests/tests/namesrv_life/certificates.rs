//! TLS on the name server's port.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use protocol::{Command, request_code as code};
use remoting::{Client, ClientConfig, TlsFiles, TlsSettings};
use rocketmq_tests::wait_until;
use rocketmq_tests::wire::Wire;

use crate::rig::{LIMIT, Plan, ask_ok};

const TIMEOUT: Duration = Duration::from_secs(10);

fn question() -> Command {
    Command::request(code::GET_BROKER_CLUSTER_INFO)
}

fn encrypted(tls: TlsSettings) -> Client {
    Client::new(ClientConfig { tls: Some(tls), ..ClientConfig::default() }, None)
}

/// One question over a connection of its own.
async fn ask(address: SocketAddr, tls: &TlsSettings) -> Result<()> {
    let answer = encrypted(tls.clone()).request(&address.to_string(), question(), TIMEOUT).await?;
    ensure!(answer.code == 0, "{answer:?}");
    Ok(())
}

/// A signer, and certificates by it.
struct Signer {
    cert: rcgen::Certificate,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

struct Pem {
    cert: String,
    key: String,
}

impl Signer {
    fn new() -> Result<Self> {
        let mut params = rcgen::CertificateParams::new(vec![])?;
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate()?;
        Ok(Self { cert: params.self_signed(&key)?, issuer: rcgen::Issuer::new(params, key) })
    }

    fn issue(&self) -> Result<Pem> {
        let key = rcgen::KeyPair::generate()?;
        let cert = rcgen::CertificateParams::new(vec!["any.example".to_owned()])?.signed_by(&key, &self.issuer)?;
        Ok(Pem { cert: cert.pem(), key: key.serialize_pem() })
    }

    /// A file that says to trust this signer.
    fn trust(&self, folder: &Path, name: &str) -> Result<PathBuf> {
        let path = folder.join(name);
        fs::write(&path, self.cert.pem())?;
        Ok(path)
    }
}

/// A client that trusts one signer, and shows a certificate if it has one.
fn client(trust: &Path, identity: Option<(&Path, &Path)>) -> TlsSettings {
    let (cert, key) = identity.map(|(cert, key)| (cert.to_owned(), key.to_owned())).unzip();
    let files = TlsFiles { cert, key, trust: Some(trust.to_owned()), check_peer: true };
    TlsSettings { test_mode: false, client: files, ..TlsSettings::default() }
}

#[tokio::test]
async fn one_port_for_both_kinds_by_default() -> Result<()> {
    let plan = Plan::new("")?;
    let server = plan.start()?;
    ask(server.address, &TlsSettings::default()).await?;
    ask_ok(&mut Wire::connect(server.address)?, &question())?;
    Ok(())
}

#[tokio::test]
async fn each_mode_closes_what_it_does_not_take() -> Result<()> {
    for (mode, takes_plain, takes_tls) in [("enforcing", false, true), ("disabled", true, false)] {
        let plan = Plan::new(&format!("tls.server.mode={mode}"))?;
        let server = plan.start()?;
        let plain = Wire::connect(server.address)?.ask(&question());
        ensure!(plain.is_ok() == takes_plain, "{mode}, plain: {plain:?}");
        let tls = ask(server.address, &TlsSettings::default()).await;
        ensure!(tls.is_ok() == takes_tls, "{mode}, TLS: {tls:?}");
        let log = plan.log()?;
        let refused = log.lines().filter(|line| line.contains("connection closed")).count();
        ensure!(refused == 1, "{mode}: {refused} lines about one refused connection:\n{log}");
    }
    Ok(())
}

#[tokio::test]
async fn a_certificate_is_renewed_while_connections_live() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    let (old, new) = (Signer::new()?, Signer::new()?);
    let pem = old.issue()?;
    fs::write(at("cert.pem"), &pem.cert)?;
    fs::write(at("key.pem"), &pem.key)?;
    let plan = Plan::new(&format!(
        "tls.test.mode.enable=false\ntls.server.certPath={}\ntls.server.keyPath={}",
        at("cert.pem").display(),
        at("key.pem").display()
    ))?;
    let server = plan.start()?;
    let trusts_old = client(&old.trust(folder.path(), "old.pem")?, None);
    let trusts_new = client(&new.trust(folder.path(), "new.pem")?, None);
    let living = encrypted(trusts_old.clone());
    let address = server.address.to_string();
    living.request(&address, question(), TIMEOUT).await?;
    ensure!(ask(server.address, &trusts_new).await.is_err(), "the certificate is not the new one yet");

    let renewed = new.issue()?;
    let half = |text: &str| text[..text.len() / 2].to_owned();
    fs::write(at("cert.pem"), half(&renewed.cert))?;
    fs::write(at("key.pem"), half(&renewed.key))?;
    let logged = |words: &str| plan.log().is_ok_and(|log| log.contains(words));
    wait_until("half-written files are looked at", LIMIT, || logged("TLS files changed but cannot be used"));
    ask(server.address, &trusts_old).await?;

    fs::write(at("cert.pem"), &renewed.cert)?;
    fs::write(at("key.pem"), &renewed.key)?;
    wait_until("the whole pair is loaded", LIMIT, || logged("TLS certificate and key loaded anew"));
    ask(server.address, &trusts_new).await?;
    ensure!(ask(server.address, &trusts_old).await.is_err(), "the old certificate is still shown");
    // It would not get a new connection: this is still the one from before.
    living.request(&address, question(), TIMEOUT).await?;
    ask_ok(&mut Wire::connect(server.address)?, &question())?;
    Ok(())
}

#[tokio::test]
async fn clients_must_prove_who_they_are_when_asked() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    let (ours, stranger) = (Signer::new()?, Signer::new()?);
    let trust = ours.trust(folder.path(), "trust.pem")?;
    let trusted_by_clients = ours.trust(folder.path(), "clients-trust.pem")?;
    for (name, pem) in [("server", ours.issue()?), ("friend", ours.issue()?), ("stranger", stranger.issue()?)] {
        fs::write(at(&format!("{name}.cert")), &pem.cert)?;
        fs::write(at(&format!("{name}.key")), &pem.key)?;
    }
    let plan = Plan::new(&format!(
        "tls.server.mode=enforcing\ntls.test.mode.enable=false\ntls.server.need.client.auth=require\n\
         tls.server.authClient=true\ntls.server.certPath={}\ntls.server.keyPath={}\ntls.server.trustCertPath={}",
        at("server.cert").display(),
        at("server.key").display(),
        trust.display()
    ))?;
    let server = plan.start()?;
    let identity = |name: &str| (at(&format!("{name}.cert")), at(&format!("{name}.key")));
    let with = |name: &str| {
        let (cert, key) = identity(name);
        client(&trusted_by_clients, Some((&cert, &key)))
    };
    ask(server.address, &with("friend")).await?;
    ensure!(ask(server.address, &with("stranger")).await.is_err(), "a stranger's certificate is accepted");
    ensure!(ask(server.address, &client(&trusted_by_clients, None)).await.is_err(), "no certificate is accepted");
    ensure!(Wire::connect(server.address)?.ask(&question()).is_err(), "no encryption is accepted");

    let living = encrypted(with("friend"));
    let address = server.address.to_string();
    living.request(&address, question(), TIMEOUT).await?;
    fs::write(&trust, stranger.cert.pem())?;
    wait_until("the trust file is read anew", LIMIT, || {
        plan.log().is_ok_and(|log| log.contains("TLS certificate and key loaded anew"))
    });
    ask(server.address, &with("stranger")).await?;
    ensure!(ask(server.address, &with("friend")).await.is_err(), "the trust file's old content still counts");
    living.request(&address, question(), TIMEOUT).await?;
    Ok(())
}
