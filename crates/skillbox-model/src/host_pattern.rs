//! Hosts that a run may reach: a name, `*.name`, or an address, each with a port.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The port of a host that is written without one.
pub const DEFAULT_PORT: u16 = 443;

/// The longest text that is parsed: international names shrink and grow when they become ASCII.
const MAX_TEXT_BYTES: usize = 1024;

/// The error for a text that does not name a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a host: {problem}")]
pub struct HostError {
    /// The start of the text.
    pub text: String,
    /// What is wrong, and what is expected.
    pub problem: &'static str,
}

impl HostError {
    pub(crate) fn new(text: &str, problem: &'static str) -> Self {
        Self {
            text: text.chars().take(300).collect(),
            problem,
        }
    }
}

/// A DNS name.
///
/// Invariants: lower-case ASCII; 1 to 253 bytes; labels of 1 to 63 letters, digits, `-` and `_`, no hyphen at either
/// end; no final dot; the last label is not a number, so a name is never taken for an IPv4 address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct HostName(Box<str>);

impl HostName {
    /// Parses a name. Upper-case letters become lower-case, one final dot is removed, and an international name becomes
    /// its ASCII form, `xn--…`, which is also the form that is shown: look-alike letters stay visible.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let invalid = |problem| Err(HostError::new(text, problem));
        if text.len() > MAX_TEXT_BYTES {
            return invalid("a name has 1 to 253 characters");
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let name = &*if is_plain_name(name) {
            Cow::Borrowed(name)
        } else {
            to_ascii(name).ok_or_else(|| HostError::new(text, "this is not a valid international name"))?
        };
        if name.is_empty() || name.len() > 253 {
            return invalid("a name has 1 to 253 characters");
        }
        let is_label = |label: &str| {
            let has_valid_chars = label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
            (1..=63).contains(&label.len()) && has_valid_chars && !label.starts_with('-') && !label.ends_with('-')
        };
        if !name.split('.').all(is_label) {
            return invalid("the parts between the dots have 1 to 63 letters, digits and hyphens");
        }
        // Resolvers read numbers such as `0x7f.1` and `127.1` as addresses.
        let last = name.rsplit('.').next().unwrap_or(name);
        let is_hex = last.len() > 1 && (last.starts_with("0x") || last.starts_with("0X"));
        if last.bytes().all(|b| b.is_ascii_digit()) || is_hex {
            return invalid("the last part is a number; write an IPv4 address as four decimal numbers");
        }
        Ok(Self(name.to_ascii_lowercase().into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for HostName {
    type Error = HostError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<HostName> for String {
    fn from(name: HostName) -> Self {
        name.0.into()
    }
}

/// Refuses an IPv4 address in the form of an IPv6 address: each address has one spelling.
fn unmapped(text: &str, address: IpAddr) -> Result<IpAddr, HostError> {
    match address {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            Err(HostError::new(text, "write an IPv4 address as four decimal numbers"))
        }
        address => Ok(address),
    }
}

/// Whether a name needs no conversion: it is ASCII, and no part of it claims to be an international name.
fn is_plain_name(name: &str) -> bool {
    name.is_ascii()
        && !name
            .split('.')
            .any(|label| label.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--")))
}

/// The ASCII form of an international name by UTS 46, as browsers compute it. Characters that ASCII names cannot have
/// are refused, whether or not other characters map to them: `％2e` is not a dot.
fn to_ascii(name: &str) -> Option<Cow<'_, str>> {
    let ascii = idna::domain_to_ascii_cow(name.as_bytes(), idna::AsciiDenyList::URL).ok()?;
    // A full-width dot would silently change the number of labels, and a final dot was removed already.
    (ascii.matches('.').count() == name.matches('.').count()).then_some(ascii)
}

/// The hosts that a rule covers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPattern {
    /// Exactly this name.
    Name(HostName),
    /// `*.name`: one label before the name, neither more nor none.
    Subdomain(HostName),
    /// Exactly this address, written as an address.
    Address(IpAddr),
}

impl HostPattern {
    /// Parses a name, `*.name`, or an address. An IPv6 address may be in brackets.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let without_brackets = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Some(inner) = without_brackets {
            return match inner.parse::<Ipv6Addr>() {
                Ok(address) => unmapped(text, address.into()).map(Self::Address),
                Err(_) => Err(HostError::new(text, "brackets are for IPv6 addresses")),
            };
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return unmapped(text, address).map(Self::Address);
        }
        if let Some(name) = text.strip_prefix("*.") {
            let name = HostName::parse(name).map_err(|error| HostError::new(text, error.problem))?;
            if !name.as_str().contains('.') {
                return Err(HostError::new(
                    text,
                    "a wildcard needs a name of two parts, as in `*.example.org`",
                ));
            }
            return Ok(Self::Subdomain(name));
        }
        if text.contains('*') {
            return Err(HostError::new(
                text,
                "`*` stands only for the whole first part, as in `*.example.org`",
            ));
        }
        HostName::parse(text).map(Self::Name)
    }

    /// Whether the pattern covers this name.
    pub fn matches_name(&self, name: &HostName) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Subdomain(parent) => name
                .as_str()
                .split_once('.')
                .is_some_and(|(_, rest)| rest == parent.as_str()),
            Self::Address(_) => false,
        }
    }

    /// Whether everything that `other` covers is covered by this pattern too.
    pub fn covers(&self, other: &Self) -> bool {
        match other {
            Self::Name(name) => self.matches_name(name),
            Self::Subdomain(_) | Self::Address(_) => self == other,
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{name}"),
            Self::Subdomain(name) => write!(f, "*.{name}"),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// A host pattern with a port, written `HOST` or `HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct HostPort {
    /// The hosts.
    pub host: HostPattern,
    /// The TCP port; never zero.
    pub port: u16,
}

impl HostPort {
    /// Parses `HOST` or `HOST:PORT`. An IPv6 address with a port needs brackets. The default port is 443.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.contains("://") || text.contains('/') || text.contains('@') {
            return Err(HostError::new(
                text,
                "write only the host and the port, without scheme, user and path",
            ));
        }
        let is_bare_ipv6 = !text.starts_with('[') && text.matches(':').count() > 1;
        let colon = match text.rfind(':') {
            Some(colon) if !is_bare_ipv6 && !text.ends_with(']') => colon,
            _ => {
                return Ok(Self {
                    host: HostPattern::parse(text)?,
                    port: DEFAULT_PORT,
                });
            }
        };
        let digits = &text[colon + 1..];
        let is_plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        match digits.parse::<u16>() {
            Ok(port) if is_plain && port != 0 => Ok(Self {
                host: HostPattern::parse(&text[..colon]).map_err(|error| HostError::new(text, error.problem))?,
                port,
            }),
            _ => Err(HostError::new(text, "the port is a number from 1 to 65535")),
        }
    }

    /// Whether everything that `other` covers is covered by this one too.
    pub fn covers(&self, other: &Self) -> bool {
        self.port == other.port && self.host.covers(&other.host)
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl TryFrom<String> for HostPort {
    type Error = HostError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<HostPort> for String {
    fn from(host: HostPort) -> Self {
        host.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_written_in_one_way() {
        for (text, written) in [
            ("api.example.com", "api.example.com:443"),
            ("API.Example.com.:8443", "api.example.com:8443"),
            ("*.example.org", "*.example.org:443"),
            ("10.0.0.1:80", "10.0.0.1:80"),
            ("::1", "[::1]:443"),
            ("[2001:db8::1]:8080", "[2001:db8::1]:8080"),
            ("[::1]", "[::1]:443"),
            ("localhost:5432", "localhost:5432"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example:443"),
            ("Bücher.example", "xn--bcher-kva.example:443"),
            ("*.bücher.example", "*.xn--bcher-kva.example:443"),
            ("pаypal.example", "xn--pypal-4ve.example:443"),
        ] {
            let host = HostPort::parse(text).unwrap();
            assert_eq!(host.to_string(), written, "{text}");
            assert_eq!(HostPort::parse(&host.to_string()).unwrap(), host, "{text}");
        }
    }

    #[test]
    fn other_spellings_are_refused_with_the_reason() {
        for (text, reason) in [
            ("", "1 to 253"),
            ("https://example.com", "without scheme"),
            ("example.com/path", "without scheme"),
            ("user@example.com", "without scheme"),
            ("example.com:0", "port"),
            ("example.com:+1", "port"),
            ("example.com:70000", "port"),
            ("example.com:", "port"),
            ("a.*.example.com", "first part"),
            ("a*.example.com", "first part"),
            ("*", "first part"),
            ("*.com", "two parts"),
            ("*.10.0.0.1", "number"),
            ("127.1", "number"),
            ("0x7f.0x1", "number"),
            ("2130706433", "number"),
            ("010.0.0.1", "number"),
            ("xn--a.example", "international"),
            ("a。example", "international"),
            ("exa％2emple", "international"),
            ("[::ffff:10.0.0.1]", "four decimal"),
            ("fe80::1%eth0", "letters"),
            ("%31.example", "letters"),
            ("-a.example", "letters"),
            ("a..example", "letters"),
            ("[10.0.0.1]", "IPv6"),
            ("exa mple.com", "letters"),
            (&"a.".repeat(140), "1 to 253"),
        ] {
            let error = HostPort::parse(text).expect_err(text);
            assert!(error.to_string().contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_wildcard_stands_for_one_label() {
        let wildcard = HostPort::parse("*.example.org").unwrap();
        let covers = |text: &str| wildcard.covers(&HostPort::parse(text).unwrap());
        assert!(covers("a.example.org") && covers("*.example.org"));
        for text in [
            "example.org",
            "a.b.example.org",
            "a.example.org:80",
            "aexample.org",
            "*.a.example.org",
        ] {
            assert!(!covers(text), "{text}");
        }
        let address = HostPort::parse("10.0.0.1").unwrap();
        assert!(address.covers(&HostPort::parse("10.0.0.1:443").unwrap()));
        assert!(!address.covers(&HostPort::parse("10.0.0.2").unwrap()));
    }
}
