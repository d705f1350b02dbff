//! What a bucket needs besides its address.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// What the host hands in for an object store. Values are secrets and are never shown.
#[derive(Clone)]
pub struct BucketOptions {
    /// Variables as the provider's own tools know them, such as `AWS_ACCESS_KEY_ID`, `GOOGLE_APPLICATION_CREDENTIALS`
    /// or `AZURE_STORAGE_ACCOUNT_KEY`, and those that name proxies. Others are ignored.
    pub variables: BTreeMap<String, String>,
    /// Where a server stands that speaks like the provider's own.
    pub endpoint: Option<String>,
    /// The region of the bucket.
    pub region: Option<String>,
    /// A directory of this host, for content on its way and for what is linked into workspaces.
    pub scratch: PathBuf,
    /// The longest that one question may take, its second and third try included.
    pub patience: Duration,
}

impl BucketOptions {
    /// Nothing but a place for content on its way.
    pub fn new(scratch: impl Into<PathBuf>) -> Self {
        Self {
            variables: BTreeMap::new(),
            endpoint: None,
            region: None,
            scratch: scratch.into(),
            patience: Duration::from_secs(90),
        }
    }

    /// The beginnings of the variables' names that are of use here.
    pub const PREFIXES: &'static [&'static str] = &["AWS_", "AZURE_", "GOOGLE_"];
    /// The variables' names besides, in capital letters; the same in small ones mean the same.
    pub const PROXIES: &'static [&'static str] = &["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"];

    /// A variable under its own name or that in small letters.
    pub(super) fn proxy(&self, name: &str) -> Option<&str> {
        let found = self.variables.get(&name.to_ascii_lowercase());
        found.or_else(|| self.variables.get(name)).map(String::as_str)
    }
}

impl fmt::Debug for BucketOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketOptions")
            .field("variables", &self.variables.keys())
            .field("endpoint", &self.endpoint)
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
        let shown = format!("{options:?}");
        assert!(
            shown.contains("AWS_SECRET_ACCESS_KEY") && !shown.contains("hunter2"),
            "{shown}"
        );
    }
}
