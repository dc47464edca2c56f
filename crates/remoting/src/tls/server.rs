//! The listener's TLS context and its renewal while connections live.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use tokio_rustls::TlsAcceptor;

use super::files::{Identity, roots};
use super::trust::TrustAll;
use super::watch::{FileHashes, Watch};
use super::{ClientAuth, TlsError, TlsFiles, TlsMode, TlsSettings, provider};

/// How often the files are looked at.
const WATCH_PERIOD: Duration = Duration::from_millis(500);

pub(crate) struct ServerTls {
    current: Arc<ArcSwap<rustls::ServerConfig>>,
    watcher: Option<tokio::task::JoinHandle<()>>,
}

impl ServerTls {
    /// `None` when the listener never speaks TLS.
    pub(crate) fn new(settings: &TlsSettings) -> Result<Option<Self>, TlsError> {
        if settings.mode == TlsMode::Disabled {
            return Ok(None);
        }
        let current = Arc::new(ArcSwap::from_pointee(load(settings)?));
        let watcher = (!settings.test_mode).then(|| tokio::spawn(watch(settings.clone(), current.clone())));
        Ok(Some(Self { current, watcher }))
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.current.load_full())
    }
}

impl Drop for ServerTls {
    fn drop(&mut self) {
        if let Some(watcher) = &self.watcher {
            watcher.abort();
        }
    }
}

fn load(settings: &TlsSettings) -> Result<rustls::ServerConfig, TlsError> {
    let identity = if settings.test_mode {
        Identity::generate()?
    } else {
        let cert = settings.server.cert.as_deref().ok_or(TlsError::NotSet { key: "tls.server.certPath" })?;
        let key = settings.server.key.as_deref().ok_or(TlsError::NotSet { key: "tls.server.keyPath" })?;
        Identity::read(cert, key)?
    };
    let builder = rustls::ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let builder = match client_verifier(settings)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    Ok(builder.with_single_cert(identity.chain, identity.key)?)
}

fn client_verifier(settings: &TlsSettings) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
    // In test mode Java asks for a certificate, takes any, and goes on without one.
    let auth = if settings.test_mode { ClientAuth::Optional } else { settings.client_auth };
    if auth == ClientAuth::None {
        return Ok(None);
    }
    let mandatory = auth == ClientAuth::Require;
    if settings.test_mode || !settings.server.check_peer {
        return Ok(Some(Arc::new(TrustAll { provider: provider(), mandatory })));
    }
    let trust = settings.server.trust.as_deref().ok_or(TlsError::NotSet { key: "tls.server.trustCertPath" })?;
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(trust)?), provider());
    let builder = if mandatory { builder } else { builder.allow_unauthenticated() };
    Ok(Some(builder.build()?))
}

/// Looks at the files now and then; new connections get what was loaded last.
async fn watch(settings: TlsSettings, current: Arc<ArcSwap<rustls::ServerConfig>>) {
    let hashes = |files: &TlsFiles| {
        let files = files.clone();
        // The files may lie on a slow disk.
        tokio::task::spawn_blocking(move || FileHashes::of(&files))
    };
    let Ok(first) = hashes(&settings.server).await else {
        return;
    };
    let mut watch = Watch::new(first);
    loop {
        tokio::time::sleep(WATCH_PERIOD).await;
        let Ok(seen) = hashes(&settings.server).await else {
            return;
        };
        if !watch.should_reload(seen) {
            continue;
        }
        let loading = settings.clone();
        match tokio::task::spawn_blocking(move || load(&loading)).await {
            Ok(Ok(config)) => {
                current.store(Arc::new(config));
                watch.reloaded();
                tracing::info!("TLS certificate and key loaded anew");
            }
            // Perhaps half-written; the next change is another chance.
            Ok(Err(error)) => tracing::warn!(%error, "TLS files changed but cannot be used, keeping the old ones"),
            Err(_) => return,
        }
    }
}
