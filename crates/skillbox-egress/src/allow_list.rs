//! The hosts that a run may reach, and the requests that it may send to them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use skillbox_model::{Host, HostName, HostPattern, HostRule, RequestRule};

/// The hosts that a run may reach: those of its profile and those that were granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(BTreeSet<HostRule>);

/// The requests that a run may send to a host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AllowedRequests<'a> {
    All,
    /// Those that one of the rules allows.
    Some(Vec<&'a RequestRule>),
}

impl AllowList {
    /// A list with these hosts.
    pub fn new(rules: BTreeSet<HostRule>) -> Self {
        Self(rules)
    }

    /// Whether a rule allows this host and port.
    pub(crate) fn allows(&self, host: &Host, port: u16) -> bool {
        self.0.iter().any(|rule| rule.host.matches(host, port))
    }

    /// Whether a rule allows this name on any port.
    pub(crate) fn allows_name(&self, name: &HostName) -> bool {
        self.0.iter().any(|rule| rule.host.host.matches_name(name))
    }

    /// Whether a rule names this address and port, which permits it even if the address is not public.
    pub(crate) fn names_address(&self, address: IpAddr, port: u16) -> bool {
        let wanted = HostPattern::Address(address.to_canonical());
        self.0
            .iter()
            .any(|rule| rule.host.port == port && rule.host.host == wanted)
    }

    /// The requests that may be sent to a host.
    pub(crate) fn requests(&self, host: &Host, port: u16) -> AllowedRequests<'_> {
        let rules: Vec<&RequestRule> = self
            .0
            .iter()
            .filter(|rule| rule.host.matches(host, port))
            .map(|rule| &rule.requests)
            .collect();
        if rules.iter().any(|rule| rule.is_unrestricted()) {
            AllowedRequests::All
        } else {
            AllowedRequests::Some(rules)
        }
    }

    /// Whether a rule restricts requests, for which skillbox has to read them.
    pub(crate) fn has_restrictions(&self) -> bool {
        self.0.iter().any(|rule| !rule.requests.is_unrestricted())
    }
}

#[cfg(test)]
mod tests {
    use skillbox_model::HostPort;

    use super::*;

    fn list(rules: &[&str]) -> AllowList {
        AllowList::new(rules.iter().map(|rule| HostPort::parse(rule).unwrap().into()).collect())
    }

    #[test]
    fn only_the_named_hosts_and_ports_are_allowed() {
        let list = list(&["api.example.com", "*.example.org:8443", "10.0.0.1:80"]);
        let allows = |host: &str, port| list.allows(&Host::parse(host).unwrap(), port);
        assert!(allows("api.example.com", 443) && allows("a.example.org", 8443) && allows("10.0.0.1", 80));
        for (host, port) in [
            ("api.example.com", 80),
            ("example.com", 443),
            ("x.api.example.com", 443),
            ("example.org", 8443),
            ("a.b.example.org", 8443),
            ("10.0.0.2", 80),
            ("10.0.0.1", 443),
        ] {
            assert!(!allows(host, port), "{host}:{port}");
        }
        assert!(list.names_address("::ffff:10.0.0.1".parse().unwrap(), 80));
        assert!(!list.names_address("10.0.0.1".parse().unwrap(), 443));
        assert!(!AllowList::default().allows(&Host::parse("a.example").unwrap(), 443));
    }

    #[test]
    fn one_rule_without_restrictions_allows_every_request() {
        let only_get = RequestRule {
            methods: BTreeSet::from([skillbox_model::RequestMethod::parse("GET").unwrap()]),
            ..RequestRule::default()
        };
        let restricted = HostRule {
            host: HostPort::parse("a.example").unwrap(),
            requests: only_get.clone(),
        };
        let a = Host::parse("a.example").unwrap();
        let list = AllowList::new(BTreeSet::from([restricted.clone()]));
        assert_eq!(list.requests(&a, 443), AllowedRequests::Some(vec![&only_get]));
        assert!(list.has_restrictions());
        // A host without a rule has none that could allow a request.
        assert_eq!(list.requests(&a, 80), AllowedRequests::Some(vec![]));
        let granted = HostPort::parse("a.example").unwrap().into();
        let list = AllowList::new(BTreeSet::from([restricted, granted]));
        assert_eq!(list.requests(&a, 443), AllowedRequests::All);
    }
}
