//! Short identifiers that become file names, labels and parts of URLs.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a text is not an identifier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an identifier: 1 to {max} of the characters a-z A-Z 0-9 . _ - are taken, starting with a letter or digit", max = MAX_LENGTH)]
pub struct IdentifierError(pub String);

const MAX_LENGTH: usize = 128;

fn check(text: &str) -> Result<(), IdentifierError> {
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    let all_plain = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    if starts_well && all_plain && text.len() <= MAX_LENGTH {
        Ok(())
    } else {
        Err(IdentifierError(text.chars().take(MAX_LENGTH).collect()))
    }
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// Invariants: 1 to 128 of `a-z A-Z 0-9 . _ -`, the first a letter or digit; hence one path component
        /// that cannot climb, be hidden or be taken for an option.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String")]
        pub struct $name(Box<str>);

        impl $name {
            /// Parses the text and keeps it exactly.
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
    /// The identity of one run.
    RunId
}
identifier! {
    /// The identity of a session: its state and its workspace.
    SessionId
}
identifier! {
    /// The name of a tenant: those who share a server without seeing each other.
    TenantName
}
identifier! {
    /// The name of a sandbox profile.
    ProfileName
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_one_plain_component() {
        for good in ["s1", "0", "a.b_c-d", &"x".repeat(128)] {
            assert!(SessionId::parse(good).is_ok(), "{good:?}");
        }
        for bad in ["", ".", "..", "-x", "_x", "a/b", "a b", "é", "a\0", &"x".repeat(129)] {
            assert!(SessionId::parse(bad).is_err(), "{bad:?}");
        }
        assert!(serde_json::from_str::<RunId>("\"../x\"").is_err());
    }
}
