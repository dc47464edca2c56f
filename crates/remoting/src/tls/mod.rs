//! TLS on both sides, with RocketMQ's settings and its defaults: permissive, and with a certificate generated at start.

mod client;
mod files;
mod prefixed;
mod server;
mod trust;
mod watch;

use std::path::PathBuf;

pub(crate) use client::ClientTls;
pub(crate) use prefixed::Prefixed;
pub(crate) use server::ServerTls;

/// Whether a listener speaks TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsMode {
    /// Peers that begin with TLS are closed.
    Disabled,
    /// The first byte decides.
    #[default]
    Permissive,
    /// Peers that do not begin with TLS are closed.
    Enforcing,
}

/// Whether peers must show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientAuth {
    #[default]
    None,
    Optional,
    Require,
}

/// One side's files, all PEM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    pub key: Option<PathBuf>,
    pub cert: Option<PathBuf>,
    /// The certificates to check the peer's against.
    pub trust: Option<PathBuf>,
    /// `false` trusts every peer.
    pub check_peer: bool,
}

/// RocketMQ's `tls.*` settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// `tls.test.mode.enable`: listeners generate a certificate, clients trust everything, files are not read.
    pub test_mode: bool,
    /// `tls.server.mode`
    pub mode: TlsMode,
    /// `tls.server.need.client.auth`
    pub client_auth: ClientAuth,
    /// `tls.server.keyPath`, `.certPath`, `.authClient`, `.trustCertPath`
    pub server: TlsFiles,
    /// `tls.client.keyPath`, `.certPath`, `.authServer`, `.trustCertPath`
    pub client: TlsFiles,
    /// `tls.enable`: whether outbound connections speak TLS.
    pub enable: bool,
}

impl Default for TlsSettings {
    fn default() -> Self {
        Self {
            test_mode: true,
            mode: TlsMode::Permissive,
            client_auth: ClientAuth::None,
            server: TlsFiles::default(),
            client: TlsFiles::default(),
            enable: false,
        }
    }
}

impl TlsSettings {
    /// Sets one of RocketMQ's `tls.*` keys. `Ok(false)` when the key is none of them; an error says why the value
    /// cannot be used.
    pub fn set(&mut self, key: &str, value: &str) -> Result<bool, String> {
        let value = value.trim();
        let flag = value.eq_ignore_ascii_case("true");
        let path = || (!value.is_empty()).then(|| PathBuf::from(value));
        match key {
            "tls.test.mode.enable" => self.test_mode = flag,
            "tls.enable" => self.enable = flag,
            "tls.server.mode" => {
                self.mode = match value {
                    "disabled" => TlsMode::Disabled,
                    "enforcing" => TlsMode::Enforcing,
                    // As in Java, everything else is permissive.
                    _ => TlsMode::Permissive,
                }
            }
            "tls.server.need.client.auth" => {
                self.client_auth = match value {
                    "none" | "" => ClientAuth::None,
                    "optional" => ClientAuth::Optional,
                    "require" => ClientAuth::Require,
                    other => return Err(format!("{key} is none, optional or require, not {other:?}")),
                }
            }
            "tls.server.keyPath" => self.server.key = path(),
            "tls.server.certPath" => self.server.cert = path(),
            "tls.server.authClient" => self.server.check_peer = flag,
            "tls.server.trustCertPath" => self.server.trust = path(),
            "tls.client.keyPath" => self.client.key = path(),
            "tls.client.certPath" => self.client.cert = path(),
            "tls.client.authServer" => self.client.check_peer = flag,
            "tls.client.trustCertPath" => self.client.trust = path(),
            "tls.server.keyPassword" | "tls.client.keyPassword" => {
                if !value.is_empty() {
                    return Err(format!("{key}: encrypted private keys are not supported, decrypt the file"));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether outbound connections speak TLS: asked for, or implied by an enforcing listener.
    pub fn outbound(&self) -> bool {
        self.enable || self.mode == TlsMode::Enforcing
    }
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{} holds no {what} in PEM form", path.display())]
    Empty { path: PathBuf, what: &'static str },
    #[error("{key} is not set, and test mode is off")]
    NotSet { key: &'static str },
    #[error("cannot generate a certificate: {0}")]
    Generate(#[from] rcgen::Error),
    #[error("{0}")]
    Rustls(#[from] rustls::Error),
    #[error("cannot use the trusted certificates: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

impl From<TlsError> for std::io::Error {
    fn from(error: TlsError) -> Self {
        Self::new(std::io::ErrorKind::InvalidInput, error)
    }
}

/// The cryptography under everything here.
fn provider() -> std::sync::Arc<rustls::crypto::CryptoProvider> {
    std::sync::Arc::new(rustls::crypto::ring::default_provider())
}
