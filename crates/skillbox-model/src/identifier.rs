//! Short identifiers, which are used as file names, labels and parts of URLs.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The error for a text that is not an identifier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an identifier: 1 to {max} of the characters a-z A-Z 0-9 . _ - are expected, starting with a letter or digit", max = MAX_LENGTH)]
pub struct IdentifierError(pub String);

const MAX_LENGTH: usize = 128;

fn check(text: &str) -> Result<(), IdentifierError> {
    let has_valid_start = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    let has_valid_chars = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    if has_valid_start && has_valid_chars && text.len() <= MAX_LENGTH {
        Ok(())
    } else {
        Err(IdentifierError(text.chars().take(MAX_LENGTH).collect()))
    }
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// Invariants: 1 to 128 of `a-z A-Z 0-9 . _ -`, the first a letter or digit. It is therefore a single path
        /// component, not hidden, not `..`, and not mistaken for an option.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String")]
        pub struct $name(Box<str>);

        impl $name {
            /// Parses the text without changing it.
            pub fn parse(text: impl Into<String>) -> Result<Self, IdentifierError> {
                let text = text.into();
                check(&text)?;
                Ok(Self(text.into_boxed_str()))
            }

            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdentifierError;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                Self::parse(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0.into()
            }
        }
    };
}

identifier! {
    /// The id of a run.
    RunId
}
identifier! {
    /// The id of a session.
    SessionId
}
identifier! {
    /// The id of a job of a batch.
    JobId
}
identifier! {
    /// The name of a tenant of a server. Tenants do not see each other.
    TenantName
}
identifier! {
    /// The name of a sandbox profile.
    ProfileName
}

identifier! {
    /// The name of a publisher of skills, in the configuration of the host.
    PublisherName
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_a_single_path_component() {
        for good in ["s1", "0", "a.b_c-d", &"x".repeat(128)] {
            assert!(SessionId::parse(good).is_ok(), "{good:?}");
        }
        for bad in ["", ".", "..", "-x", "_x", "a/b", "a b", "é", "a\0", &"x".repeat(129)] {
            assert!(SessionId::parse(bad).is_err(), "{bad:?}");
        }
        assert!(serde_json::from_str::<RunId>("\"../x\"").is_err());
    }
}
