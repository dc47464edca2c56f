//! Outbound TLS.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::files::{Identity, roots};
use super::trust::{AnyName, TrustAll};
use super::{TlsError, TlsSettings, provider};

pub(crate) struct ClientTls {
    connector: TlsConnector,
}

impl ClientTls {
    pub(crate) fn new(settings: &TlsSettings) -> Result<Self, TlsError> {
        let builder = rustls::ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier(settings)?);
        let files = &settings.client;
        let config = match (&files.cert, &files.key) {
            (Some(cert), Some(key)) if !settings.test_mode => {
                let identity = Identity::read(cert, key)?;
                builder.with_client_auth_cert(identity.chain, identity.key)?
            }
            _ => builder.with_no_client_auth(),
        };
        Ok(Self { connector: TlsConnector::from(Arc::new(config)) })
    }

    /// `host` is a name or an address, without its port.
    pub(crate) async fn connect(&self, host: &str, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidInput, error))?;
        self.connector.connect(name, stream).await
    }
}

fn verifier(settings: &TlsSettings) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    if settings.test_mode || !settings.client.check_peer {
        return Ok(Arc::new(TrustAll { provider: provider(), mandatory: false }));
    }
    let trust = settings.client.trust.as_deref().ok_or(TlsError::NotSet { key: "tls.client.trustCertPath" })?;
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots(trust)?), provider()).build()?;
    Ok(Arc::new(AnyName(inner)))
}
