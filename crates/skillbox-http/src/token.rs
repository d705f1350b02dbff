//! Bearer tokens: the secret of a client, and its hash in the configuration.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};
use skillbox_model::{Digest, TenantName};
use subtle::ConstantTimeEq;

/// Marks the string as a skillbox token, for people and for secret scanners.
const TOKEN_PREFIX: &str = "skb_";

/// What a token is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenScope {
    /// Everything of its tenant.
    #[default]
    Tenant,
    /// The metrics of the server, and nothing else.
    Metrics,
}

/// Ends the entry of a token for metrics.
const METRICS_SUFFIX: &str = ":metrics";

/// The configured form of a token: `TENANT:sha256:HEX`, or `NAME:sha256:HEX:metrics`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenHash {
    /// The tenant that the token belongs to; for a token of another scope, its name.
    pub tenant: TenantName,
    /// What the token is for.
    pub scope: TokenScope,
    digest: Digest,
}

/// The error for a string that is not a token hash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not of the form TENANT:sha256:HEX, which `skillbox serve token TENANT` prints")]
pub struct TokenError(String);

impl TokenHash {
    /// Parses an entry of the configuration.
    pub fn parse(entry: &str) -> Result<Self, TokenError> {
        let parse = || {
            let (entry, scope) = match entry.strip_suffix(METRICS_SUFFIX) {
                Some(entry) => (entry, TokenScope::Metrics),
                None => (entry, TokenScope::Tenant),
            };
            let (tenant, digest) = entry.split_once(':')?;
            Some(Self {
                scope,
                tenant: TenantName::parse(tenant).ok()?,
                digest: Digest::parse(digest).ok()?,
            })
        };
        // The entry may be a secret token given by mistake, so the error contains only its start.
        parse().ok_or_else(|| TokenError(entry.chars().take(12).chain("…".chars()).collect()))
    }

    /// Compares in constant time.
    fn matches(&self, digest: &Digest) -> bool {
        self.digest.as_bytes().ct_eq(digest.as_bytes()).into()
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.scope {
            TokenScope::Tenant => "",
            TokenScope::Metrics => METRICS_SUFFIX,
        };
        write!(f, "{}:{}{suffix}", self.tenant, self.digest)
    }
}

/// The index of the entry that a token matches. All entries are compared, so the time does not depend on the match.
pub(crate) fn find_token(entries: &[TokenHash], token: &str) -> Option<usize> {
    let digest = digest_of(token);
    let mut found = None;
    for (index, entry) in entries.iter().enumerate() {
        if entry.matches(&digest) {
            found = Some(index);
        }
    }
    found
}

fn digest_of(token: &str) -> Digest {
    Digest::from_sha256(Sha256::digest(token.as_bytes()).into())
}

/// A new token. It is printed once and stored nowhere.
#[derive(Clone)]
pub struct NewToken {
    /// The secret of the client.
    pub token: String,
    /// The entry for the configuration.
    pub entry: TokenHash,
}

impl NewToken {
    /// Generates a token of 256 random bits.
    pub fn generate(tenant: TenantName, scope: TokenScope) -> io::Result<Self> {
        let mut secret = [0_u8; 32];
        File::open("/dev/urandom")?.read_exact(&mut secret)?;
        let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let token = format!("{TOKEN_PREFIX}{hex}");
        let entry = TokenHash {
            tenant,
            scope,
            digest: digest_of(&token),
        };
        Ok(Self { token, entry })
    }
}

impl fmt::Debug for NewToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewToken({})", self.entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_matches_its_own_entry_only() {
        let generate = |name: &str| NewToken::generate(TenantName::parse(name).unwrap(), TokenScope::Tenant).unwrap();
        let (one, other) = (generate("a"), generate("b"));
        let entries = [&one, &other].map(|token| TokenHash::parse(&token.entry.to_string()).unwrap());
        assert_eq!(find_token(&entries, &one.token), Some(0));
        assert_eq!(find_token(&entries, &other.token), Some(1));
        assert_eq!(find_token(&entries, &one.token.to_uppercase()), None);
        assert_eq!(find_token(&entries, ""), None);
    }

    #[test]
    fn the_scope_is_part_of_the_entry() {
        let token = NewToken::generate(TenantName::parse("prom").unwrap(), TokenScope::Metrics).unwrap();
        let entry = token.entry.to_string();
        assert!(entry.ends_with(":metrics"), "{entry}");
        assert_eq!(TokenHash::parse(&entry).unwrap(), token.entry);
        assert!(TokenHash::parse(&entry.replace(":metrics", ":admins")).is_err());
    }

    #[test]
    fn a_secret_in_place_of_its_hash_is_refused_and_not_printed() {
        let token = NewToken::generate(TenantName::parse("a").unwrap(), TokenScope::Tenant)
            .unwrap()
            .token;
        let message = TokenHash::parse(&format!("a:{token}")).unwrap_err().to_string();
        assert!(!message.contains(&token[..20]), "{message}");
        for bad in ["", "a", "a:sha256:12", "../x:sha256:00", ":sha256:00"] {
            assert!(TokenHash::parse(bad).is_err(), "{bad}");
        }
    }
}
