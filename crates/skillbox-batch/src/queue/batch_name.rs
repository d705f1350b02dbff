//! The name of a batch on a queue, and the names on the queue that follow from it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use skillbox_model::{Digest, JobId};

/// The subjects of all jobs.
pub(super) const ALL_JOBS: &str = "skillbox.jobs.>";
/// The subjects of all cancellations.
pub(super) const ALL_CANCELLATIONS: &str = "skillbox.cancel.*";
/// The prefix of the streams of batches.
const STREAM_PREFIX: &str = "skillbox-batch-";
const MAX_NAME_BYTES: usize = 64;

/// The name of a batch on a queue.
///
/// Invariants: 1 to 64 ASCII letters, digits, `_` and `-`, the first a letter or digit. It is part of subjects, stream names
/// and keys of objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BatchName(Box<str>);

/// The order in which workers take jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Before all others.
    High,
    /// The default.
    #[default]
    Normal,
    /// When there is nothing else.
    Low,
}

impl Priority {
    /// All priorities, the highest first.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    /// The number of higher priorities.
    pub(super) fn rank(self) -> u32 {
        match self {
            Self::High => 0,
            Self::Normal => 1,
            Self::Low => 2,
        }
    }

    /// The name, which is also that of the consumer.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }
}

impl FromStr for Priority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|priority| priority.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is not a priority: high, normal or low"))
    }
}

impl BatchName {
    /// Parses a name.
    pub fn parse(text: impl Into<String>) -> Result<Self, String> {
        let text = text.into();
        let is_plain = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        let starts_well = text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
        if text.len() > MAX_NAME_BYTES || !is_plain || !starts_well {
            return Err(format!(
                "{text:?} is not the name of a batch: letters, digits, `_` and `-`, at most {MAX_NAME_BYTES}"
            ));
        }
        Ok(Self(text.into_boxed_str()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The stream of its jobs.
    pub(super) fn stream(&self) -> String {
        format!("{STREAM_PREFIX}{self}")
    }

    /// The batch of a stream.
    pub(super) fn of_stream(stream: &str) -> Option<Self> {
        Self::parse(stream.strip_prefix(STREAM_PREFIX)?).ok()
    }

    /// The subjects of its jobs.
    pub(super) fn all_jobs(&self) -> String {
        format!("skillbox.jobs.{self}.>")
    }

    /// The subjects of its jobs with one priority.
    pub(super) fn jobs_of(&self, priority: Priority) -> String {
        format!("skillbox.jobs.{self}.{}.*", priority.as_str())
    }

    /// The subject of one job. The stream holds at most one message of a subject, so a job cannot be queued twice.
    pub(super) fn job(&self, priority: Priority, id: &JobId, key: &Digest) -> String {
        let token = Digest::from_sha256(Sha256::digest(format!("{id}\0{key}")).into());
        format!("skillbox.jobs.{self}.{}.{}", priority.as_str(), &token.hex()[..32])
    }

    /// The subject on which workers hear that running jobs of this batch are to be killed.
    pub(super) fn cancellation(&self) -> String {
        format!("skillbox.cancel.{self}")
    }

    /// The batch of a cancellation.
    pub(super) fn of_cancellation(subject: &str) -> Option<Self> {
        Self::parse(subject.strip_prefix("skillbox.cancel.")?).ok()
    }
}

impl fmt::Display for BatchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for BatchName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}

impl TryFrom<String> for BatchName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(text)
    }
}

impl From<BatchName> for String {
    fn from(name: BatchName) -> Self {
        name.0.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_subject_or_key() {
        for good in ["a", "reports-2024_05", &"x".repeat(64)] {
            assert!(BatchName::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "-a",
            "a.b",
            "a*",
            "a>",
            "a b",
            "../a",
            "a/b",
            "é",
            "a\n",
            &"x".repeat(65),
        ] {
            assert!(BatchName::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn names_are_read_back() {
        let name = BatchName::parse("nightly").unwrap();
        assert_eq!(BatchName::of_stream(&name.stream()), Some(name.clone()));
        assert_eq!(BatchName::of_cancellation(&name.cancellation()), Some(name.clone()));
        assert_eq!(BatchName::of_stream("orders"), None);
        let (one, key) = (JobId::parse("one").unwrap(), Digest::from_sha256([1; 32]));
        let subject = name.job(Priority::High, &one, &key);
        assert!(subject.starts_with("skillbox.jobs.nightly.high."), "{subject}");
        assert_ne!(subject, name.job(Priority::High, &JobId::parse("two").unwrap(), &key));
    }
}
