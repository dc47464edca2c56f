//! Keys and certificates out of PEM files, or made up.

use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::TlsError;

/// A certificate chain and its key.
pub(super) struct Identity {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl Identity {
    pub(super) fn read(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let chain = certificates(cert)?;
        let key = PrivateKeyDer::from_pem_slice(&read(key)?)
            .map_err(|_| TlsError::Empty { path: key.to_owned(), what: "private key" })?;
        Ok(Self { chain, key })
    }

    /// A self-signed certificate for this process.
    pub(super) fn generate() -> Result<Self, TlsError> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Ok(Self { chain: vec![made.cert.der().clone()], key: key.into() })
    }
}

pub(super) fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(path)? {
        store.add(certificate)?;
    }
    Ok(store)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let none = || TlsError::Empty { path: path.to_owned(), what: "certificate" };
    let list: Vec<_> = CertificateDer::pem_slice_iter(&read(path)?).collect::<Result<_, _>>().map_err(|_| none())?;
    if list.is_empty() { Err(none()) } else { Ok(list) }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}
