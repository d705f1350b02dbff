//! SHA-256 digests of content.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A SHA-256 digest, written as `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Digest([u8; 32]);

/// The error for a text that is not a [`Digest`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a digest: `sha256:` and 64 lower-case hexadecimal digits are expected")]
pub struct DigestError(pub String);

impl Digest {
    /// Creates a digest from the 32 bytes of a SHA-256 hash.
    pub fn from_sha256(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Parses the written form.
    pub fn parse(text: &str) -> Result<Self, DigestError> {
        let invalid = || DigestError(text.chars().take(80).collect());
        let digits = text.strip_prefix("sha256:").ok_or_else(invalid)?.as_bytes();
        if digits.len() != 64 {
            return Err(invalid());
        }
        let mut bytes = [0_u8; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let high = hex_digit_value(pair[0]).ok_or_else(invalid)?;
            let low = hex_digit_value(pair[1]).ok_or_else(invalid)?;
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }

    /// The 64 hexadecimal digits, without the prefix.
    pub fn hex(&self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.0
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .map(|nibble| char::from(DIGITS[usize::from(nibble)]))
            .collect()
    }

    /// The raw bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

fn hex_digit_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_survive_the_round_trip_through_text() {
        let digest = Digest::from_sha256(std::array::from_fn(|i| (i * 8) as u8));
        assert_eq!(Digest::parse(&digest.to_string()).unwrap(), digest);
    }

    #[test]
    fn other_spellings_are_refused() {
        let hex = "0".repeat(64);
        for text in [
            hex.clone(),
            format!("sha256:{}", &hex[1..]),
            format!("sha256:{}F", &hex[1..]),
            format!("md5:{hex}"),
        ] {
            assert!(Digest::parse(&text).is_err(), "{text}");
        }
    }
}
