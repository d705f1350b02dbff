//! The certificate authority of one run: it signs the certificates for the hosts whose TLS skillbox terminates.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType, SerialNumber,
};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::crypto::ring::sign::any_ecdsa_type;
use rustls::sign::{CertifiedKey, SigningKey};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use skillbox_model::Host;

/// The most certificates that are kept. A run with more hosts gets new ones.
const MAX_KEPT_CERTIFICATES: usize = 256;

/// Why a certificate could not be made.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The system has no random numbers.
    #[error("the system has no random numbers")]
    NoRandomNumbers,
    /// The key or the certificate could not be made.
    #[error("a certificate cannot be made")]
    Certificate(#[from] rcgen::Error),
    /// The key cannot be used for TLS.
    #[error("the key of a certificate cannot be used")]
    Key(#[from] rustls::Error),
}

/// The certificate authority of one run. Its key exists only in the memory of this process, and only as long as the run.
pub(crate) struct RunAuthority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
    /// One key for all hosts: a certificate says who holds it, and that is always this process.
    host_key: KeyPair,
    signing_key: Arc<dyn SigningKey>,
    certificates: Mutex<HashMap<Host, Arc<CertifiedKey>>>,
}

impl RunAuthority {
    /// Makes the keys and the certificate.
    pub fn new() -> Result<Self, AuthorityError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        // Clients compare issuers by name, so each run has its own.
        params.distinguished_name = name(&format!("skillbox run {}", hex(&random_bytes()?)));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.serial_number = Some(serial_number()?);
        let certificate = params.self_signed(&key)?;
        let host_key = KeyPair::generate()?;
        let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(host_key.serialize_der()));
        Ok(Self {
            certificate,
            issuer: Issuer::new(params, key),
            signing_key: any_ecdsa_type(&der)?,
            host_key,
            certificates: Mutex::default(),
        })
    }

    /// The certificate of the authority.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        self.certificate.der()
    }

    /// The certificate for a host, and its key.
    pub fn certificate_for(&self, host: &Host) -> Result<Arc<CertifiedKey>, AuthorityError> {
        let mut certificates = self.certificates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(certificate) = certificates.get(host) {
            return Ok(Arc::clone(certificate));
        }
        if certificates.len() >= MAX_KEPT_CERTIFICATES {
            certificates.clear();
        }
        let certificate = Arc::new(self.sign(host)?);
        certificates.insert(host.clone(), Arc::clone(&certificate));
        Ok(certificate)
    }

    fn sign(&self, host: &Host) -> Result<CertifiedKey, AuthorityError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = name("skillbox");
        params.subject_alt_names = vec![match host {
            Host::Name(name) => SanType::DnsName(name.as_str().try_into()?),
            Host::Address(address) => SanType::IpAddress(IpAddr::to_canonical(address)),
        }];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        params.serial_number = Some(serial_number()?);
        let certificate = params.signed_by(&self.host_key, &self.issuer)?;
        Ok(CertifiedKey::new(
            vec![certificate.der().clone()],
            Arc::clone(&self.signing_key),
        ))
    }
}

impl fmt::Debug for RunAuthority {
    /// Never shows the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunAuthority").finish_non_exhaustive()
    }
}

fn name(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

/// Clients refuse two certificates of one issuer with the same number.
fn serial_number() -> Result<SerialNumber, AuthorityError> {
    let mut bytes = random_bytes()?;
    // The number is positive, and does not begin with a zero byte.
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

/// 128 random bits.
pub(crate) fn random_bytes() -> Result<[u8; 16], AuthorityError> {
    let mut bytes = [0; 16];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| AuthorityError::NoRandomNumbers)?;
    Ok(bytes)
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_kept_for_each_host_and_the_number_is_bounded() {
        let authority = RunAuthority::new().unwrap();
        let certificate = |host: &str| authority.certificate_for(&Host::parse(host).unwrap()).unwrap();
        let first = certificate("a.example");
        assert!(Arc::ptr_eq(&first, &certificate("a.example")));
        assert_ne!(first.cert, certificate("b.example").cert);
        assert_ne!(first.cert, certificate("10.0.0.1").cert);
        for index in 0..MAX_KEPT_CERTIFICATES {
            certificate(&format!("h{index}.example"));
        }
        assert!(authority.certificates.lock().unwrap().len() <= MAX_KEPT_CERTIFICATES);
        let other = RunAuthority::new().unwrap();
        assert_ne!(authority.certificate(), other.certificate());
        assert_eq!(format!("{authority:?}"), "RunAuthority { .. }");
    }
}
