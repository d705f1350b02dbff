//! The options of a bucket.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::Endpoint;

/// The options that the caller passes for an object store. Values of variables may be secrets and are never shown.
#[derive(Clone)]
pub struct BucketOptions {
    /// The variables of the provider's own tools, such as `AWS_ACCESS_KEY_ID`, `GOOGLE_APPLICATION_CREDENTIALS` or
    /// `AZURE_STORAGE_ACCOUNT_KEY`, and the proxy variables. Others are ignored.
    pub variables: BTreeMap<String, String>,
    /// The URL of a server that is compatible with the provider's API.
    pub endpoint: Option<Endpoint>,
    /// The region of the bucket.
    pub region: Option<String>,
    /// A directory of this host for large uploads, and for content that is mounted into workspaces.
    pub scratch: PathBuf,
    /// The timeout of a request, including its retries.
    pub request_timeout: Duration,
}

impl BucketOptions {
    /// Options with only a scratch directory.
    pub fn new(scratch: impl Into<PathBuf>) -> Self {
        Self {
            variables: BTreeMap::new(),
            endpoint: None,
            region: None,
            scratch: scratch.into(),
            request_timeout: Duration::from_secs(90),
        }
    }

    /// The prefixes of the providers' variables.
    pub const VARIABLE_PREFIXES: &'static [&'static str] = &["AWS_", "AZURE_", "GOOGLE_"];
    /// The names of the proxy variables. Lower-case names are accepted as well.
    pub const PROXY_VARIABLES: &'static [&'static str] = &["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"];

    /// The value of a proxy variable. The lower-case name takes precedence.
    pub(super) fn proxy_variable(&self, name: &str) -> Option<&str> {
        let found = self.variables.get(&name.to_ascii_lowercase());
        found.or_else(|| self.variables.get(name)).map(String::as_str)
    }
}

impl fmt::Debug for BucketOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketOptions")
            .field("variables", &self.variables.keys())
            .field("endpoint", &self.endpoint.as_ref().map(Endpoint::as_str))
            .field("region", &self.region)
            .field("scratch", &self.scratch)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s31_secrets_are_not_shown() {
        let options = BucketOptions {
            variables: [("AWS_SECRET_ACCESS_KEY".to_owned(), "hunter2".to_owned())].into(),
            ..BucketOptions::new("")
        };
        let debug_text = format!("{options:?}");
        assert!(
            debug_text.contains("AWS_SECRET_ACCESS_KEY") && !debug_text.contains("hunter2"),
            "{debug_text}"
        );
    }
}
