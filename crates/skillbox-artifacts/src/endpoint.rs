//! The URL of a server that is compatible with a provider's API.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;

use crate::url_display::without_credentials;

/// The URL of a server that is compatible with a provider's API.
///
/// Invariants: the scheme is `http` or `https`; there is a host, and no user name or password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(Url);

/// Why a text is not an endpoint. The texts contain no credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// It is not a URL of HTTP.
    #[error("the endpoint {0:?} is not an http:// or https:// URL")]
    NotHttp(String),
    /// It contains a user name or a password.
    #[error("the endpoint {0:?} contains a user name or password, which belong in the provider's variables")]
    Credentials(String),
}

impl Endpoint {
    /// Parses a URL.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let not_http = || EndpointError::NotHttp(without_credentials(text));
        let url = Url::parse(text).map_err(|_| not_http())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(not_http());
        }
        // An `@` after the host can be the rest of a password that contains a slash.
        if text.contains('@') {
            return Err(EndpointError::Credentials(without_credentials(text)));
        }
        Ok(Self(url))
    }

    /// The URL, without a slash at its end.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str().trim_end_matches('/')
    }

    /// Whether requests are encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Whether the host is `localhost` or a literal loopback address. Other names are not looked up: what they resolve
    /// to can change.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s31_only_localhost_and_loopback_addresses_are_this_host() {
        let check = |text: &str, is_loopback| {
            assert_eq!(Endpoint::parse(text).unwrap().is_loopback(), is_loopback, "{text}");
        };
        check("http://127.0.0.1:9000", true);
        check("http://127.8.9.10/x", true);
        check("http://localhost:9000/", true);
        check("HTTP://LOCALHOST", true);
        check("http://[::1]:9000", true);
        check("http://127.example.com", false);
        check("http://127.0.0.1.example.com:9000", false);
        check("http://localhost.example.com", false);
        check("http://[2001:db8::1]:9000", false);
        check("http://10.0.0.1", false);
        check("http://store.example/127.0.0.1", false);
    }

    #[test]
    fn s31_an_endpoint_with_credentials_is_refused_and_does_not_show_them() {
        for text in [
            "http://key:SECRET@127.0.0.1",
            "http://key:/SECRET@store.example",
            "http://key:SEC/RET@store.example",
            "key:SECRET@store.example",
            "ftp://key:SECRET@store.example",
            "http://key:SECRET",
        ] {
            let error = Endpoint::parse(text).unwrap_err().to_string();
            assert!(!error.contains("SEC") && !error.contains("RET"), "{text}: {error}");
        }
    }

    #[test]
    fn the_text_has_no_slash_at_its_end() {
        let shown = |text: &str| Endpoint::parse(text).unwrap().to_string();
        assert_eq!(shown("http://store.example"), "http://store.example");
        assert_eq!(
            shown("https://store.example:9000/path/"),
            "https://store.example:9000/path"
        );
    }
}
