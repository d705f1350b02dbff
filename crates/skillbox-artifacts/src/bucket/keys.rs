//! The keys of objects: the layout of `layout.rs`, with special characters escaped.

use object_store::path::{DELIMITER, Path};
use skillbox_model::Digest;

use crate::{ArtifactName, Scope, StoreError, layout};

/// The longest key that every provider accepts.
const MAX_KEY_BYTES: usize = 1024;

/// The keys below one prefix of a bucket.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
        }
    }

    pub(crate) fn for_tenant(&self, tenant: &str) -> Self {
        let below = format!("{}{DELIMITER}{}", layout::TENANTS, layout::escape(tenant));
        Self {
            prefix: self.join(&below),
        }
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) fn blob_key(&self, digest: &Digest) -> Path {
        self.key(&layout::blob_path(digest).to_string_lossy())
    }

    /// The key prefix of a scope.
    pub(crate) fn scope_prefix(&self, scope: &Scope) -> Path {
        self.key(&layout::scope_path(scope).to_string_lossy())
    }

    /// The key prefix of the versions of a name.
    pub(crate) fn versions_prefix(&self, scope: &Scope, name: &ArtifactName) -> Result<Path, StoreError> {
        let mut key = layout::scope_path(scope).to_string_lossy().into_owned();
        for part in name.as_str().split('/') {
            key.push_str(DELIMITER);
            key.push_str(layout::NAME_PART_PREFIX);
            key.push_str(&layout::escape(part));
        }
        let path = self.key(&key);
        let bytes =
            path.as_ref().len() + DELIMITER.len() + layout::version_file(u64::MAX, layout::RECORD_EXTENSION).len();
        if bytes > MAX_KEY_BYTES {
            return Err(StoreError::KeyTooLong {
                name: name.clone(),
                bytes,
                max_bytes: MAX_KEY_BYTES,
            });
        }
        Ok(path)
    }

    /// The name and the version of a record's key; none for other keys.
    pub(crate) fn parse_record(&self, scope: &Scope, key: &Path) -> Option<(ArtifactName, u64)> {
        let scope = self.scope_prefix(scope);
        let below = key.as_ref().strip_prefix(scope.as_ref())?.strip_prefix(DELIMITER)?;
        let (parts, file) = below.rsplit_once(DELIMITER)?;
        let (version, layout::RECORD_EXTENSION) = layout::parse_version_file(file)? else {
            return None;
        };
        let parts = parts
            .split(DELIMITER)
            .map(|part| layout::unescape(layout::name_part(part)?));
        let name = parts.collect::<Option<Vec<_>>>()?.join("/");
        Some((ArtifactName::parse(name).ok()?, version))
    }

    pub(crate) fn key(&self, below: &str) -> Path {
        // The parsers of all parts are stricter, so `Path::from` changes nothing.
        Path::from(self.join(below))
    }

    fn join(&self, below: &str) -> String {
        if self.prefix.is_empty() {
            return below.to_owned();
        }
        format!("{}{DELIMITER}{below}", self.prefix)
    }
}

/// The key of one version's record.
pub(crate) fn record_key(versions: &Path, version: u64) -> Path {
    versions
        .clone()
        .join(layout::version_file(version, layout::RECORD_EXTENSION))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ArtifactName {
        ArtifactName::parse(text).unwrap()
    }

    #[test]
    fn keys_are_parsed_back_to_names() {
        let keys = Keys::new("team/x");
        let check = |text: &str, key: &str| {
            let versions = keys.versions_prefix(&Scope::User, &name(text)).unwrap();
            let record = record_key(&versions, 7);
            assert_eq!(record.as_ref(), key);
            assert_eq!(keys.parse_record(&Scope::User, &record), Some((name(text), 7)));
        };
        check("a/b.txt", "team/x/artifacts/user/n-a/n-b.txt/v000007.json");
        check("ü 1/%2F", "team/x/artifacts/user/n-=C3=BC=201/n-=252F/v000007.json");
        check("v000001.json", "team/x/artifacts/user/n-v000001.json/v000007.json");
        for other in [
            "team/x/artifacts/user/v000007.json",
            "team/x/artifacts/user/n-a/other",
            "team/x/artifacts",
        ] {
            assert_eq!(keys.parse_record(&Scope::User, &Path::from(other)), None, "{other}");
        }
    }

    #[test]
    fn tenants_and_scopes_have_separate_keys() {
        let keys = Keys::new("");
        assert_eq!(keys.scope_prefix(&Scope::User).as_ref(), "artifacts/user");
        assert_eq!(keys.for_tenant("t/../u").prefix(), "tenants/t=2F..=2Fu");
    }

    #[test]
    fn keys_that_are_too_long_are_refused() {
        let long = name(&["é".repeat(100).as_str(), &"é".repeat(100)].join("/"));
        let error = Keys::new("").versions_prefix(&Scope::User, &long).unwrap_err();
        assert!(matches!(error, StoreError::KeyTooLong { .. }), "{error}");
        assert!(
            Keys::new("")
                .versions_prefix(&Scope::User, &name(&"e".repeat(200)))
                .is_ok()
        );
    }
}
