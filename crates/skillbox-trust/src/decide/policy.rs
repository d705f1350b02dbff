//! What the operator requires of every skill.

use serde::{Deserialize, Serialize};
use skillbox_model::{Digest, PublisherName, SkillName};

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
    /// Parses a digest or a name. A text that starts like a digest must be one.
    pub fn parse(text: &str) -> Result<Self, DenyEntryError> {
        let error = || DenyEntryError(text.chars().take(100).collect());
        if text.starts_with("sha256:") {
            return Digest::parse(text).map(Self::Digest).map_err(|_| error());
        }
        SkillName::parse(text).map(Self::Name).map_err(|_| error())
    }

    pub(super) fn matches(&self, skill: &SkillName, digest: &Digest) -> bool {
        match self {
            Self::Digest(denied) => denied == digest,
            Self::Name(denied) => denied == skill,
        }
    }
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
