//! The algorithms of keys and certificates for bundles.

use rustls_pki_types::SignatureVerificationAlgorithm;
use webpki::ring::{ECDSA_P256_SHA256, ECDSA_P384_SHA384};

/// The algorithms of signatures by keys and leaf certificates: each curve with its own hash, as model_signing has them.
pub(super) static SUPPORTED_ALGORITHMS: [&dyn SignatureVerificationAlgorithm; 2] =
    [ECDSA_P256_SHA256, ECDSA_P384_SHA384];
