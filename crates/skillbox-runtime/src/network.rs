//! The network of a run: which profile and which hosts it has, and what its report says about it.

use std::collections::BTreeSet;

use skillbox_executor::job::RequestError;
use skillbox_executor::{NetworkAccess, NetworkAccessError};
use skillbox_model::{ErrorCode, GrantedSecret, HostPort, HostRule, NetworkDenial, NetworkReport, SecretInjection};
use skillbox_sandbox::{NetworkPolicy, Profile};

/// The profile without network that a run has by default.
const DEFAULT_PROFILE: &str = "default";
/// The same profile with access to allowed hosts.
const NETWORK_PROFILE: &str = "network";

/// The most lines about the network in the warnings of a report, which has the whole list beside them.
const MAX_WARNINGS: usize = 20;

/// The name of the profile of a run. Granted hosts need a profile with a network: they turn the shipped default profile
/// into its twin with one. A profile that the request or the host names is never replaced.
pub fn select_profile<'a>(requested: Option<&'a str>, default: &'a str, granted: &BTreeSet<HostPort>) -> &'a str {
    match requested {
        Some(name) => name,
        None if default == DEFAULT_PROFILE && !granted.is_empty() => NETWORK_PROFILE,
        None => default,
    }
}

/// The hosts that a run may reach: those of its profile, and those that were granted. A profile without an allow-list
/// gives access to none of them.
pub fn network_access(profile: &Profile, granted: &BTreeSet<HostPort>) -> Result<NetworkAccess, RequestError> {
    if profile.network != NetworkPolicy::AllowList {
        return Ok(NetworkAccess::default());
    }
    let own = profile.allowed_hosts.iter().map(|allowed| HostRule {
        host: allowed.host.clone(),
        requests: allowed.requests.clone(),
    });
    NetworkAccess::new(own.chain(granted.iter().cloned().map(Into::into)).collect()).map_err(|error| {
        let code = match error {
            NetworkAccessError::ReservedPort(_) => ErrorCode::InvalidRequest,
            NetworkAccessError::TooManyPorts(_) => ErrorCode::LimitExceeded,
        };
        RequestError::new("network", code, error.to_string())
    })
}

/// The warning for hosts that were granted to a run whose profile has no network.
pub(crate) fn unused_grant_warning(profile: &Profile, granted: &BTreeSet<HostPort>) -> Option<String> {
    let is_unused = profile.network == NetworkPolicy::None && !granted.is_empty();
    is_unused.then(|| {
        format!(
            "the profile {} has no network, so the run cannot reach the granted hosts; use a profile that extends \
             {NETWORK_PROFILE}",
            profile.name
        )
    })
}

/// A warning for each secret whose placeholder none of the reachable hosts may receive the value for.
pub(crate) fn unreachable_secret_warnings(secrets: &[GrantedSecret], network: &NetworkAccess) -> Vec<String> {
    let hosts = network.hosts();
    let is_reachable = |host: &HostPort| {
        hosts
            .iter()
            .any(|reachable| reachable.covers(host) || host.covers(reachable))
    };
    let unusable = secrets
        .iter()
        .filter(|secret| secret.injection == SecretInjection::Header && !secret.hosts.iter().any(is_reachable));
    unusable
        .map(|secret| {
            let options: Vec<String> = secret.hosts.iter().map(|host| format!("--allow-net {host}")).collect();
            format!(
                "the secret {} cannot be used, because the run reaches none of its hosts; add `{}`",
                secret.name,
                options.join(" ")
            )
        })
        .collect()
}

/// One line for each denial and failure.
pub(crate) fn network_warnings(report: &NetworkReport) -> Vec<String> {
    let line = |verb: &str, entry: &NetworkDenial| {
        let port = entry.port.map_or_else(String::new, |port| format!(":{port}"));
        let count = match entry.count {
            1 => String::new(),
            count => format!(" ({count} times)"),
        };
        format!("network: {}{port} {verb}: {}{count}", entry.host, entry.reason)
    };
    let denials = report.denials.iter().map(|entry| line("was denied", entry));
    let failures = report.failures.iter().map(|entry| line("failed", entry));
    let mut lines: Vec<String> = denials.chain(failures).collect();
    let omitted = (lines.len().saturating_sub(MAX_WARNINGS) as u64).saturating_add(report.omitted_denials);
    lines.truncate(MAX_WARNINGS);
    if omitted > 0 {
        lines.push(format!("network: {omitted} more denials and failures"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use skillbox_sandbox::Profiles;

    use super::*;

    fn hosts(texts: &[&str]) -> BTreeSet<HostPort> {
        texts.iter().map(|text| HostPort::parse(text).unwrap()).collect()
    }

    #[test]
    fn granted_hosts_select_the_profile_with_a_network() {
        let granted = hosts(&["a.example"]);
        assert_eq!(select_profile(None, "default", &granted), "network");
        assert_eq!(select_profile(None, "default", &hosts(&[])), "default");
        assert_eq!(select_profile(Some("default"), "default", &granted), "default");
        assert_eq!(select_profile(None, "strict", &granted), "strict");
    }

    #[test]
    fn only_a_profile_with_an_allow_list_has_access() {
        let profiles = Profiles::shipped();
        let granted = hosts(&["a.example"]);
        for profile in profiles.iter() {
            let access = network_access(profile, &granted).unwrap();
            let has_network = profile.name.as_str() == "network";
            assert_eq!(access.is_empty(), !has_network, "{}", profile.name);
        }
        let strict = profiles.get("strict").unwrap();
        assert!(unused_grant_warning(strict, &granted).unwrap().contains("strict"));
        assert_eq!(unused_grant_warning(strict, &hosts(&[])), None);
        assert_eq!(unused_grant_warning(profiles.get("network").unwrap(), &granted), None);
        assert!(network_access(profiles.get("network").unwrap(), &hosts(&["a.example:53"])).is_err());
    }

    #[test]
    fn a_denial_is_one_line_and_the_lines_are_bounded() {
        let denial = |count| NetworkDenial {
            host: "evil.example".to_owned(),
            port: Some(443),
            reason: "no rule allows it".to_owned(),
            count,
        };
        let report = NetworkReport {
            denials: vec![denial(1), denial(3)],
            ..NetworkReport::default()
        };
        assert_eq!(
            network_warnings(&report),
            [
                "network: evil.example:443 was denied: no rule allows it",
                "network: evil.example:443 was denied: no rule allows it (3 times)",
            ]
        );
        let many = NetworkReport {
            denials: vec![denial(1); 100],
            omitted_denials: 7,
            ..NetworkReport::default()
        };
        let lines = network_warnings(&many);
        assert_eq!(
            (lines.len(), lines[20].as_str()),
            (21, "network: 87 more denials and failures")
        );
    }
}
