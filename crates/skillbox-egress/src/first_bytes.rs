//! Recognises the protocol of a connection by the first bytes of the client.

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// TLS, which begins with a ClientHello.
    Tls,
    /// HTTP/1, or anything that a server could read as HTTP/1.
    Http,
    /// HTTP/2 without TLS.
    Http2,
    /// Another protocol.
    Other,
}

/// A first line that is longer is not waited for: the longest that common servers accept.
pub(crate) const MAX_FIRST_LINE_BYTES: usize = 8 << 10;

/// Recognises the protocol; none if more bytes are needed.
///
/// In doubt a connection is HTTP, because HTTP is checked: a server may ignore empty lines before a request, accept
/// `\n` for `\r\n`, and accept any method.
pub(crate) fn recognize(bytes: &[u8]) -> Option<Protocol> {
    const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let first = *bytes.first()?;
    if first == 0x16 {
        return Some(Protocol::Tls);
    }
    if bytes.starts_with(&HTTP2_PREFACE[..16]) {
        return Some(Protocol::Http2);
    }
    let text = bytes.trim_ascii_start();
    let Some(start) = text.first() else {
        return if bytes.len() < MAX_FIRST_LINE_BYTES {
            None
        } else {
            Some(Protocol::Http)
        };
    };
    // A method begins with a token character (RFC 9110).
    if !start.is_ascii_graphic() {
        return Some(Protocol::Other);
    }
    let line = match text.iter().position(|byte| *byte == b'\n') {
        Some(end) => &text[..end],
        None if text.iter().any(|byte| is_binary(*byte)) => return Some(Protocol::Other),
        None if bytes.len() < MAX_FIRST_LINE_BYTES => return None,
        None => return Some(Protocol::Http),
    };
    let mentions_http = line.windows(5).any(|part| part.eq_ignore_ascii_case(b"HTTP/"));
    // A request of HTTP/0.9 has no version.
    let is_http_0_9 = line
        .get(..4)
        .is_some_and(|start| start.eq_ignore_ascii_case(b"GET ") || start.eq_ignore_ascii_case(b"GET\t"));
    Some(if mentions_http || is_http_0_9 {
        Protocol::Http
    } else {
        Protocol::Other
    })
}

/// Whether a byte cannot occur in the first line of HTTP. Bytes above 127 can: servers pass them on in paths.
fn is_binary(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\t' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_recognized_by_their_first_bytes() {
        for (bytes, expected) in [
            (&b""[..], None),
            (b"\x16\x03\x01", Some(Protocol::Tls)),
            (b"G", None),
            (b"GET / HTTP/1.1", None),
            (b"GET / HTTP/1.1\r\n", Some(Protocol::Http)),
            (b"get / http/1.0\n", Some(Protocol::Http)),
            (b"\r\n\r\n", None),
            (b"\r\n GET / HTTP/1.1\r\n", Some(Protocol::Http)),
            (b"FOO /\xff HTTP/1.1\n", Some(Protocol::Http)),
            (b"GET /\r\n", Some(Protocol::Http)),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Some(Protocol::Http2)),
            (b"SSH-2.0-OpenSSH_9.2\r\n", Some(Protocol::Other)),
            (b"EHLO me\r\n", Some(Protocol::Other)),
            (b"*1\r\n$4\r\nPING\r\n", Some(Protocol::Other)),
            (b"\x00\x00\x00\x08\x04\xd2\x16\x2f", Some(Protocol::Other)),
            (b"abc\x00", Some(Protocol::Other)),
        ] {
            assert_eq!(recognize(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
        }
        assert_eq!(recognize(&vec![b'a'; MAX_FIRST_LINE_BYTES]), Some(Protocol::Http));
    }
}
