//! Checks a bundle with the keys and root certificates of publishers.

use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer, UnixTime};
use x509_cert::der::Decode;
use x509_cert::ext::pkix::KeyUsage;

use super::bundle::{Bundle, CertificateChain, decode, malformed, signed_bytes};
use super::sign_bundle::key_hint;
use super::statement::Statement;
use crate::manifest::SkillManifest;
use crate::signatures::key_algorithms::SUPPORTED_ALGORITHMS;
use crate::signatures::{BUNDLE_FILE, Publisher, SignatureError, SignatureMethod, ValidSignature};

/// The OID of code signing, 1.3.6.1.5.5.7.3.3.
const CODE_SIGNING: &[u8] = &[43, 6, 1, 5, 5, 7, 3, 3];
/// A chain has a leaf, some intermediates and a root.
const MAX_CERTIFICATES: usize = 10;

/// Checks a signature with the keys of one publisher. The error is the reason why none of them made it.
type PublisherCheck<'a> = Box<dyn Fn(&Publisher) -> Result<(), String> + 'a>;

/// Checks the signature first, then compares the files of the skill with the signed list.
pub(in crate::signatures) fn check_bundle(
    publishers: &[Publisher],
    skill: &SkillManifest,
    content: &[u8],
) -> Result<ValidSignature, SignatureError> {
    let bundle = Bundle::parse(content)?;
    let payload = bundle.dsse_envelope.payload()?;
    let signature = bundle.dsse_envelope.signature()?;
    let signed = &signed_bytes(&payload);
    let signature = &signature;
    let material = &bundle.verification_material;
    let (method, check): (_, PublisherCheck<'_>) = match (&material.public_key, &material.x509_certificate_chain) {
        (Some(identifier), None) => {
            let hint = identifier.hint.as_deref();
            let check = move |publisher: &Publisher| check_key(publisher, hint, signed, signature);
            (SignatureMethod::BundleKey, Box::new(check))
        }
        (None, Some(chain)) => {
            let chain = decode_chain(chain)?;
            let check = move |publisher: &Publisher| check_certificates(publisher, &chain, signed, signature);
            (SignatureMethod::BundleCertificate, Box::new(check))
        }
        _ => {
            return Err(malformed(
                "it has neither a public key nor a chain of certificates; keyless signatures are not supported"
                    .to_owned(),
            ));
        }
    };
    let mut problems = Vec::new();
    let signer = publishers.iter().find(|publisher| match check(publisher) {
        Ok(()) => true,
        Err(problem) => {
            problems.push(format!("{}: {problem}", publisher.name));
            false
        }
    });
    let Some(signer) = signer else {
        return Err(SignatureError::NoPublisher {
            file: BUNDLE_FILE,
            publishers: problems,
        });
    };
    let statement = Statement::parse(&payload)?;
    statement.check_files(skill)?;
    Ok(ValidSignature {
        publisher: signer.name.clone(),
        method,
        covers_modes: statement.covers_modes(),
    })
}

fn check_key(publisher: &Publisher, hint: Option<&str>, signed: &[u8], signature: &[u8]) -> Result<(), String> {
    if publisher.bundle_keys.is_empty() {
        return Err("no key for bundles".to_owned());
    }
    let fits_hint =
        |key: &&SubjectPublicKeyInfoDer<'_>| hint.is_none_or(|hint| hint.is_empty() || hint == key_hint(key));
    let mut keys = publisher.bundle_keys.iter().filter(fits_hint).peekable();
    if keys.peek().is_none() {
        return Err("signed with another key".to_owned());
    }
    let is_signer = |key: &SubjectPublicKeyInfoDer<'_>| {
        let verify = |algorithm: &&dyn SignatureVerificationAlgorithm| {
            webpki::RawPublicKeyEntity::try_from(key)
                .is_ok_and(|entity| entity.verify_signature(*algorithm, signed, signature).is_ok())
        };
        SUPPORTED_ALGORITHMS.iter().any(verify)
    };
    if keys.any(is_signer) {
        Ok(())
    } else {
        Err("the signed text was changed, or another key signed it".to_owned())
    }
}

fn decode_chain(chain: &CertificateChain) -> Result<Vec<CertificateDer<'static>>, SignatureError> {
    if chain.certificates.is_empty() || chain.certificates.len() > MAX_CERTIFICATES {
        return Err(malformed(format!(
            "it does not have 1 to {MAX_CERTIFICATES} certificates"
        )));
    }
    let decode_one = |certificate: &super::bundle::Certificate| decode(&certificate.raw_bytes, "a certificate");
    chain
        .certificates
        .iter()
        .map(|certificate| decode_one(certificate).map(CertificateDer::from))
        .collect()
}

/// Checks the chain up to a root of the publisher, the purpose of the leaf, and the signature.
///
/// The chain is checked for the time at which the leaf became valid, as model_signing does: a bundle has no
/// trustworthy time of signature, and a signature stays valid after its certificate has expired.
fn check_certificates(
    publisher: &Publisher,
    chain: &[CertificateDer<'_>],
    signed: &[u8],
    signature: &[u8],
) -> Result<(), String> {
    if publisher.root_certificates.is_empty() {
        return Err("no root certificate".to_owned());
    }
    let text = |error: webpki::Error| format!("its certificate is not accepted: {error}");
    let anchors: Vec<_> = publisher
        .root_certificates
        .iter()
        .filter_map(|certificate| webpki::anchor_from_trusted_cert(certificate).ok())
        .collect();
    let leaf = webpki::EndEntityCert::try_from(&chain[0]).map_err(text)?;
    let parsed = x509_cert::Certificate::from_der(&chain[0]).map_err(|error| format!("its certificate: {error}"))?;
    let valid_from = parsed.tbs_certificate().validity().not_before.to_unix_duration();
    leaf.verify_for_usage(
        webpki::ALL_VERIFICATION_ALGS,
        &anchors,
        &chain[1..],
        UnixTime::since_unix_epoch(valid_from),
        webpki::KeyUsage::required_if_present(CODE_SIGNING),
        None,
        None,
    )
    .map_err(text)?;
    let usage = parsed
        .tbs_certificate()
        .get_extension::<KeyUsage>()
        .map_err(|error| format!("its certificate: {error}"))?;
    if !usage.is_some_and(|(_, usage)| usage.digital_signature()) {
        return Err("its certificate is not for digital signatures".to_owned());
    }
    let verify =
        |algorithm: &&dyn SignatureVerificationAlgorithm| leaf.verify_signature(*algorithm, signed, signature).is_ok();
    if SUPPORTED_ALGORITHMS.iter().any(verify) {
        Ok(())
    } else {
        Err("the signed text was changed".to_owned())
    }
}
