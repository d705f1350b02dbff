//! Placeholders: what a run holds in place of the values of its secrets.

use std::collections::BTreeSet;

use memchr::memmem;
use skillbox_model::{GrantedSecret, HostPort, SecretInjection, SecretName, SecretValue};

use crate::authority::{AuthorityError, hex, random_bytes};
use crate::denial::{Denial, Target};

/// How every placeholder begins. The characters are the same in URLs, headers, forms and JSON.
const PREFIX: &str = "skillbox-secret-";

/// The longest placeholder: the prefix, a name, a dash and 32 digits.
pub(crate) const MAX_PLACEHOLDER_BYTES: usize = PREFIX.len() + 128 + 1 + 32;

/// A secret that a run uses by its placeholder.
#[derive(Debug)]
pub(crate) struct IssuedSecret {
    pub name: SecretName,
    pub placeholder: String,
    value: SecretValue,
    hosts: BTreeSet<HostPort>,
}

/// The secrets that a run uses by their placeholders.
#[derive(Debug, Default)]
pub(crate) struct PlaceholderSet(Vec<IssuedSecret>);

impl PlaceholderSet {
    /// Makes a placeholder for each secret that is replaced outside the sandbox.
    pub fn issue(secrets: &[GrantedSecret]) -> Result<Self, AuthorityError> {
        let secrets = secrets
            .iter()
            .filter(|secret| secret.injection == SecretInjection::Header);
        let issued = secrets.map(|secret| {
            Ok(IssuedSecret {
                name: secret.name.clone(),
                placeholder: format!("{PREFIX}{}-{}", secret.name, hex(&random_bytes()?)),
                value: secret.value.clone(),
                hosts: secret.hosts.clone(),
            })
        });
        issued.collect::<Result<_, _>>().map(Self)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &IssuedSecret> {
        self.0.iter()
    }

    /// Whether any secret may be sent to this host.
    pub fn has_secret_for(&self, target: &Target) -> bool {
        self.0.iter().any(|secret| secret.is_for(target))
    }

    /// The first placeholder at or after a position, and where it begins.
    fn find(&self, text: &[u8], from: usize) -> Option<(usize, &IssuedSecret)> {
        memmem::find_iter(text.get(from..)?, PREFIX).find_map(|offset| {
            let start = from + offset;
            let found = self
                .0
                .iter()
                .find(|secret| text[start..].starts_with(secret.placeholder.as_bytes()));
            found.map(|secret| (start, secret))
        })
    }

    /// The secrets whose placeholders a text contains.
    pub fn find_all(&self, text: &[u8]) -> Vec<&IssuedSecret> {
        let mut found = Vec::new();
        let mut position = 0;
        while let Some((start, secret)) = self.find(text, position) {
            position = start + secret.placeholder.len();
            found.push(secret);
        }
        found
    }

    /// Replaces the placeholders in a text by the values, as `encode` writes them; none if there are no placeholders.
    /// The names of the secrets are added to `used`.
    pub fn replace(
        &self,
        target: &Target,
        text: &[u8],
        encode: fn(&str) -> String,
        used: &mut BTreeSet<SecretName>,
    ) -> Result<Option<Vec<u8>>, Denial> {
        let mut output = Vec::new();
        let mut copied = 0;
        while let Some((start, secret)) = self.find(text, copied) {
            if !secret.is_for(target) {
                return Err(Denial::SecretNotGranted(secret.name.clone()));
            }
            output.extend_from_slice(&text[copied..start]);
            output.extend_from_slice(encode(secret.value.expose()).as_bytes());
            used.insert(secret.name.clone());
            copied = start + secret.placeholder.len();
        }
        if copied == 0 {
            return Ok(None);
        }
        output.extend_from_slice(&text[copied..]);
        Ok(Some(output))
    }
}

impl IssuedSecret {
    /// Whether the secret may be sent to this host.
    pub fn is_for(&self, target: &Target) -> bool {
        self.hosts.iter().any(|rule| rule.matches(&target.host, target.port))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use skillbox_model::Host;

    use super::*;

    /// Two secrets: `TOKEN` for `a.example`, `OTHER` for `b.example`.
    pub(crate) fn placeholders() -> PlaceholderSet {
        let secret = |name: &str, value: &str, host: &str| GrantedSecret {
            name: SecretName::parse(name).unwrap(),
            value: SecretValue::parse(value.to_owned()).unwrap(),
            hosts: BTreeSet::from([HostPort::parse(host).unwrap()]),
            injection: SecretInjection::Header,
        };
        let visible = GrantedSecret {
            injection: SecretInjection::Env,
            ..secret("VISIBLE", "visible value", "a.example")
        };
        let secrets = [
            secret("TOKEN", "va/lue\"&+ x", "a.example"),
            secret("OTHER", "other-value", "b.example"),
            visible,
        ];
        PlaceholderSet::issue(&secrets).unwrap()
    }

    pub(crate) fn target(host: &str) -> Target {
        Target {
            host: Host::parse(host).unwrap(),
            port: 443,
        }
    }

    #[test]
    fn placeholders_are_replaced_only_for_their_hosts() {
        let set = placeholders();
        assert_eq!(set.iter().count(), 2);
        let [token, other] = [0, 1].map(|index| set.0[index].placeholder.clone());
        let replace = |text: &str, host: &str| -> Result<Option<String>, Denial> {
            let mut used = BTreeSet::new();
            let replaced = set.replace(&target(host), text.as_bytes(), str::to_owned, &mut used)?;
            assert_eq!(replaced.is_some(), !used.is_empty());
            Ok(replaced.map(|text| String::from_utf8(text).unwrap()))
        };
        assert_eq!(replace("nothing", "a.example"), Ok(None));
        assert_eq!(replace("skillbox-secret-TOKEN-0", "a.example"), Ok(None));
        assert_eq!(
            replace(&format!("<{token}{token}>skillbox-secret-"), "a.example"),
            Ok(Some("<va/lue\"&+ xva/lue\"&+ x>skillbox-secret-".to_owned()))
        );
        for (text, host, name) in [(&token, "b.example", "TOKEN"), (&other, "a.example", "OTHER")] {
            let name = SecretName::parse(name).unwrap();
            assert_eq!(replace(text, host), Err(Denial::SecretNotGranted(name)));
        }
        assert!(token.len() <= MAX_PLACEHOLDER_BYTES);
        assert!(!format!("{set:?}").contains("va/lue"));
    }
}
