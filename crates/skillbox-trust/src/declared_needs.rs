//! What a skill says it needs, in the `metadata` of its SKILL.md. A declaration asks and never grants.

use std::collections::BTreeSet;

use skillbox_model::{Grants, HostPort, SecretName};

/// The key for hosts: `skillbox-network: "api.example.com:443 *.example.org"`.
pub const NETWORK_KEY: &str = "skillbox-network";
/// The key for secrets: `skillbox-secrets: "EXAMPLE_TOKEN"`.
pub const SECRETS_KEY: &str = "skillbox-secrets";
/// More entries than any skill needs, and few enough for a person to review.
const MAX_ENTRIES: usize = 64;

/// Why a declaration cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("metadata.{key}: {problem}")]
pub struct NeedsError {
    /// The key in `metadata`.
    pub key: &'static str,
    /// What is wrong.
    pub problem: String,
}

/// Parses the declared needs from the values of both keys. Entries are separated by blanks or commas.
pub fn parse_declared_needs(network: Option<&str>, secrets: Option<&str>) -> Result<Grants, NeedsError> {
    Ok(Grants {
        network: parse_entries(NETWORK_KEY, network, |text| {
            HostPort::parse(text).map_err(|error| error.to_string())
        })?,
        secrets: parse_entries(SECRETS_KEY, secrets, |text| {
            SecretName::parse(text).map_err(|error| error.to_string())
        })?,
        ..Grants::default()
    })
}

fn parse_entries<T: Ord>(
    key: &'static str,
    value: Option<&str>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<BTreeSet<T>, NeedsError> {
    let error = |problem| NeedsError { key, problem };
    let entries = value.unwrap_or_default().split(|c: char| c.is_whitespace() || c == ',');
    let mut parsed = BTreeSet::new();
    for entry in entries.filter(|entry| !entry.is_empty()) {
        if parsed.len() >= MAX_ENTRIES {
            return Err(error(format!("more than {MAX_ENTRIES} entries")));
        }
        parsed.insert(parse(entry).map_err(error)?);
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_lists_of_hosts_and_secrets() {
        let needs =
            parse_declared_needs(Some("api.example.com:443  *.example.org,\n10.0.0.1:80"), Some("TOKEN")).unwrap();
        assert_eq!(
            needs.to_string(),
            "network api.example.com:443, network *.example.org:443, network 10.0.0.1:80, secret TOKEN"
        );
        assert!(parse_declared_needs(None, Some(" ")).unwrap().is_empty());
    }

    #[test]
    fn a_bad_declaration_names_its_key() {
        let error = parse_declared_needs(Some("https://a.example"), None).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("metadata.skillbox-network: \"https://a.example\""),
            "{error}"
        );
        let error = parse_declared_needs(None, Some("A-B")).unwrap_err();
        assert!(
            error.to_string().starts_with("metadata.skillbox-secrets: \"A-B\""),
            "{error}"
        );
        let many: String = (0..65).map(|number| format!("h{number}.example ")).collect();
        assert!(parse_declared_needs(Some(&many), None).is_err());
    }
}
