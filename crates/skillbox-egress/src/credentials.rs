//! What a run gets so that skillbox can act for it: a certificate authority that only this run trusts.

use std::sync::Arc;

use crate::authority::{AuthorityError, RunAuthority};
use crate::tls_roots::to_pem;

/// What a run gets so that skillbox can act for it.
#[derive(Clone, Debug, Default)]
pub struct RunCredentials {
    pub(crate) authority: Option<Arc<RunAuthority>>,
    bundle: Option<Arc<str>>,
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
        })
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
