//! Signs a skill with a key, or with a key and its certificate.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_ecdsa_type;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer};
use skillbox_model::SkillName;
use x509_cert::der::{Decode, Encode};

use super::bundle::{
    Bundle, Certificate, CertificateChain, Envelope, EnvelopeSignature, MEDIA_TYPE, PAYLOAD_TYPE, PublicKeyIdentifier,
    VerificationMaterial, signed_bytes,
};
use super::statement::Statement;
use crate::manifest::{SkillManifest, sha256};
use crate::signatures::SignatureError;

/// What a bundle is signed with.
#[derive(Clone, Copy, Debug)]
pub struct BundleSigner<'a> {
    /// The secret key as PEM: an elliptic-curve key on P-256 or P-384, not encrypted.
    pub secret_key: &'a str,
    /// The certificate of that key and those above it, as PEM; empty to sign with the key alone.
    pub certificates: &'a str,
}

/// The content of `skill.oms.sig` for a skill.
pub fn sign_bundle(
    name: &SkillName,
    skill: &SkillManifest,
    signer: BundleSigner<'_>,
) -> Result<String, SignatureError> {
    let error = |problem: String| SignatureError::Key {
        what: "the secret key".to_owned(),
        problem,
    };
    let key = PrivateKeyDer::from_pem_slice(signer.secret_key.as_bytes())
        .map_err(|problem| error(format!("it is not a PEM key without password: {problem}")))?;
    let key = any_ecdsa_type(&key).map_err(|_| error("only keys on P-256 and P-384 are supported".to_owned()))?;
    let public_key = key
        .public_key()
        .ok_or_else(|| error("it has no public key".to_owned()))?;
    let material = verification_material(signer.certificates, &public_key)?;

    let statement = Statement::new(name.as_str(), skill)?;
    let payload = serde_json::to_vec_pretty(&statement).expect("strings serialize");
    let schemes = [
        SignatureScheme::ECDSA_NISTP256_SHA256,
        SignatureScheme::ECDSA_NISTP384_SHA384,
    ];
    let ready = key
        .choose_scheme(&schemes)
        .ok_or_else(|| error("only keys on P-256 and P-384 are supported".to_owned()))?;
    let signature = ready
        .sign(&signed_bytes(&payload))
        .map_err(|problem| error(problem.to_string()))?;
    let bundle = Bundle {
        media_type: MEDIA_TYPE.to_owned(),
        verification_material: material,
        dsse_envelope: Envelope {
            payload: STANDARD.encode(payload),
            payload_type: PAYLOAD_TYPE.to_owned(),
            signatures: vec![EnvelopeSignature {
                sig: STANDARD.encode(signature),
                keyid: Some(String::new()),
            }],
        },
    };
    Ok(serde_json::to_string(&bundle).expect("strings serialize"))
}

fn verification_material(
    certificates: &str,
    public_key: &SubjectPublicKeyInfoDer<'_>,
) -> Result<VerificationMaterial, SignatureError> {
    let error = |problem: String| SignatureError::Key {
        what: "the certificate".to_owned(),
        problem,
    };
    if certificates.trim().is_empty() {
        return Ok(VerificationMaterial {
            public_key: Some(PublicKeyIdentifier {
                hint: Some(key_hint(public_key)),
            }),
            x509_certificate_chain: None,
            tlog_entries: Vec::new(),
        });
    }
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates.as_bytes()).collect();
    let chain = chain.map_err(|problem| error(problem.to_string()))?;
    let leaf = chain
        .first()
        .ok_or_else(|| error("there is no certificate in the file".to_owned()))?;
    let leaf_key = x509_cert::Certificate::from_der(leaf)
        .and_then(|leaf| leaf.tbs_certificate().subject_public_key_info().to_der())
        .map_err(|problem| error(problem.to_string()))?;
    if leaf_key != public_key.as_ref() {
        return Err(error("the first certificate is not that of the secret key".to_owned()));
    }
    let to_entry = |certificate: &CertificateDer<'_>| Certificate {
        raw_bytes: STANDARD.encode(certificate),
    };
    Ok(VerificationMaterial {
        public_key: None,
        x509_certificate_chain: Some(CertificateChain {
            certificates: chain.iter().map(to_entry).collect(),
        }),
        tlog_entries: Vec::new(),
    })
}

/// The identifier of a public key in a bundle: the SHA-256 of its PEM text.
pub(super) fn key_hint(public_key: &SubjectPublicKeyInfoDer<'_>) -> String {
    let encoded = STANDARD.encode(public_key);
    let lines: Vec<&str> = encoded
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap_or_default())
        .collect();
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        lines.join("\n")
    );
    sha256(pem.as_bytes()).hex()
}
