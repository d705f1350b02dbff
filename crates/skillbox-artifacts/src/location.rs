//! The location of a store: a directory, or a prefix in a bucket.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::url_display::without_credentials;

/// The location of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A directory of this host.
    Directory(PathBuf),
    /// A prefix in a bucket of an object store.
    Bucket(Bucket),
}

/// A prefix in a bucket of an object store.
///
/// Invariants: the authority names a bucket or container and contains no password; the prefix has no empty, `.` or `..`
/// component, no control character, and no slash at either end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub(crate) provider: Provider,
    pub(crate) scheme: &'static str,
    pub(crate) authority: String,
    pub(crate) prefix: String,
}

/// The API of an object store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Amazon S3 and compatible stores.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage.
    Azure,
}

/// Why a text is not a location. The texts contain no credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// It is empty.
    #[error("the location is empty")]
    Empty,
    /// The scheme is unknown.
    #[error("{0:?} is not a supported scheme: use a directory, s3://, gs://, az://, abfss:// or file://")]
    Scheme(String),
    /// The bucket is missing or contains invalid characters.
    #[error("{0:?} does not name a bucket or container")]
    Authority(String),
    /// The path is invalid.
    #[error("{0:?} has an empty, `.` or `..` component, a control character, a `?` or a `#` in its path")]
    Prefix(String),
}

const SCHEMES: &[(&str, Provider)] = &[
    ("s3", Provider::S3),
    ("gs", Provider::Google),
    ("az", Provider::Azure),
    ("abfss", Provider::Azure),
];

impl Location {
    /// Parses a URL, or takes the text as a directory relative to `base`.
    pub fn parse(text: &str, base: &Path) -> Result<Self, LocationError> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return match text {
                "" => Err(LocationError::Empty),
                path => Ok(Self::Directory(base.join(path))),
            };
        };
        if scheme == "file" {
            let path = Path::new(rest);
            let is_plain = path.is_absolute() && !rest.contains(['%', '?', '#']);
            return is_plain
                .then(|| Self::Directory(path.to_owned()))
                .ok_or_else(|| LocationError::Prefix(without_credentials(text)));
        }
        let supported = SCHEMES.iter().find(|(supported, _)| *supported == scheme);
        let (scheme, provider) = *supported.ok_or_else(|| LocationError::Scheme(format!("{scheme}://")))?;
        let (authority, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if !is_authority(scheme, authority) {
            return Err(LocationError::Authority(without_credentials(text)));
        }
        let prefix = prefix.trim_end_matches('/');
        let is_invalid = |part: &str| matches!(part, "" | "." | "..") || part.chars().any(is_invalid_character);
        if !prefix.is_empty() && prefix.split('/').any(is_invalid) {
            return Err(LocationError::Prefix(without_credentials(text)));
        }
        Ok(Self::Bucket(Bucket {
            provider,
            scheme,
            authority: authority.to_owned(),
            prefix: prefix.to_owned(),
        }))
    }
}

/// Characters that indicate a mistake, such as those of a query or an encoded URL.
fn is_invalid_character(c: char) -> bool {
    c.is_control() || matches!(c, '?' | '#' | '%' | '\\')
}

/// Whether the authority is `bucket`, or `container@account.host` for `abfss`.
fn is_authority(scheme: &str, authority: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
    };
    match authority.split_once('@') {
        Some((container, host)) => scheme == "abfss" && is_name(container) && is_name(host),
        None => is_name(authority),
    }
}

impl Bucket {
    /// The provider of the store.
    pub fn provider(&self) -> Provider {
        self.provider
    }

    /// The URL of the bucket, without the prefix.
    pub(crate) fn root_url(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }
}

impl Provider {
    /// How to set the credentials.
    pub(crate) fn credentials_hint(self) -> &'static str {
        match self {
            Self::S3 => "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of an account with read and write access",
            Self::Google => "set GOOGLE_APPLICATION_CREDENTIALS to those of an account with read and write access",
            Self::Azure => {
                "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY of an account with read and write access"
            }
        }
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.root_url())?;
        if self.prefix.is_empty() {
            return Ok(());
        }
        write!(f, "/{}", self.prefix)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => path.display().fmt(f),
            Self::Bucket(bucket) => bucket.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_and_urls_are_distinguished() {
        let check = |text: &str, displayed: &str| {
            let location = Location::parse(text, Path::new("/base")).unwrap();
            assert_eq!(location.to_string(), displayed, "{text}");
        };
        check("kept", "/base/kept");
        check("/srv/kept", "/srv/kept");
        check("file:///srv/kept", "/srv/kept");
        check("s3://bucket", "s3://bucket");
        check("s3://bucket/", "s3://bucket");
        check("s3://bucket/team a/x/", "s3://bucket/team a/x");
        check("gs://bucket/x", "gs://bucket/x");
        check("az://container/x", "az://container/x");
        check(
            "abfss://c@account.dfs.core.windows.net/x",
            "abfss://c@account.dfs.core.windows.net/x",
        );
    }

    #[test]
    fn invalid_locations_are_refused() {
        for bad in [
            "",
            "ftp://x",
            "s3://",
            "s3:///x",
            "s3://a b",
            "s3://bucket//x",
            "s3://bucket/../x",
            "s3://bucket/x?versionId=1",
            "s3://bucket/x%2fy",
            "file://relative",
            "abfss://a@b@c/x",
        ] {
            assert!(Location::parse(bad, Path::new("/base")).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn s31_a_password_in_a_url_is_refused_and_not_repeated() {
        for text in [
            "s3://key:SECRET@bucket/x",
            "s3://key:SEC/RET@bucket/x",
            "s3://key:/SECRET@bucket/x",
            "s3://key:SECRET/bucket",
            "s3://bucket/SEC//RET@x",
            "file://key:SEC/RET@bucket",
        ] {
            let error = Location::parse(text, Path::new("")).unwrap_err().to_string();
            assert!(!error.contains("SEC") && !error.contains("RET"), "{text}: {error}");
        }
    }
}
