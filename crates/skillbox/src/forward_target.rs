//! Where audit records are forwarded to.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use reqwest::Url;

/// A receiver of audit records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardTarget {
    /// The socket of a syslog daemon on this host, such as `/dev/log`.
    SyslogSocket(PathBuf),
    /// A syslog server, `HOST:PORT`. Datagrams can be lost.
    SyslogUdp(String),
    /// A syslog server, `HOST:PORT`, with octet counting.
    SyslogTcp(String),
    /// A collector that accepts a POST of JSON lines.
    Collector(Url),
}

impl ForwardTarget {
    /// Parses an address.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("syslog+unix:") {
            // Also in the form of a URL, with an empty host.
            let path = path.strip_prefix("//").unwrap_or(path);
            return match Path::new(path).is_absolute() {
                true => Ok(Self::SyslogSocket(path.into())),
                false => Err(format!("{text:?} has no absolute path, as in syslog+unix:/dev/log")),
            };
        }
        if let Some(address) = text.strip_prefix("syslog+udp://") {
            return parse_address(address).map(Self::SyslogUdp);
        }
        if let Some(address) = text.strip_prefix("syslog+tcp://") {
            return parse_address(address).map(Self::SyslogTcp);
        }
        match Url::parse(text) {
            // A URL parser takes the first part of the path for a missing host.
            Ok(url) if matches!(url.scheme(), "http" | "https") && !text.contains(":///") => {
                check_collector(url).map(Self::Collector)
            }
            _ => Err(format!(
                "{text:?} is not syslog+unix:PATH, syslog+udp://HOST:PORT, syslog+tcp://HOST:PORT, http://… or https://…"
            )),
        }
    }

    /// Whether nobody else can read what is sent, a token included.
    pub fn is_confidential(&self) -> bool {
        match self {
            Self::Collector(url) if url.scheme() == "http" => url.host_str().is_some_and(is_loopback),
            _ => true,
        }
    }
}

fn parse_address(address: &str) -> Result<String, String> {
    let address = address.trim_end_matches('/');
    let has_port = address
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0));
    match has_port && (!address.starts_with('[') || address.parse::<SocketAddr>().is_ok()) {
        true => Ok(address.to_owned()),
        false => Err(format!("{address:?} is not HOST:PORT; a usual port is 514")),
    }
}

fn check_collector(url: Url) -> Result<Url, String> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "the address contains a password: put a token into a file and name it with audit_forward_token".into(),
        );
    }
    match url.host_str() {
        Some(_) => Ok(url),
        None => Err("the address has no host".into()),
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

impl fmt::Display for ForwardTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SyslogSocket(path) => write!(f, "syslog+unix:{}", path.display()),
            Self::SyslogUdp(address) => write!(f, "syslog+udp://{address}"),
            Self::SyslogTcp(address) => write!(f, "syslog+tcp://{address}"),
            Self::Collector(url) => write!(f, "{url}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_round_trip() {
        for text in [
            "syslog+unix:/dev/log",
            "syslog+udp://127.0.0.1:514",
            "syslog+tcp://[::1]:6514",
            "syslog+tcp://logs.example.com:601",
            "https://logs.example.com/audit?index=main",
        ] {
            assert_eq!(ForwardTarget::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(
            ForwardTarget::parse("syslog+unix:///dev/log"),
            ForwardTarget::parse("syslog+unix:/dev/log")
        );
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_the_form() {
        for (text, expected) in [
            ("syslog+unix:log", "absolute path"),
            ("syslog+tcp://logs.example.com", "HOST:PORT"),
            ("syslog+udp://:514", "HOST:PORT"),
            ("syslog+tcp://host:0", "HOST:PORT"),
            ("logs.example.com:514", "syslog+tcp://"),
            ("ftp://logs.example.com/", "syslog+tcp://"),
            ("https://user:password@logs.example.com/", "audit_forward_token"),
            ("http:///audit", "syslog+tcp://"),
        ] {
            let error = ForwardTarget::parse(text).map(|target| target.to_string());
            assert!(
                error.as_ref().is_err_and(|error| error.contains(expected)),
                "{text}: {error:?}"
            );
        }
    }

    #[test]
    fn only_loopback_is_confidential_without_tls() {
        for (text, expected) in [
            ("http://127.0.0.1:8080/", true),
            ("http://[::1]:8080/", true),
            ("http://localhost/", true),
            ("https://logs.example.com/", true),
            ("http://logs.example.com/", false),
            ("http://127.0.0.1.example.com/", false),
        ] {
            assert_eq!(
                ForwardTarget::parse(text).unwrap().is_confidential(),
                expected,
                "{text}"
            );
        }
    }
}
