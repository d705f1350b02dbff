//! Publishers, whose keys the operator configured, and the result of a check.

use minisign_verify::PublicKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use serde::Serialize;
use skillbox_model::PublisherName;

use super::error::SignatureError;
use super::key_algorithms::SUPPORTED_ALGORITHMS;

/// A publisher and its keys.
#[derive(Clone, Debug)]
pub struct Publisher {
    /// The name in the configuration.
    pub name: PublisherName,
    pub(super) minisign_keys: Vec<PublicKey>,
    pub(super) bundle_keys: Vec<SubjectPublicKeyInfoDer<'static>>,
    pub(super) root_certificates: Vec<CertificateDer<'static>>,
}

impl Publisher {
    /// A publisher without keys.
    pub fn new(name: PublisherName) -> Self {
        Self {
            name,
            minisign_keys: Vec::new(),
            bundle_keys: Vec::new(),
            root_certificates: Vec::new(),
        }
    }

    /// Adds a key. The form decides the kind: a PEM public key (P-256 or P-384) or PEM certificates for bundles; a
    /// minisign public key as its file or as its base64 line.
    pub fn add_key(&mut self, text: &str) -> Result<(), SignatureError> {
        let error = |problem: String| SignatureError::Key {
            what: format!("a key of the publisher {}", self.name),
            problem,
        };
        if text.contains("-----BEGIN CERTIFICATE-----") {
            let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
            let certificates = certificates.map_err(|problem| error(problem.to_string()))?;
            for certificate in &certificates {
                webpki::anchor_from_trusted_cert(certificate)
                    .map_err(|problem| error(format!("a certificate is not valid: {problem}")))?;
            }
            self.root_certificates.extend(certificates);
        } else if text.contains("-----BEGIN PUBLIC KEY-----") {
            let key = SubjectPublicKeyInfoDer::from_pem_slice(text.as_bytes())
                .map_err(|problem| error(problem.to_string()))?;
            if !is_supported_key(&key) {
                return Err(error(
                    "only elliptic-curve keys on P-256 and P-384 are supported".to_owned(),
                ));
            }
            self.bundle_keys.push(key);
        } else if text.contains("PRIVATE KEY") || text.contains("secret key") {
            return Err(error("it is a secret key; configure the public key".to_owned()));
        } else {
            let line = text
                .lines()
                .map(str::trim)
                .rfind(|line| !line.is_empty())
                .unwrap_or_default();
            let key = PublicKey::from_base64(line).map_err(|_| {
                error("it is neither a minisign public key, a PEM public key nor a PEM certificate".to_owned())
            })?;
            self.minisign_keys.push(key);
        }
        Ok(())
    }
}

/// Whether a signature check with this key can succeed. The check of an empty signature tells the two cases apart.
fn is_supported_key(key: &SubjectPublicKeyInfoDer<'_>) -> bool {
    SUPPORTED_ALGORITHMS.iter().any(|algorithm| {
        webpki::RawPublicKeyEntity::try_from(key).is_ok_and(|entity| {
            matches!(
                entity.verify_signature(*algorithm, b"", b""),
                Err(webpki::Error::InvalidSignatureForPublicKey)
            )
        })
    })
}

/// How a skill is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SignatureMethod {
    /// minisign over `skill.manifest`.
    Minisign,
    /// A bundle that was signed with a key.
    BundleKey,
    /// A bundle that was signed with a certificate.
    BundleCertificate,
}

/// A valid signature over all files of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ValidSignature {
    /// Who signed.
    pub publisher: PublisherName,
    /// How.
    pub method: SignatureMethod,
    /// Whether it says which files are executable. A bundle by model_signing lists contents only.
    pub covers_modes: bool,
}

/// The result of checking the signatures of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureStatus {
    /// There is no signature.
    Unsigned,
    /// Every signature that the skill has is valid.
    Valid(Vec<ValidSignature>),
    /// A signature is not valid.
    Invalid(String),
}
