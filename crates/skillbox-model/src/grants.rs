//! Grants: what a run may do beyond its confinement.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{HostPort, ProfileName};

/// The error for a text that is not a [`SecretName`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the name of a secret: 1 to 128 letters, digits and `_` are expected, not starting with a digit")]
pub struct SecretNameError(pub String);

/// The name of a secret in the configuration, which is also the name of its environment variable.
///
/// Invariants: 1 to 128 of `A-Z a-z 0-9 _`, the first not a digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct SecretName(Box<str>);

impl SecretName {
    /// Parses the text without changing it.
    pub fn parse(text: &str) -> Result<Self, SecretNameError> {
        let has_valid_chars = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let has_valid_start = text.starts_with(|c: char| !c.is_ascii_digit());
        if has_valid_chars && has_valid_start && text.len() <= 128 {
            Ok(Self(text.into()))
        } else {
            Err(SecretNameError(text.chars().take(128).collect()))
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SecretName {
    type Error = SecretNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<SecretName> for String {
    fn from(name: SecretName) -> Self {
        name.0.into()
    }
}

/// What a run may do beyond the profile `default` without network.
///
/// The same type describes what was granted and what a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Grants {
    /// Hosts that the run may reach.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub network: BTreeSet<HostPort>,
    /// Secrets that the run may use.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub secrets: BTreeSet<SecretName>,
    /// Whether packages of the skill may be built from source, which executes code of these packages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub source_builds: bool,
    /// Profiles that isolate less than the default profile.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub profiles: BTreeSet<ProfileName>,
}

impl Grants {
    /// Whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Everything that this or the other grants.
    pub fn union(&self, other: &Self) -> Self {
        Self {
            network: self.network.union(&other.network).cloned().collect(),
            secrets: self.secrets.union(&other.secrets).cloned().collect(),
            source_builds: self.source_builds || other.source_builds,
            profiles: self.profiles.union(&other.profiles).cloned().collect(),
        }
    }

    /// What `requested` asks for and this does not grant.
    pub fn missing(&self, requested: &Self) -> Self {
        let is_covered = |host: &&HostPort| !self.network.iter().any(|granted| granted.covers(host));
        Self {
            network: requested.network.iter().filter(is_covered).cloned().collect(),
            secrets: requested.secrets.difference(&self.secrets).cloned().collect(),
            source_builds: requested.source_builds && !self.source_builds,
            profiles: requested.profiles.difference(&self.profiles).cloned().collect(),
        }
    }

    /// The options of `skillbox approve` that grant this.
    pub fn options(&self) -> Vec<String> {
        let network = self.network.iter().map(|host| format!("--network {host}"));
        let secrets = self.secrets.iter().map(|name| format!("--secret {name}"));
        let builds = self.source_builds.then(|| "--allow-builds".to_owned());
        let profiles = self.profiles.iter().map(|name| format!("--profile {name}"));
        network.chain(secrets).chain(builds).chain(profiles).collect()
    }
}

impl fmt::Display for Grants {
    /// A list for people, such as `network api.example.com:443, secret TOKEN`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let network = self.network.iter().map(|host| format!("network {host}"));
        let secrets = self.secrets.iter().map(|name| format!("secret {name}"));
        let builds = self.source_builds.then(|| "builds from source".to_owned());
        let profiles = self.profiles.iter().map(|name| format!("profile {name}"));
        let parts: Vec<String> = network.chain(secrets).chain(builds).chain(profiles).collect();
        f.write_str(&if parts.is_empty() {
            "nothing".to_owned()
        } else {
            parts.join(", ")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(hosts: &[&str], secrets: &[&str]) -> Grants {
        Grants {
            network: hosts.iter().map(|host| HostPort::parse(host).unwrap()).collect(),
            secrets: secrets.iter().map(|name| SecretName::parse(name).unwrap()).collect(),
            ..Grants::default()
        }
    }

    #[test]
    fn missing_grants_are_those_that_nothing_covers() {
        let granted = grants(&["*.example.org", "api.example.com:8443"], &["TOKEN"]);
        let requested = grants(&["a.example.org", "api.example.com"], &["TOKEN", "OTHER"]);
        assert_eq!(granted.missing(&requested), grants(&["api.example.com"], &["OTHER"]));
        assert!(granted.missing(&granted).is_empty());
        assert_eq!(Grants::default().missing(&requested), requested);
        assert!(granted.union(&requested).missing(&requested).is_empty());
    }

    #[test]
    fn unknown_keys_and_bad_names_are_refused() {
        assert!(serde_json::from_str::<Grants>(r#"{"network":["a.example"],"sudo":true}"#).is_err());
        assert!(serde_json::from_str::<Grants>(r#"{"network":["http://a.example"]}"#).is_err());
        assert!(serde_json::from_str::<Grants>(r#"{"secrets":["1X"]}"#).is_err());
        assert_eq!(serde_json::to_string(&Grants::default()).unwrap(), "{}");
        for bad in ["", "A-B", "É", "A=B", &"a".repeat(129)] {
            assert!(SecretName::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn grants_are_shown_as_a_list() {
        assert_eq!(
            grants(&["a.example"], &["T"]).to_string(),
            "network a.example:443, secret T"
        );
        assert_eq!(Grants::default().to_string(), "nothing");
        assert_eq!(
            grants(&["a.example"], &["T"]).options(),
            ["--network a.example:443", "--secret T"]
        );
    }
}
