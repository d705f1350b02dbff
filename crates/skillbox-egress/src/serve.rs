//! Serves one connection of a script: checks which host its first bytes name, and copies bytes.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use skillbox_model::Host;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::client_hello::{self, ClientHello, HelloError};
use crate::client_stream::ClientStream;
use crate::denial::{Denial, Target};
use crate::first_bytes::{Protocol, recognize};
use crate::metered_stream::MeteredStream;
use crate::origin;
use crate::rewind::Rewind;
use crate::run_state::RunState;
use crate::terminate;
use crate::upstream::connect;

/// The buffer of each direction. A connection needs two.
const COPY_BUFFER_BYTES: usize = 16 << 10;

/// The ports on which every connection names its host, because many hosts share an address there.
const NAMED_PORTS: [u16; 2] = [80, 443];

/// Serves a connection to an address of the sandbox. The address says which host the script means.
pub(crate) async fn serve_accepted(run: Arc<RunState>, client: TcpStream) {
    let Ok(local) = client.local_addr() else { return };
    let address = local.ip().to_canonical();
    let name = match address {
        IpAddr::V4(address) => run.names.name_at(address),
        IpAddr::V6(_) => None,
    };
    let target = Target {
        host: name.map_or_else(|| Host::of_address(address), Host::Name),
        port: local.port(),
    };
    client.set_reset_on_close(true);
    // Without the option small messages only are slower.
    let _ = client.set_nodelay(true);
    match connect(&run, &target).await {
        Ok(upstream) => serve_connected(&run, client, upstream, &target).await,
        Err(refusal) => run.record_refusal(&target, &refusal),
    }
}

/// Carries a connection if its first bytes name the host that it was opened to.
pub(crate) async fn serve_connected<S: ClientStream>(
    run: &Arc<RunState>,
    mut client: S,
    mut upstream: MeteredStream,
    target: &Target,
) {
    let checked = match read_first_bytes(run, &mut client, &mut upstream, target).await {
        Ok(checked) => checked,
        Err(denial) => return run.record_denial(target, &denial),
    };
    client.set_reset_on_close(false);
    match checked {
        // The client or the server has closed the connection.
        FirstBytes::Closed => {}
        FirstBytes::Http(first) => origin::serve(run, Rewind::new(first, client), upstream, target).await,
        FirstBytes::Tls(first) if run.reads_requests(target) => {
            terminate::serve(run, Rewind::new(first, client), upstream, target).await;
        }
        FirstBytes::Tls(first) | FirstBytes::Other(first) => {
            if upstream.write_all(&first).await.is_ok() {
                copy(run, &mut client, &mut upstream).await;
            }
        }
    }
}

/// Copies bytes in both directions until both ends are closed, or the connection is idle.
pub(crate) async fn copy<S>(run: &RunState, client: &mut S, upstream: &mut MeteredStream)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let meter = Arc::clone(upstream.meter());
    tokio::select! {
        // An error ends the connection as the end of either side does.
        _ = copy_bidirectional_with_sizes(client, upstream, COPY_BUFFER_BYTES, COPY_BUFFER_BYTES) => {}
        () = meter.wait_until_idle(run.limits.idle) => {}
    }
}

/// The first bytes of a client, which name an allowed host.
enum FirstBytes {
    /// The connection ended before.
    Closed,
    /// HTTP/1. Each request is checked.
    Http(Bytes),
    /// TLS for the right name.
    Tls(Bytes),
    /// A protocol that names no host.
    Other(Bytes),
}

/// Reads until the protocol and the host are known. What a server says first is passed on meanwhile, because it tells
/// the server nothing.
async fn read_first_bytes<S: ClientStream>(
    run: &RunState,
    client: &mut S,
    upstream: &mut MeteredStream,
    target: &Target,
) -> Result<FirstBytes, Denial> {
    let may_server_speak_first = !NAMED_PORTS.contains(&target.port);
    let deadline = tokio::time::sleep(run.limits.first_bytes);
    tokio::pin!(deadline);
    let mut first = BytesMut::new();
    let mut answer = [0; 1024];
    loop {
        tokio::select! {
            read = client.read_buf(&mut first) => match read {
                Ok(0) | Err(_) => return Ok(FirstBytes::Closed),
                Ok(_) => match check_first_bytes(&first, target)? {
                    Verdict::ReadMore => {}
                    // A protocol that skillbox cannot read could do anything.
                    Verdict::Other if run.restricts_requests(target) => return Err(Denial::NotHttp),
                    Verdict::Tls => return Ok(FirstBytes::Tls(first.freeze())),
                    Verdict::Http => return Ok(FirstBytes::Http(first.freeze())),
                    Verdict::Other => return Ok(FirstBytes::Other(first.freeze())),
                },
            },
            read = upstream.read(&mut answer), if may_server_speak_first => match read {
                Ok(0) | Err(_) => return Ok(FirstBytes::Closed),
                Ok(count) => {
                    if client.write_all(&answer[..count]).await.is_err() {
                        return Ok(FirstBytes::Closed);
                    }
                    deadline.as_mut().reset(Instant::now() + run.limits.idle);
                }
            },
            () = &mut deadline => return Err(Denial::FirstBytesTimeout),
        }
    }
}

/// What the first bytes so far allow.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    ReadMore,
    Http,
    Tls,
    Other,
}

fn check_first_bytes(bytes: &[u8], target: &Target) -> Result<Verdict, Denial> {
    match recognize(bytes) {
        None => Ok(Verdict::ReadMore),
        Some(Protocol::Http) => Ok(Verdict::Http),
        Some(Protocol::Http2) => Err(Denial::Http2WithoutTls),
        Some(Protocol::Other) if NAMED_PORTS.contains(&target.port) => Err(Denial::NeitherTlsNorHttp),
        Some(Protocol::Other) => Ok(Verdict::Other),
        Some(Protocol::Tls) => match client_hello::parse(bytes) {
            Ok(hello) => check_server_name(&hello, target).map(|()| Verdict::Tls),
            Err(HelloError::Incomplete) => Ok(Verdict::ReadMore),
            Err(HelloError::Malformed) => Err(Denial::MalformedTls),
        },
    }
}

/// The server name must be the name that the script connected to. Clients send none for an address.
fn check_server_name(hello: &ClientHello, target: &Target) -> Result<(), Denial> {
    if hello.has_encrypted_name {
        return Err(Denial::ServerNameEncrypted);
    }
    match (&target.host, &hello.server_name) {
        (Host::Address(_), None) => Ok(()),
        (Host::Name(_), None) => Err(Denial::ServerNameMissing),
        (Host::Name(name), Some(text)) if Host::parse_server_name(text).as_ref() == Ok(name) => Ok(()),
        (_, Some(text)) => Err(Denial::ServerNameDiffers(text.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(host: &str, port: u16) -> Target {
        Target {
            host: Host::parse(host).unwrap(),
            port,
        }
    }

    fn hello(name: Option<&str>, has_encrypted_name: bool) -> ClientHello {
        ClientHello {
            server_name: name.map(str::to_owned),
            has_encrypted_name,
        }
    }

    #[test]
    fn the_server_name_must_be_the_host_of_the_connection() {
        let check = |name, encrypted, host| check_server_name(&hello(name, encrypted), &target(host, 443));
        assert_eq!(check(Some("A.example"), false, "a.example"), Ok(()));
        assert_eq!(check(None, false, "10.0.0.1"), Ok(()));
        assert_eq!(check(None, false, "a.example"), Err(Denial::ServerNameMissing));
        assert_eq!(
            check(Some("a.example"), true, "a.example"),
            Err(Denial::ServerNameEncrypted)
        );
        for (name, host) in [
            ("b.example", "a.example"),
            ("a.example.", "a.example"),
            ("a.example\0.b", "a.example"),
            ("10.0.0.1", "10.0.0.1"),
            ("a.example", "10.0.0.1"),
            ("", "a.example"),
        ] {
            let differs = Err(Denial::ServerNameDiffers(name.to_owned()));
            assert_eq!(check(Some(name), false, host), differs, "{name:?} {host}");
        }
    }

    #[test]
    fn other_protocols_are_carried_only_on_ports_of_their_own() {
        let check = |bytes: &[u8], port| check_first_bytes(bytes, &target("a.example", port));
        assert_eq!(check(b"SSH-2.0-x\r\n", 22), Ok(Verdict::Other));
        assert_eq!(check(b"SSH-2.0-x\r\n", 443), Err(Denial::NeitherTlsNorHttp));
        assert_eq!(check(b"SSH-2.0-x\r\n", 80), Err(Denial::NeitherTlsNorHttp));
        assert_eq!(check(b"GET / HTTP/1.1\r\n", 22), Ok(Verdict::Http));
        assert_eq!(check(b"PRI * HTTP/2.0\r\n\r\n", 8080), Err(Denial::Http2WithoutTls));
        assert_eq!(check(b"\x16\x03", 22), Ok(Verdict::ReadMore));
        assert_eq!(check(b"\x16\x02\0\0\0", 22), Err(Denial::MalformedTls));
    }
}
