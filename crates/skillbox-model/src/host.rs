//! A host as protocols name it: in CONNECT, `Host`, `:authority`, a URL, and the server name of TLS.

use std::fmt;
use std::net::IpAddr;

use crate::host_pattern::{HostError, HostName, HostPattern, HostPort};

/// One host: a name or an address.
///
/// Invariant: two values are equal exactly if every client and server takes their texts for the same host. Texts that
/// clients read differently, such as `127.1`, `0x7f.1`, `[::ffff:127.0.0.1]` and `a%2eb`, are not parsed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A name.
    Name(HostName),
    /// An address.
    Address(IpAddr),
}

impl Host {
    /// Parses a name, an IPv4 address of four decimal numbers, or an IPv6 address in brackets.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let has_brackets = text.starts_with('[');
        if text.contains('*') {
            return Err(HostError::new(text, "`*` is allowed only in rules"));
        }
        if !has_brackets && text.contains(':') {
            return Err(HostError::new(text, "an IPv6 address is written in brackets"));
        }
        match HostPattern::parse(text)? {
            HostPattern::Name(name) => Ok(Self::Name(name)),
            HostPattern::Address(address) => Ok(Self::Address(address)),
            HostPattern::Subdomain(_) => Err(HostError::new(text, "`*` is allowed only in rules")),
        }
    }

    /// Parses `HOST` or `HOST:PORT`, as in CONNECT, `Host` and `:authority`.
    pub fn parse_authority(text: &str) -> Result<(Self, Option<u16>), HostError> {
        if !text.is_ascii() {
            return Err(HostError::new(text, "protocols write international names in ASCII"));
        }
        if text.contains(['/', '@', '\\', '?', '#', '%']) {
            return Err(HostError::new(text, "only a host and a port are expected"));
        }
        let (host, port) = match text.rfind(':') {
            Some(colon) if !text.ends_with(']') => (&text[..colon], Some(&text[colon + 1..])),
            _ => (text, None),
        };
        let host = Self::parse(host).map_err(|error| HostError::new(text, error.problem))?;
        match port {
            None => Ok((host, None)),
            Some(digits) => Ok((host, Some(parse_port(text, digits)?))),
        }
    }

    /// Parses the server name of TLS: a name in ASCII without a final dot (RFC 6066), never an address.
    pub fn parse_server_name(text: &str) -> Result<HostName, HostError> {
        if !text.is_ascii() || text.ends_with('.') {
            return Err(HostError::new(text, "a server name is in ASCII and has no final dot"));
        }
        HostName::parse(text)
    }

    /// A host at the address of a socket. A mapped address is the IPv4 address that it contains.
    pub fn of_address(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

/// A port: decimal digits without a sign, not zero.
fn parse_port(text: &str, digits: &str) -> Result<u16, HostError> {
    let is_plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    match digits.parse::<u16>() {
        Ok(port) if is_plain && port != 0 => Ok(port),
        _ => Err(HostError::new(text, "the port is a number from 1 to 65535")),
    }
}

impl HostPort {
    /// Whether this covers one host and port.
    pub fn matches(&self, host: &Host, port: u16) -> bool {
        self.port == port
            && match host {
                Host::Name(name) => self.host.matches_name(name),
                Host::Address(address) => self.host == HostPattern::Address(*address),
            }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{name}"),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authority(text: &str) -> Result<String, String> {
        let (host, port) = Host::parse_authority(text).map_err(|error| error.problem.to_owned())?;
        Ok(format!(
            "{host} {}",
            port.map_or("-".to_owned(), |port| port.to_string())
        ))
    }

    #[test]
    fn an_authority_is_a_host_and_maybe_a_port() {
        for (text, expected) in [
            ("api.example.com", "api.example.com -"),
            ("API.example.com.:443", "api.example.com 443"),
            ("10.0.0.1:80", "10.0.0.1 80"),
            ("[2001:DB8::1]:8080", "[2001:db8::1] 8080"),
            ("[::1]", "[::1] -"),
            ("localhost", "localhost -"),
            ("a_b.example:08080", "a_b.example 8080"),
        ] {
            assert_eq!(authority(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn texts_that_clients_read_differently_are_refused() {
        for text in [
            "",
            ":443",
            "a:",
            "a:0",
            "a:65536",
            "a:+1",
            "a: 1",
            "a:1:2",
            "::1",
            "::1:443",
            "[::1",
            "::1]",
            "[a]",
            "[10.0.0.1]",
            "[::1]x",
            "[::1%25lo]",
            "[fe80::1%eth0]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "127.1",
            "0177.0.0.1",
            "0x7f.0.0.1",
            "0x7f000001",
            "2130706433",
            "127.0.0.1.",
            "127.0.0.01",
            "1.2.3.4.5",
            "user@a",
            "a@b",
            "a/b",
            "a\\b",
            "a?b",
            "a#b",
            "a%2eb",
            "a b",
            "a\tb",
            "a\0b",
            "a\nb",
            "a..b",
            ".a",
            "a..",
            "-a.b",
            "a-.b",
            "*.a.b",
            "b\u{fc}cher.example",
            "a\u{3002}b",
            "xn--a.b",
            "a,b",
            "a;b",
            "a'b",
            "a\"b",
        ] {
            assert!(authority(text).is_err(), "{text:?}: {:?}", authority(text));
        }
    }

    #[test]
    fn a_server_name_is_a_name_in_ascii() {
        assert_eq!(Host::parse_server_name("A.example").unwrap().as_str(), "a.example");
        for text in [
            "",
            "10.0.0.1",
            "[::1]",
            "::1",
            "a.example.",
            "b\u{fc}cher.example",
            "*.a.example",
            "a.example:443",
            "a\0.example",
        ] {
            assert!(Host::parse_server_name(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_rule_matches_its_host_and_port_only() {
        let rule = HostPort::parse("*.example.org:8443").unwrap();
        let matches = |text: &str, port| rule.matches(&Host::parse(text).unwrap(), port);
        assert!(matches("a.example.org", 8443));
        assert!(!matches("a.example.org", 443) && !matches("example.org", 8443) && !matches("b.a.example.org", 8443));
        let address = HostPort::parse("10.0.0.1").unwrap();
        assert!(address.matches(&Host::parse("10.0.0.1").unwrap(), 443));
        assert!(address.matches(&Host::of_address("::ffff:10.0.0.1".parse().unwrap()), 443));
        assert!(!address.matches(&Host::parse("10.0.0.2").unwrap(), 443));
    }
}
