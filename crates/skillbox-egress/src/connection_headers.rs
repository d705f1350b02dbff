//! Headers that belong to one connection and are not passed on.

use hyper::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE,
};

/// Headers that belong to one connection (RFC 9110, 7.6.1).
const CONNECTION_HEADERS: [&str; 5] = [
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
];

/// Headers that were checked or that delimit the body. A request that names them in `Connection` does not lose them.
const KEPT_HEADERS: [HeaderName; 3] = [HOST, CONTENT_LENGTH, TRANSFER_ENCODING];

/// Removes the headers that belong to the connection of the script. Returns whether the request asks for WebSocket, for
/// which two of them stay.
///
/// Another protocol is not passed on: after an upgrade to `h2c`, requests for any host and path would follow unseen. A
/// server may ignore the header (RFC 9110, 7.8), so clients continue with HTTP/1.1.
pub(crate) fn remove_connection_headers(headers: &mut HeaderMap) -> bool {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .filter(|name| !KEPT_HEADERS.contains(name))
        .collect();
    let mut protocols = headers.get_all(UPGRADE).iter();
    let is_websocket = protocols
        .next()
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
        && protocols.next().is_none();
    let is_upgrade = is_websocket && named.contains(&UPGRADE);
    // The only value that HTTP/2 allows, and that gRPC needs.
    let accepts_trailers = headers.get(TE).is_some_and(|value| value == "trailers");
    for name in CONNECTION_HEADERS {
        headers.remove(name);
    }
    for name in named.iter().filter(|name| **name != UPGRADE) {
        headers.remove(name);
    }
    headers.remove(CONNECTION);
    if accepts_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if is_upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    } else {
        headers.remove(UPGRADE);
    }
    is_upgrade
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_connection_are_removed() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, x-mine, Host, content-length, transfer-encoding"),
            ("host", "api.example.com"),
            ("content-length", "3"),
            ("x-mine", "1"),
            ("proxy-authorization", "Basic x"),
            ("te", "trailers"),
            ("accept", "*/*"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        assert!(!remove_connection_headers(&mut headers));
        let names: std::collections::BTreeSet<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["accept", "content-length", "host", "te"].into());
    }

    #[test]
    fn only_websocket_is_an_upgrade() {
        for (connection, upgrades, expected) in [
            ("keep-alive, Upgrade", &["WebSocket"][..], true),
            ("upgrade", &["websocket"], true),
            ("close", &["websocket"], false),
            ("upgrade", &["h2c"], false),
            ("upgrade, http2-settings", &["h2c"], false),
            ("upgrade", &["websocket, h2c"], false),
            ("upgrade", &["websocket", "h2c"], false),
            ("upgrade", &[], false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONNECTION, HeaderValue::from_static(connection));
            for upgrade in upgrades {
                headers.append(UPGRADE, HeaderValue::from_static(upgrade));
            }
            assert_eq!(remove_connection_headers(&mut headers), expected, "{upgrades:?}");
            assert_eq!(headers.contains_key(UPGRADE), expected, "{upgrades:?}");
            assert_eq!(headers.get(CONNECTION).is_some(), expected, "{upgrades:?}");
        }
    }
}
