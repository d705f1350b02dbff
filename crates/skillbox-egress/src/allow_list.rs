//! The hosts that a run may reach.

use std::collections::BTreeSet;
use std::net::IpAddr;

use skillbox_model::{Host, HostName, HostPattern, HostPort};

/// The hosts that a run may reach: those of its profile and those that were granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(BTreeSet<HostPort>);

impl AllowList {
    /// A list with these hosts.
    pub fn new(hosts: BTreeSet<HostPort>) -> Self {
        Self(hosts)
    }

    /// Whether a rule allows this host and port.
    pub(crate) fn allows(&self, host: &Host, port: u16) -> bool {
        self.0.iter().any(|rule| rule.matches(host, port))
    }

    /// Whether a rule allows this name on any port.
    pub(crate) fn allows_name(&self, name: &HostName) -> bool {
        self.0.iter().any(|rule| rule.host.matches_name(name))
    }

    /// Whether a rule names this address and port, which permits it even if the address is not public.
    pub(crate) fn names_address(&self, address: IpAddr, port: u16) -> bool {
        let wanted = HostPattern::Address(address.to_canonical());
        self.0.iter().any(|rule| rule.port == port && rule.host == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(rules: &[&str]) -> AllowList {
        AllowList::new(rules.iter().map(|rule| HostPort::parse(rule).unwrap()).collect())
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
}
