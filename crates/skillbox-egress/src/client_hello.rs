//! Reads the server name of a TLS ClientHello (RFC 8446, RFC 6066) without taking part in the handshake.

/// The most bytes until a ClientHello must be complete. Key shares of post-quantum algorithms have about 2 KiB.
pub(crate) const MAX_HELLO_BYTES: usize = 32 << 10;

/// What a ClientHello says about the server that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientHello {
    /// The server name; none if the client sent none.
    pub server_name: Option<String>,
    /// Whether the hello contains, or may contain, another server name that is encrypted (ECH or its predecessor ESNI).
    pub has_encrypted_name: bool,
}

/// Why bytes are not a ClientHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HelloError {
    /// The hello continues after the last byte.
    Incomplete,
    /// The bytes are not a valid hello.
    Malformed,
}

const HANDSHAKE_RECORD: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const MAX_RECORD_BYTES: usize = 1 << 14;
const SERVER_NAME: u16 = 0;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
const ENCRYPTED_SERVER_NAME: u16 = 0xffce;

/// Parses the records at the start of a connection, which contain the hello.
pub(crate) fn parse(bytes: &[u8]) -> Result<ClientHello, HelloError> {
    if bytes.len() > MAX_HELLO_BYTES {
        return Err(HelloError::Malformed);
    }
    let handshake = join_records(bytes)?;
    parse_handshake(&handshake)
}

/// The content of the handshake records, up to the end of the first message.
fn join_records(mut bytes: &[u8]) -> Result<Vec<u8>, HelloError> {
    let mut content = Vec::new();
    loop {
        if let Some(needed) = message_length(&content)
            && content.len() >= needed
        {
            content.truncate(needed);
            return Ok(content);
        }
        let (header, rest) = bytes.split_at_checked(5).ok_or(HelloError::Incomplete)?;
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if header[0] != HANDSHAKE_RECORD || header[1] != 3 || length == 0 || length > MAX_RECORD_BYTES {
            return Err(HelloError::Malformed);
        }
        let available = rest.len().min(length);
        content.extend_from_slice(&rest[..available]);
        if content.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return Err(HelloError::Malformed);
        }
        if available < length {
            return Err(HelloError::Incomplete);
        }
        bytes = &rest[length..];
    }
}

/// The length of the handshake message with its header, once the header is there.
fn message_length(content: &[u8]) -> Option<usize> {
    let header = content.get(..4)?;
    Some(4 + usize::from(header[1]) * 0x1_0000 + usize::from(header[2]) * 0x100 + usize::from(header[3]))
}

fn parse_handshake(message: &[u8]) -> Result<ClientHello, HelloError> {
    let mut hello = Reader(message.get(4..).ok_or(HelloError::Malformed)?);
    hello.take(2 + 32)?; // version and random
    hello.take_u8_list()?; // session id
    hello.take_u16_list()?; // cipher suites
    hello.take_u8_list()?; // compression methods
    let mut found = ClientHello {
        server_name: None,
        has_encrypted_name: false,
    };
    if hello.0.is_empty() {
        return Ok(found);
    }
    let mut extensions = Reader(hello.take_u16_list()?);
    hello.expect_end()?;
    let mut seen = Vec::new();
    while !extensions.0.is_empty() {
        let kind = extensions.take_u16()?;
        let content = extensions.take_u16_list()?;
        // A server could use another one of two equal extensions.
        if seen.contains(&kind) {
            return Err(HelloError::Malformed);
        }
        seen.push(kind);
        match kind {
            SERVER_NAME => found.server_name = Some(parse_server_name(content)?),
            ENCRYPTED_CLIENT_HELLO | ENCRYPTED_SERVER_NAME => found.has_encrypted_name = true,
            _ => {}
        }
    }
    Ok(found)
}

/// Parses the list of names, which contains exactly one host name.
fn parse_server_name(content: &[u8]) -> Result<String, HelloError> {
    let mut outer = Reader(content);
    let mut names = Reader(outer.take_u16_list()?);
    outer.expect_end()?;
    let kind = names.take(1)?[0];
    let name = names.take_u16_list()?;
    names.expect_end()?;
    match (kind, std::str::from_utf8(name)) {
        (0, Ok(name)) => Ok(name.to_owned()),
        _ => Err(HelloError::Malformed),
    }
}

/// Reads length-prefixed values. Within a complete message, a missing byte is an error.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], HelloError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(HelloError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn take_u16(&mut self) -> Result<u16, HelloError> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn take_u8_list(&mut self) -> Result<&'a [u8], HelloError> {
        let length = self.take(1)?[0];
        self.take(usize::from(length))
    }

    fn take_u16_list(&mut self) -> Result<&'a [u8], HelloError> {
        let length = self.take_u16()?;
        self.take(usize::from(length))
    }

    fn expect_end(&self) -> Result<(), HelloError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(HelloError::Malformed)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use rustls::pki_types::ServerName;
    use rustls::server::Acceptor;
    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::*;

    /// The first flight of a real client.
    fn real_hello(name: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    /// The name that a real server reads; none if it reads none or refuses the hello.
    fn name_by_rustls(bytes: &[u8]) -> Option<String> {
        let mut acceptor = Acceptor::default();
        acceptor.read_tls(&mut &bytes[..]).ok()?;
        let accepted = acceptor.accept().ok()??;
        accepted.client_hello().server_name().map(str::to_owned)
    }

    /// A hello with these extensions.
    fn hello_with(extensions: &[(u16, &[u8])]) -> Vec<u8> {
        let list: Vec<u8> = extensions
            .iter()
            .flat_map(|(kind, content)| {
                [&kind.to_be_bytes()[..], &(content.len() as u16).to_be_bytes(), content].concat()
            })
            .collect();
        let body = [
            &[3, 3][..],
            &[7; 32],
            &[0],
            &[0, 2, 0x13, 0x01],
            &[1, 0],
            &(list.len() as u16).to_be_bytes(),
            &list,
        ]
        .concat();
        let length = body.len() as u32;
        let message = [&[1][..], &length.to_be_bytes()[1..], &body].concat();
        [&[22, 3, 1][..], &(message.len() as u16).to_be_bytes(), &message].concat()
    }

    fn sni(name: &[u8]) -> Vec<u8> {
        let entry = [&[0][..], &(name.len() as u16).to_be_bytes(), name].concat();
        [&(entry.len() as u16).to_be_bytes()[..], &entry].concat()
    }

    #[test]
    fn the_name_of_a_real_client_is_read_like_a_real_server_reads_it() {
        for name in ["a.example", "xn--bcher-kva.example", "10.0.0.1"] {
            let bytes = real_hello(name);
            let hello = parse(&bytes).unwrap();
            assert_eq!(hello.server_name, name_by_rustls(&bytes), "{name}");
            assert!(!hello.has_encrypted_name);
            for end in 0..bytes.len() {
                assert_eq!(parse(&bytes[..end]), Err(HelloError::Incomplete), "{end}");
            }
        }
    }

    #[test]
    fn a_hello_in_many_records_is_joined() {
        let whole = real_hello("a.example");
        let message = &whole[5..];
        let split: Vec<u8> = message
            .chunks(7)
            .flat_map(|chunk| [&[22, 3, 1, 0, chunk.len() as u8][..], chunk].concat())
            .collect();
        assert_eq!(parse(&split).unwrap().server_name.as_deref(), Some("a.example"));
    }

    #[test]
    fn an_encrypted_name_is_noticed() {
        let name = sni(b"a.example");
        assert!(!parse(&hello_with(&[(0, &name)])).unwrap().has_encrypted_name);
        for kind in [ENCRYPTED_CLIENT_HELLO, ENCRYPTED_SERVER_NAME] {
            let hello = parse(&hello_with(&[(0, &name), (kind, b"x")])).unwrap();
            assert!(hello.has_encrypted_name);
            assert_eq!(hello.server_name.as_deref(), Some("a.example"));
        }
        assert_eq!(parse(&hello_with(&[])).unwrap().server_name, None);
    }

    #[test]
    fn ambiguous_and_broken_hellos_are_malformed() {
        let name = sni(b"a.example");
        let two_names = {
            let one = &name[2..];
            [&((one.len() * 2) as u16).to_be_bytes()[..], one, one].concat()
        };
        for bytes in [
            hello_with(&[(0, &name), (0, &sni(b"b.example"))]),
            hello_with(&[(0, &two_names)]),
            hello_with(&[(0, &[])]),
            hello_with(&[(0, &[0, 3, 1, 0, 0])]),
            hello_with(&[(0, &sni(b"\xff\xfe"))]),
            hello_with(&[(0, &[&name[..], b"x"].concat())]),
            [&[22, 3, 1, 0, 0][..], &hello_with(&[])].concat(),
            vec![22, 3, 1, 0, 1, 2],
            vec![22, 2, 0, 0, 1, 1],
            vec![22, 3, 1, 0xff, 0xff],
            vec![23, 3, 1, 0, 1],
            [&[22, 3, 1, 0, 4, 1, 0, 0, 0][..]].concat(),
            vec![22; MAX_HELLO_BYTES + 1],
        ] {
            assert_eq!(parse(&bytes), Err(HelloError::Malformed), "{bytes:?}");
        }
    }

    proptest! {
        /// A changed hello is never read as another name than a real server reads.
        #[test]
        fn a_changed_hello_is_not_read_differently(changes in proptest::collection::vec((0_usize..400, any::<u8>()), 1..4)) {
            let mut bytes = real_hello("a.example");
            for (position, value) in changes {
                let length = bytes.len();
                bytes[position % length] = value;
            }
            if let (Ok(hello), Some(theirs)) = (parse(&bytes), name_by_rustls(&bytes)) {
                prop_assert_eq!(hello.server_name.map(|name| name.to_ascii_lowercase()), Some(theirs.to_ascii_lowercase()));
            }
        }

        #[test]
        fn no_bytes_crash_the_parser(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = parse(&bytes);
            let _ = parse(&[&[22, 3, 1, 2, 0][..], &bytes].concat());
        }
    }
}
