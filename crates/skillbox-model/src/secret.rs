//! Secrets that a run may use.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use crate::{HostPort, SecretName};

/// The value of a secret.
///
/// Invariants: [`SecretValue::MIN_BYTES`] to [`SecretValue::MAX_BYTES`] bytes of text without control characters. It is
/// never shown, never serialised, and overwritten in memory when it is dropped.
#[derive(Clone)]
pub struct SecretValue(Arc<SecretString>);

/// The error for a value that cannot be used as a secret. It never contains the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretValueError {
    /// Occurrences of a short text cannot be distinguished from other output, so they could not be removed from it.
    #[error("the value has {0} bytes; a secret has at least {min}", min = SecretValue::MIN_BYTES)]
    TooShort(usize),
    /// The value does not fit into a header of a request.
    #[error("the value has {0} bytes; a secret has at most {max}", max = SecretValue::MAX_BYTES)]
    TooLong(usize),
    /// A header cannot contain such a character.
    #[error("the value contains a control character")]
    ControlCharacter,
}

impl SecretValue {
    /// Minimum length.
    pub const MIN_BYTES: usize = 8;
    /// Maximum length.
    pub const MAX_BYTES: usize = 16 << 10;

    /// Parses the text without changing it.
    pub fn parse(text: String) -> Result<Self, SecretValueError> {
        let secret = SecretString::from(text);
        let text = secret.expose_secret();
        match text.len() {
            length if length < Self::MIN_BYTES => Err(SecretValueError::TooShort(length)),
            length if length > Self::MAX_BYTES => Err(SecretValueError::TooLong(length)),
            _ if text.chars().any(char::is_control) => Err(SecretValueError::ControlCharacter),
            _ => Ok(Self(Arc::new(secret))),
        }
    }

    /// The value itself. Every caller is a place where the value could leak.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(…)")
    }
}

/// How a run gets a secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SecretInjection {
    /// The variable of the script holds a placeholder, which is replaced in requests to the allowed hosts, outside the
    /// sandbox.
    #[default]
    Header,
    /// The variable of the script holds the value itself.
    Env,
}

/// A secret that was granted to a run.
#[derive(Clone, Debug)]
pub struct GrantedSecret {
    /// The name, also of the variable.
    pub name: SecretName,
    /// The value.
    pub value: SecretValue,
    /// The hosts that may receive the value.
    pub hosts: BTreeSet<HostPort>,
    /// How the run gets it.
    pub injection: SecretInjection,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_bounded_text_and_never_shown() {
        let value = SecretValue::parse("canary-value".to_owned()).unwrap();
        assert_eq!(value.expose(), "canary-value");
        assert!(!format!("{value:?}").contains("canary"));
        assert_eq!(
            SecretValue::parse("short".to_owned()).unwrap_err(),
            SecretValueError::TooShort(5)
        );
        assert_eq!(
            SecretValue::parse("a".repeat(16385)).unwrap_err(),
            SecretValueError::TooLong(16385)
        );
        assert_eq!(
            SecretValue::parse("with\nnewline".to_owned()).unwrap_err(),
            SecretValueError::ControlCharacter
        );
    }
}
