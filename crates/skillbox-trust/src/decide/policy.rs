//! What the operator requires of every skill.

use serde::{Deserialize, Serialize};
use skillbox_model::{Digest, PublisherName, SkillName};
use unicode_normalization::UnicodeNormalization as _;

/// Which skills may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustMode {
    /// Every skill, without grants.
    #[default]
    Open,
    /// Skills whose digest a person approved.
    Approved,
    /// Skills with the digest in the lock file.
    Locked,
}

/// An entry of the deny list: a digest or a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DenyEntry {
    /// One version of a skill, under every name.
    Digest(Digest),
    /// Every version of a skill.
    Name(SkillName),
}

/// The error for a text that is neither a digest nor a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("deny: {0:?} is neither a digest (`sha256:` and 64 hexadecimal digits) nor the name of a skill")]
pub struct DenyEntryError(pub String);

impl DenyEntry {
    /// Parses a digest or a name, without the blanks around it. A text that starts like a digest must be one.
    pub fn parse(text: &str) -> Result<Self, DenyEntryError> {
        let text = text.trim();
        let error = || DenyEntryError(text.chars().take(100).collect());
        let lowercase = text.to_ascii_lowercase();
        if lowercase.starts_with("sha256:") {
            return Digest::parse(&lowercase).map(Self::Digest).map_err(|_| error());
        }
        SkillName::parse(text).map(Self::Name).map_err(|_| error())
    }

    pub(super) fn matches(&self, skill: &SkillName, digest: &Digest) -> bool {
        match self {
            Self::Digest(denied) => denied == digest,
            Self::Name(denied) => comparable_name(denied) == comparable_name(skill),
        }
    }
}

/// The form in which names of skills are compared here: a list that denies a name also denies its other spellings.
fn comparable_name(name: &SkillName) -> String {
    name.as_str().nfkc().flat_map(char::to_lowercase).collect()
}

impl std::fmt::Display for DenyEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Digest(digest) => write!(f, "{digest}"),
            Self::Name(name) => write!(f, "{name}"),
        }
    }
}

impl TryFrom<String> for DenyEntry {
    type Error = DenyEntryError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<DenyEntry> for String {
    fn from(entry: DenyEntry) -> Self {
        entry.to_string()
    }
}

/// What the operator requires of every skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustPolicy {
    /// Which skills may run.
    pub mode: TrustMode,
    /// Skills that never run, whatever else allows them.
    pub deny: Vec<DenyEntry>,
    /// If not empty, every skill needs a valid signature of one of these publishers.
    pub required_publishers: Vec<PublisherName>,
}

impl TrustPolicy {
    /// Whether every version of every skill may run.
    pub fn accepts_every_version(&self) -> bool {
        self.mode == TrustMode::Open && self.deny.is_empty() && self.required_publishers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_denies_every_spelling_of_a_name_or_digest() {
        let digest = Digest::from_sha256([0xab; 32]);
        let skill = SkillName::parse("csv-report").unwrap();
        let is_denied = |text: &str| DenyEntry::parse(text).unwrap().matches(&skill, &digest);
        let hex = "ab".repeat(32);
        for text in ["csv-report", " csv-report ", "CSV-Report", "ｃsv-report"] {
            assert!(is_denied(text), "{text:?}");
        }
        for text in [format!("sha256:{hex}"), format!(" SHA256:{}\t", hex.to_uppercase())] {
            assert!(is_denied(&text), "{text:?}");
        }
        assert!(!is_denied("csv-reports"));
        assert!(!is_denied(&format!("sha256:{}", "ac".repeat(32))));
        assert!(DenyEntry::parse("SHA256:12").is_err());
    }
}
