//! The Sigstore bundle, version 0.3, around a DSSE envelope.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::signatures::{BUNDLE_FILE, SignatureError};

pub(super) const MEDIA_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
pub(super) const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
/// Enough for a statement about 100,000 files.
const MAX_BUNDLE_BYTES: usize = 48 << 20;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Bundle {
    pub(super) media_type: String,
    pub(super) verification_material: VerificationMaterial,
    pub(super) dsse_envelope: Envelope,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct VerificationMaterial {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) public_key: Option<PublicKeyIdentifier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) x509_certificate_chain: Option<CertificateChain>,
    /// Entries of a transparency log; none for keys and certificates, which are verified offline.
    #[serde(default)]
    pub(super) tlog_entries: Vec<serde_json::Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublicKeyIdentifier {
    #[serde(default)]
    pub(super) hint: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CertificateChain {
    pub(super) certificates: Vec<Certificate>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Certificate {
    pub(super) raw_bytes: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Envelope {
    pub(super) payload: String,
    pub(super) payload_type: String,
    pub(super) signatures: Vec<EnvelopeSignature>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EnvelopeSignature {
    pub(super) sig: String,
    #[serde(default)]
    pub(super) keyid: Option<String>,
}

impl Bundle {
    pub(super) fn parse(content: &[u8]) -> Result<Self, SignatureError> {
        if content.len() > MAX_BUNDLE_BYTES {
            return Err(malformed(format!("it has more than {MAX_BUNDLE_BYTES} bytes")));
        }
        let bundle: Self = serde_json::from_slice(content).map_err(|error| malformed(error.to_string()))?;
        if bundle.media_type != MEDIA_TYPE {
            return Err(malformed(format!("its mediaType is not {MEDIA_TYPE}")));
        }
        if bundle.dsse_envelope.payload_type != PAYLOAD_TYPE {
            return Err(malformed(format!("its payloadType is not {PAYLOAD_TYPE}")));
        }
        if bundle.dsse_envelope.signatures.len() != 1 {
            return Err(malformed("it has not exactly one signature".to_owned()));
        }
        // Nothing that the signature does not cover may have a text of its own.
        let has_key_id = |signature: &EnvelopeSignature| signature.keyid.as_deref().is_some_and(|id| !id.is_empty());
        if !bundle.verification_material.tlog_entries.is_empty()
            || bundle.dsse_envelope.signatures.iter().any(has_key_id)
        {
            return Err(malformed(
                "it has entries of a transparency log or a key id, which are not checked".to_owned(),
            ));
        }
        Ok(bundle)
    }
}

impl Envelope {
    pub(super) fn payload(&self) -> Result<Vec<u8>, SignatureError> {
        decode(&self.payload, "the payload")
    }

    pub(super) fn signature(&self) -> Result<Vec<u8>, SignatureError> {
        decode(&self.signatures[0].sig, "the signature")
    }
}

pub(super) fn decode(text: &str, what: &str) -> Result<Vec<u8>, SignatureError> {
    STANDARD
        .decode(text)
        .map_err(|error| malformed(format!("{what} is not base64: {error}")))
}

pub(super) fn malformed(problem: String) -> SignatureError {
    SignatureError::Malformed {
        file: BUNDLE_FILE,
        problem,
    }
}

/// The bytes that are signed (DSSE, version 1, pre-authentication encoding).
pub(super) fn signed_bytes(payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}
