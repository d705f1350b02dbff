//! The name of a skill.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A skill name that is safe to use as one path component.
///
/// Invariants: not empty, at most 255 bytes, not `.` or `..`, no `/`, no control character (NUL included).
/// The specification has stricter rules, which the validator checks. The catalog also accepts names that violate the
/// specification, but never names that violate these invariants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct SkillName(Box<str>);

/// The error for a text that is not a usable skill name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SkillNameError {
    /// The name has no characters.
    #[error("a skill name is empty")]
    Empty,
    /// The name is too long for one path component.
    #[error("a skill name has {0} bytes, more than the 255 that a path component may have")]
    TooLong(usize),
    /// The name is `.` or `..`.
    #[error("the skill name {0:?} means a directory, not a skill")]
    DotName(String),
    /// The name contains a `/`, so it would be several components.
    #[error("the skill name {0:?} contains a path separator")]
    Separator(String),
    /// The name contains control characters, which break terminals, logs and paths.
    #[error("the skill name {0:?} contains a control character")]
    Control(String),
}

impl SkillName {
    /// Parses a name without changing it.
    pub fn parse(text: impl Into<String>) -> Result<Self, SkillNameError> {
        let text = text.into();
        if text.is_empty() {
            return Err(SkillNameError::Empty);
        }
        if text.len() > 255 {
            return Err(SkillNameError::TooLong(text.len()));
        }
        if text == "." || text == ".." {
            return Err(SkillNameError::DotName(text));
        }
        if text.contains('/') {
            return Err(SkillNameError::Separator(text));
        }
        if text.chars().any(char::is_control) {
            return Err(SkillNameError::Control(text));
        }
        Ok(Self(text.into_boxed_str()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SkillName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for SkillName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for SkillName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SkillName {
    type Error = SkillNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(text)
    }
}

impl From<SkillName> for String {
    fn from(name: SkillName) -> Self {
        name.0.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_names_are_not_changed() {
        for name in ["pdf", "Weird Name", "技能", "a..b", "-x", &"n".repeat(255)] {
            assert_eq!(SkillName::parse(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn names_that_are_not_one_path_component_are_refused() {
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "../x",
            "/",
            "a\0b",
            "a\nb",
            "\u{1b}[2J",
            "x\u{85}",
            &"n".repeat(256),
        ] {
            assert!(SkillName::parse(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn serde_goes_through_the_parser() {
        assert!(serde_json::from_str::<SkillName>("\"../x\"").is_err());
        let name: SkillName = serde_json::from_str("\"pdf\"").unwrap();
        assert_eq!(serde_json::to_string(&name).unwrap(), "\"pdf\"");
    }
}
