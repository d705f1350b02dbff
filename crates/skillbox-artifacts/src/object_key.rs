//! Keys of objects that a caller names itself.

use std::fmt;

/// The longest key, which leaves room for the prefix of a bucket.
const MAX_KEY_BYTES: usize = 600;

/// The key of an object beside the artifacts: components separated by slashes.
///
/// Invariants: ASCII letters, digits, `.`, `_`, `-` and `@`; no empty component and none that starts with a dot; at most
/// 600 bytes. The first component is not one of the store's own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(Box<str>);

/// Why a text is not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the key of an object")]
pub struct ObjectKeyError(String);

/// The components with which the store's own keys start.
const RESERVED: [&str; 4] = ["artifacts", "cas", "tmp", "tenants"];

impl ObjectKey {
    /// Parses a key.
    pub fn parse(text: impl Into<String>) -> Result<Self, ObjectKeyError> {
        let text = text.into();
        let is_component = |part: &str| {
            !part.is_empty()
                && !part.starts_with('.')
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte))
        };
        let is_reserved = text.split('/').next().is_some_and(|first| RESERVED.contains(&first));
        if text.len() > MAX_KEY_BYTES || is_reserved || !text.split('/').all(is_component) {
            return Err(ObjectKeyError(text));
        }
        Ok(Self(text.into_boxed_str()))
    }

    /// The key of an object below this one.
    pub fn join(&self, below: &str) -> Result<Self, ObjectKeyError> {
        Self::parse(format!("{self}/{below}"))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_below_the_store_and_beside_its_own() {
        for good in ["batches/a/batch.json", "batches/x/results/a.csv@0123"] {
            assert_eq!(ObjectKey::parse(good).unwrap().as_str(), good);
        }
        let long = "x".repeat(601);
        for bad in [
            "",
            "/a",
            "a/",
            "a//b",
            "..",
            "a/../b",
            "a/.b",
            "a b",
            "é",
            "cas/sha256/00",
            "artifacts/user",
            &long,
        ] {
            assert!(ObjectKey::parse(bad).is_err(), "{bad:?}");
        }
        let key = ObjectKey::parse("batches/a").unwrap();
        assert!(key.join("../b").is_err());
        assert_eq!(key.join("b/c").unwrap().as_str(), "batches/a/b/c");
    }
}
