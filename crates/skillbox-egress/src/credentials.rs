//! What a run gets so that skillbox can act for it: a certificate authority that only this run trusts, and placeholders
//! for its secrets.

use std::sync::Arc;

use skillbox_model::{GrantedSecret, SecretName};

use crate::authority::{AuthorityError, RunAuthority};
use crate::placeholder::PlaceholderSet;
use crate::redact::{Redactor, RedactorError};
use crate::tls_roots::to_pem;

/// What a run gets so that skillbox can act for it.
#[derive(Clone, Debug, Default)]
pub struct RunCredentials {
    pub(crate) authority: Option<Arc<RunAuthority>>,
    bundle: Option<Arc<str>>,
    pub(crate) placeholders: Arc<PlaceholderSet>,
    pub(crate) redactor: Redactor,
}

/// Why a run cannot get credentials.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The certificate authority or the placeholders could not be made.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The values could not be removed from answers.
    #[error(transparent)]
    Redactor(#[from] RedactorError),
}

impl RunCredentials {
    /// For a run none of whose connections is terminated.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// For a run with connections that are terminated. `roots` are the authorities for its other connections.
    pub(crate) fn with_authority(roots: &str) -> Result<Self, AuthorityError> {
        let authority = RunAuthority::new()?;
        let bundle = [roots, &to_pem(authority.certificate())].concat();
        Ok(Self {
            authority: Some(Arc::new(authority)),
            bundle: Some(bundle.into()),
            ..Self::default()
        })
    }

    /// Adds placeholders for the secrets that are replaced outside the sandbox.
    pub(crate) fn with_secrets(mut self, secrets: &[GrantedSecret]) -> Result<Self, CredentialsError> {
        self.redactor = Redactor::new(secrets.iter().map(|secret| (&secret.name, &secret.value)))?;
        self.placeholders = Arc::new(PlaceholderSet::issue(secrets)?);
        Ok(self)
    }

    /// The secrets that the run uses by placeholders, with these.
    pub fn placeholders(&self) -> impl Iterator<Item = (&SecretName, &str)> {
        self.placeholders
            .iter()
            .map(|secret| (&secret.name, secret.placeholder.as_str()))
    }

    /// The authorities that the run has to trust, in the PEM format: those of the host and its own. None if the run needs
    /// no authority of its own.
    pub fn certificate_bundle(&self) -> Option<&str> {
        self.bundle.as_deref()
    }

    /// The certificate of the run's own authority (DER).
    pub fn own_certificate(&self) -> Option<&[u8]> {
        self.authority
            .as_ref()
            .map(|authority| authority.certificate().as_ref())
    }
}
