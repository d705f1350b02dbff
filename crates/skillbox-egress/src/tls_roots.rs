//! The certificate authorities that skillbox trusts where it takes the place of a client, and that runs trust.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustls::client::{ClientConfig, Resumption};
use rustls::{RootCertStore, version};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

/// The most bytes of a file with certificates: twice that of the largest common bundle.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The certificate authorities of this host, and further ones of the operator.
#[derive(Clone, Debug, Default)]
pub struct TlsRoots {
    further: Vec<CertificateDer<'static>>,
}

/// Why a file with certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsRootsError {
    /// The file cannot be read.
    #[error("the file cannot be read")]
    Read(#[source] io::Error),
    /// The file is too large.
    #[error("the file has {0} bytes; at most {MAX_FILE_BYTES} are read")]
    TooLarge(u64),
    /// The file contains something else.
    #[error("the file is not a list of certificates in the PEM format")]
    NotPem,
}

impl TlsRoots {
    /// The authorities of this host, and those of a file in the PEM format.
    pub fn with_file(path: &Path) -> Result<Self, TlsRootsError> {
        let length = std::fs::metadata(path).map_err(TlsRootsError::Read)?.len();
        if length > MAX_FILE_BYTES {
            return Err(TlsRootsError::TooLarge(length));
        }
        let pem = std::fs::read(path).map_err(TlsRootsError::Read)?;
        Self::with_pem(&pem)
    }

    /// The authorities of this host, and those of a text in the PEM format.
    pub fn with_pem(pem: &[u8]) -> Result<Self, TlsRootsError> {
        let further = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let further = further.map_err(|_| TlsRootsError::NotPem)?;
        let mut store = RootCertStore::empty();
        if further.is_empty() || further.iter().any(|root| store.add(root.clone()).is_err()) {
            return Err(TlsRootsError::NotPem);
        }
        Ok(Self { further })
    }
}

/// The authorities once they are read.
#[derive(Debug)]
pub(crate) struct LoadedRoots {
    roots: TlsRoots,
    loaded: OnceLock<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    client: Arc<ClientConfig>,
    bundle: Arc<str>,
}

impl LoadedRoots {
    /// The files of the host are read at the first use.
    pub fn new(roots: TlsRoots) -> Self {
        Self {
            roots,
            loaded: OnceLock::new(),
        }
    }

    /// The client side of TLS, which checks the certificate and the name of the server.
    pub fn client(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.load().client)
    }

    /// All authorities in the PEM format.
    pub fn bundle(&self) -> Arc<str> {
        Arc::clone(&self.load().bundle)
    }

    fn load(&self) -> &Loaded {
        self.loaded.get_or_init(|| {
            let found = rustls_native_certs::load_native_certs();
            for error in &found.errors {
                tracing::warn!(%error, "a certificate authority of this host cannot be read");
            }
            let roots: Vec<_> = found.certs.into_iter().chain(self.roots.further.clone()).collect();
            let mut store = RootCertStore::empty();
            // Bundles contain certificates that no current client accepts.
            store.add_parsable_certificates(roots.iter().cloned());
            Loaded {
                client: Arc::new(client_config(store)),
                bundle: roots.iter().map(to_pem).collect::<String>().into(),
            }
        })
    }
}

fn client_config(roots: RootCertStore) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = [&version::TLS13, &version::TLS12];
    #[expect(clippy::expect_used, reason = "the provider supports both versions, as a test shows")]
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .expect("ring supports TLS 1.2 and 1.3");
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    // A resumed connection would connect the requests of two runs in the eyes of the server.
    config.resumption = Resumption::disabled();
    config
}

/// A certificate in the PEM format.
pub(crate) fn to_pem(certificate: &CertificateDer<'static>) -> String {
    let text = BASE64_STANDARD.encode(certificate);
    let mut pem = String::with_capacity(text.len() + text.len() / 64 + 64);
    pem.push_str("-----BEGIN CERTIFICATE-----\n");
    for start in (0..text.len()).step_by(64) {
        pem.push_str(&text[start..text.len().min(start + 64)]);
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::RunAuthority;

    #[test]
    fn only_certificates_are_accepted() {
        let authority = RunAuthority::new().unwrap();
        let pem = to_pem(authority.certificate());
        let roots = TlsRoots::with_pem(pem.as_bytes()).unwrap();
        assert_eq!(roots.further, [authority.certificate().clone()]);
        let loaded = LoadedRoots::new(roots);
        assert!(loaded.bundle().ends_with(&pem));
        loaded.client();
        for text in [
            "",
            "no certificate",
            "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n",
        ] {
            assert!(
                matches!(TlsRoots::with_pem(text.as_bytes()), Err(TlsRootsError::NotPem)),
                "{text}"
            );
        }
        assert!(matches!(
            TlsRoots::with_file(Path::new("/nonexistent")),
            Err(TlsRootsError::Read(_))
        ));
    }
}
