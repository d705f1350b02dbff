//! Where a store lies: a directory, or a place in a bucket.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a store lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// Below a directory of this host.
    Directory(PathBuf),
    /// In an object store.
    Bucket(Bucket),
}

/// A place in an object store.
///
/// Invariants: the authority names a bucket or container and carries no password; the prefix has no empty, `.` or `..`
/// component, no control character, and no slash at either end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub(crate) provider: Provider,
    pub(crate) scheme: &'static str,
    pub(crate) authority: String,
    pub(crate) prefix: String,
}

/// Whose interface an object store speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Amazon S3, and everything that speaks like it.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage.
    Azure,
}

/// Why a text names no place for a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// Nothing at all.
    #[error("the location is empty")]
    Empty,
    /// A scheme that no provider has.
    #[error("{0:?} is no kind of store: a directory, s3://, gs://, az://, abfss:// and file:// are known")]
    Scheme(String),
    /// No bucket, or one with characters that none has.
    #[error("{0:?} names no bucket or container")]
    Authority(String),
    /// A path that leads nowhere.
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
                .ok_or_else(|| LocationError::Prefix(text.to_owned()));
        }
        let known = SCHEMES.iter().find(|(known, _)| *known == scheme);
        let (scheme, provider) = *known.ok_or_else(|| LocationError::Scheme(format!("{scheme}://")))?;
        let (authority, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if !is_authority(scheme, authority) {
            // Not quoted: this may be where somebody wrote a password.
            let shown = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            return Err(LocationError::Authority(format!("{scheme}://{shown}")));
        }
        let prefix = prefix.trim_end_matches('/');
        let is_odd = |part: &str| matches!(part, "" | "." | "..") || part.chars().any(is_odd_character);
        if !prefix.is_empty() && prefix.split('/').any(is_odd) {
            return Err(LocationError::Prefix(text.to_owned()));
        }
        Ok(Self::Bucket(Bucket {
            provider,
            scheme,
            authority: authority.to_owned(),
            prefix: prefix.to_owned(),
        }))
    }
}

/// What a person who pastes a URL with a query, or an encoded one, did not mean as a part of a key.
fn is_odd_character(c: char) -> bool {
    c.is_control() || matches!(c, '?' | '#' | '%' | '\\')
}

/// `bucket`, and for the one scheme that has it `container@account.host`.
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
    /// Whose store it is.
    pub fn provider(&self) -> Provider {
        self.provider
    }

    /// The bucket alone, without the prefix.
    pub(crate) fn root_url(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }
}

impl Provider {
    /// Where credentials are looked for.
    pub(crate) fn credentials_hint(self) -> &'static str {
        match self {
            Self::S3 => "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and see that they may read and write there",
            Self::Google => "set GOOGLE_APPLICATION_CREDENTIALS, and see that the account may read and write there",
            Self::Azure => {
                "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, and see that they may read and write there"
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
    fn directories_and_urls_are_told_apart() {
        let check = |text: &str, shown: &str| {
            let location = Location::parse(text, Path::new("/base")).unwrap();
            assert_eq!(location.to_string(), shown, "{text}");
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
    fn what_leads_nowhere_is_refused() {
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
        let error = Location::parse("s3://key:SECRET@bucket/x", Path::new("")).unwrap_err();
        assert!(!error.to_string().contains("SECRET"), "{error}");
    }
}
