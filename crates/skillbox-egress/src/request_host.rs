//! Which host a request of HTTP/1 names.

use hyper::header::{CONTENT_LENGTH, HOST, HeaderMap, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::{Method, Uri, Version};
use skillbox_model::Host;

use crate::denial::{Denial, Target};

/// How requests reach a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS, which skillbox terminates.
    Https,
}

impl Scheme {
    /// The port of a URL and of a `Host` without a port.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// The target of a request to the proxy port: that of CONNECT, or of an absolute URL.
pub(crate) fn proxy_target(method: &Method, uri: &Uri) -> Result<Target, Denial> {
    let authority = uri.authority().ok_or(Denial::NotAProxyRequest)?.as_str();
    let (host, port) = Host::parse_authority(authority).map_err(|error| Denial::NameNotAllowed(error.text.clone()))?;
    let port = match (method == Method::CONNECT, uri.scheme_str()) {
        (true, None) => port.ok_or(Denial::NotAProxyRequest)?,
        (false, Some("http")) => port.unwrap_or(Scheme::Http.default_port()),
        _ => return Err(Denial::NotAProxyRequest),
    };
    Ok(Target { host, port })
}

/// Checks that a request names exactly this host: in its one `Host` or, in HTTP/2, `:authority`, and in its URL if that
/// is absolute.
pub(crate) fn check_host(request: &Parts, target: &Target, scheme: Scheme) -> Result<(), Denial> {
    let mut values = request.headers.get_all(HOST).iter();
    let authority = request.uri.authority().map(|authority| authority.as_str());
    let host = match (values.next(), values.next()) {
        (Some(host), None) => Some(host),
        (None, None) if request.version == Version::HTTP_2 && authority.is_some() => None,
        _ => return Err(Denial::HttpHostMissing),
    };
    let differs = |text: &str| Denial::HttpHostDiffers(text.to_owned());
    let host = host
        .map(|host| host.to_str().map_err(|_| differs("a text that is not ASCII")))
        .transpose()?;
    for text in host.into_iter().chain(authority) {
        let named = Host::parse_authority(text).map(|(host, port)| Target {
            host,
            port: port.unwrap_or(scheme.default_port()),
        });
        if named.as_ref() != Ok(target) {
            return Err(differs(text));
        }
    }
    if request.uri.scheme_str().is_some_and(|named| named != scheme.as_str()) {
        return Err(differs(&request.uri.to_string()));
    }
    Ok(())
}

/// Whether the length of the body can be read in two ways, which hides a request from this check.
pub(crate) fn has_ambiguous_length(headers: &HeaderMap) -> bool {
    headers.contains_key(CONTENT_LENGTH) && headers.contains_key(TRANSFER_ENCODING)
        || headers.get_all(CONTENT_LENGTH).iter().count() > 1
        || headers.get_all(TRANSFER_ENCODING).iter().count() > 1
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn target(host: &str, port: u16) -> Target {
        Target {
            host: Host::parse(host).unwrap(),
            port,
        }
    }

    #[test]
    fn the_proxy_accepts_connect_and_absolute_urls() {
        let parse = |method: &str, uri: &str| {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let uri: Option<Uri> = uri.parse().ok();
            proxy_target(&method, &uri.ok_or(Denial::NotAProxyRequest)?)
        };
        assert_eq!(parse("CONNECT", "A.example:443"), Ok(target("a.example", 443)));
        assert_eq!(parse("CONNECT", "[2001:db8::1]:443"), Ok(target("[2001:db8::1]", 443)));
        assert_eq!(parse("GET", "http://a.example/x?y"), Ok(target("a.example", 80)));
        assert_eq!(parse("GET", "http://a.example:8080"), Ok(target("a.example", 8080)));
        for (method, uri) in [
            ("CONNECT", "a.example"),
            ("CONNECT", "a.example:0"),
            ("CONNECT", "user@a.example:443"),
            ("CONNECT", "0x7f.1:443"),
            ("CONNECT", "2130706433:443"),
            ("CONNECT", "[::ffff:127.0.0.1]:443"),
            ("GET", "https://a.example/"),
            ("GET", "/path"),
            ("GET", "*"),
            ("GET", "http://a.example@b.example/"),
            ("GET", "http://a%2eexample/"),
            ("GET", "ftp://a.example/"),
        ] {
            assert!(parse(method, uri).is_err(), "{method} {uri}");
        }
    }

    #[test]
    fn a_request_must_name_its_host_exactly_once() {
        let check = |uri: &str, hosts: &[&str]| {
            let mut request = Request::builder().uri(uri);
            for host in hosts {
                request = request.header(HOST, *host);
            }
            let parts = request.body(()).unwrap().into_parts().0;
            check_host(&parts, &target("a.example", 8080), Scheme::Http)
        };
        assert_eq!(check("/", &["a.example:8080"]), Ok(()));
        assert_eq!(check("http://A.example:8080/", &["a.example.:8080"]), Ok(()));
        assert_eq!(check("/", &[]), Err(Denial::HttpHostMissing));
        assert_eq!(
            check("/", &["a.example:8080", "a.example:8080"]),
            Err(Denial::HttpHostMissing)
        );
        for (uri, host) in [
            ("/", "b.example:8080"),
            ("/", "a.example"),
            ("/", "a.example:443"),
            ("/", ""),
            ("/", "a.example:8080, b.example"),
            ("/", "x@a.example:8080"),
            ("http://b.example:8080/", "a.example:8080"),
            ("http://a.example/", "a.example:8080"),
            ("https://a.example:8080/", "a.example:8080"),
        ] {
            assert!(
                matches!(check(uri, &[host]), Err(Denial::HttpHostDiffers(_))),
                "{uri} {host}"
            );
        }
    }

    #[test]
    fn a_request_of_http2_names_its_host_in_the_authority() {
        let check = |uri: &str, host: Option<&str>| {
            let mut request = Request::builder().uri(uri).version(Version::HTTP_2);
            if let Some(host) = host {
                request = request.header(HOST, host);
            }
            let parts = request.body(()).unwrap().into_parts().0;
            check_host(&parts, &target("a.example", 443), Scheme::Https)
        };
        assert_eq!(check("https://a.example/", None), Ok(()));
        assert_eq!(check("https://A.example:443/x", Some("a.example")), Ok(()));
        assert_eq!(check("/", Some("a.example")), Ok(()));
        assert_eq!(check("/", None), Err(Denial::HttpHostMissing));
        for (uri, host) in [
            ("https://b.example/", None),
            ("https://a.example/", Some("b.example")),
            ("https://b.example/", Some("a.example")),
            ("https://a.example:8443/", None),
            ("http://a.example:443/", None),
            ("https://x@a.example/", None),
        ] {
            assert!(
                matches!(check(uri, host), Err(Denial::HttpHostDiffers(_))),
                "{uri} {host:?}"
            );
        }
    }

    #[test]
    fn a_body_has_one_length() {
        let ambiguous = |headers: &[(&str, &str)]| {
            let mut request = Request::builder();
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            has_ambiguous_length(request.body(()).unwrap().headers())
        };
        assert!(
            !ambiguous(&[("content-length", "1")])
                && !ambiguous(&[("transfer-encoding", "chunked")])
                && !ambiguous(&[])
        );
        assert!(ambiguous(&[("content-length", "1"), ("transfer-encoding", "chunked")]));
        assert!(ambiguous(&[("content-length", "1"), ("content-length", "2")]));
        assert!(ambiguous(&[
            ("transfer-encoding", "x"),
            ("transfer-encoding", "chunked")
        ]));
    }
}
