//! Artifact names and references.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of an artifact: components separated by slashes, like a relative path.
///
/// Invariants: UTF-8, at most 1,024 bytes; no empty, `.` or `..` component; components of at most 200 bytes; no control
/// character, no backslash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ArtifactName(Box<str>);

/// Why a text is not an artifact name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArtifactNameError {
    /// It is empty, or has an empty, `.` or `..` component.
    #[error("the artifact name {0:?} has an empty, `.` or `..` component")]
    Component(String),
    /// It is longer than the layout allows.
    #[error("the artifact name has {0} bytes; at most 1024 are allowed, and 200 per component")]
    TooLong(usize),
    /// It contains characters that terminals or object stores cannot handle.
    #[error("the artifact name {0:?} contains a control character or a backslash")]
    Character(String),
}

impl ArtifactName {
    /// Parses a name. It is stored unchanged.
    pub fn parse(text: impl Into<String>) -> Result<Self, ArtifactNameError> {
        let text = text.into();
        if text.len() > 1024 || text.split('/').any(|part| part.len() > 200) {
            return Err(ArtifactNameError::TooLong(text.len()));
        }
        if text.chars().any(|c| c.is_control() || c == '\\') {
            return Err(ArtifactNameError::Character(text));
        }
        if text.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(ArtifactNameError::Component(text));
        }
        Ok(Self(text.into_boxed_str()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last component.
    pub fn base_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }
}

impl fmt::Display for ArtifactName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ArtifactName {
    type Error = ArtifactNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(text)
    }
}

impl From<ArtifactName> for String {
    fn from(name: ArtifactName) -> Self {
        name.0.into()
    }
}

/// A reference: `name` for the newest version, or `name@version` for exactly that version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArtifactRef {
    /// The name.
    pub name: ArtifactName,
    /// The version; none for the newest.
    pub version: Option<u64>,
}

/// Why a text is not an artifact reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct ArtifactRefError(#[from] ArtifactNameError);

impl ArtifactRef {
    /// Parses `name[@version]`. A name may contain `@`, so only digits after the last `@` are a version.
    pub fn parse(text: &str) -> Result<Self, ArtifactRefError> {
        let (name, version) = match text.rsplit_once('@') {
            Some((name, digits)) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
                match digits.parse() {
                    Ok(version) => (name, Some(version)),
                    // A number that exceeds `u64` is part of the name.
                    Err(_) => (text, None),
                }
            }
            _ => (text, None),
        };
        Ok(Self {
            name: ArtifactName::parse(name)?,
            version,
        })
    }
}

impl fmt::Display for ArtifactRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some(version) => write!(f, "{}@{version}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_contain_slashes_but_no_parent_components() {
        for good in ["a", "a/b.txt", "user@host", "日本/語", ".hidden"] {
            assert_eq!(ArtifactName::parse(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            "/a",
            "a/",
            "a//b",
            "..",
            "a/../b",
            "./a",
            "a\\b",
            "a\nb",
            &"x".repeat(201),
        ] {
            assert!(ArtifactName::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn only_digits_after_the_last_at_sign_are_a_version() {
        for (text, name, version) in [
            ("a", "a", None),
            ("a@0", "a", Some(0)),
            ("a@b@12", "a@b", Some(12)),
            ("a@b", "a@b", None),
            ("a@", "a@", None),
            ("a@1x", "a@1x", None),
            ("a@99999999999999999999999", "a@99999999999999999999999", None),
        ] {
            let parsed = ArtifactRef::parse(text).unwrap();
            assert_eq!((parsed.name.as_str(), parsed.version), (name, version), "{text}");
        }
    }
}
