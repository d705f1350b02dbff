//! Bearer tokens: what a client sends, and what the configuration keeps of it.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};
use skillbox_model::{Digest, TenantName};
use subtle::ConstantTimeEq;

/// Says what kind of secret it is, to people and to programs that look for lost ones.
const PREFIX: &str = "skb_";

/// A token as the configuration keeps it, `TENANT:sha256:HEX`: whose it is, and what it hashes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenHash {
    /// Whose sessions, runs and artifacts the token opens.
    pub tenant: TenantName,
    digest: Digest,
}

/// Why a text is no token's line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not TENANT:sha256:HEX, as `skillbox serve token TENANT` prints it")]
pub struct TokenError(String);

impl TokenHash {
    /// Parses a line of the configuration.
    pub fn parse(line: &str) -> Result<Self, TokenError> {
        let parts = || {
            let (tenant, digest) = line.split_once(':')?;
            Some(Self {
                tenant: TenantName::parse(tenant).ok()?,
                digest: Digest::parse(digest).ok()?,
            })
        };
        // What stands there may be a token by mistake, so it is not repeated whole.
        parts().ok_or_else(|| TokenError(line.chars().take(12).chain("…".chars()).collect()))
    }

    /// Whether a token hashes to this, found out in a time that does not tell how close it came.
    fn is_of(&self, digest: &Digest) -> bool {
        self.digest.as_bytes().ct_eq(digest.as_bytes()).into()
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.tenant, self.digest)
    }
}

/// The place of the line that a token belongs to. Every line is looked at, whichever fits.
pub(crate) fn matching(lines: &[TokenHash], token: &str) -> Option<usize> {
    let digest = digest_of(token);
    let mut found = None;
    for (place, line) in lines.iter().enumerate() {
        if line.is_of(&digest) {
            found = Some(place);
        }
    }
    found
}

fn digest_of(token: &str) -> Digest {
    Digest::from_sha256(Sha256::digest(token.as_bytes()).into())
}

/// A token that was just made. It is shown once and kept nowhere.
#[derive(Clone)]
pub struct NewToken {
    /// What the client sends.
    pub token: String,
    /// What the configuration keeps.
    pub line: TokenHash,
}

impl NewToken {
    /// Makes one of 256 bits that nobody can guess.
    pub fn make(tenant: TenantName) -> io::Result<Self> {
        let mut secret = [0_u8; 32];
        File::open("/dev/urandom")?.read_exact(&mut secret)?;
        let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let token = format!("{PREFIX}{hex}");
        let line = TokenHash {
            tenant,
            digest: digest_of(&token),
        };
        Ok(Self { token, line })
    }
}

impl fmt::Debug for NewToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewToken({})", self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_token_fits_its_own_line_and_no_other() {
        let make = |name: &str| NewToken::make(TenantName::parse(name).unwrap()).unwrap();
        let (one, other) = (make("a"), make("b"));
        let lines = [&one, &other].map(|token| TokenHash::parse(&token.line.to_string()).unwrap());
        assert_eq!(matching(&lines, &one.token), Some(0));
        assert_eq!(matching(&lines, &other.token), Some(1));
        assert_eq!(matching(&lines, &one.token.to_uppercase()), None);
        assert_eq!(matching(&lines, ""), None);
    }

    #[test]
    fn a_token_in_place_of_its_hash_is_refused_and_not_repeated() {
        let token = NewToken::make(TenantName::parse("a").unwrap()).unwrap().token;
        let told = TokenHash::parse(&format!("a:{token}")).unwrap_err().to_string();
        assert!(!told.contains(&token[..20]), "{told}");
        for bad in ["", "a", "a:sha256:12", "../x:sha256:00", ":sha256:00"] {
            assert!(TokenHash::parse(bad).is_err(), "{bad}");
        }
    }
}
