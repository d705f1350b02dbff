//! Requests with secrets, from a client through the proxy port to a server that answers with what it received.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdTcpListener, UdpSocket as StdUdpSocket};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, StreamBody as FrameStream};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_ENCODING, HeaderValue, RANGE};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use skillbox_model::{
    GrantedSecret, Host, HostName, HostPort, NetworkReport, SecretInjection, SecretName, SecretValue,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::answer::StreamBody;
use crate::authority::RunAuthority;
use crate::http_version::HttpVersion::{self, Http1, Http2};
use crate::tls_roots::to_pem;
use crate::{AddressSource, AllowList, Egress, EgressLimits, LookupFunction, RunNetwork, RunSockets, TlsRoots};

const VALUE: &str = "canary+/value=42";
const OTHER_VALUE: &str = "another-canary";

/// A run with the secret TOKEN for `api.test` and OTHER for `other.test`, and a server that plays both.
struct World {
    _egress: Egress,
    network: RunNetwork,
    proxy: SocketAddr,
    port: u16,
    bundle: String,
    placeholders: Vec<(String, String)>,
    /// What reached the server.
    log: Arc<Mutex<Vec<String>>>,
}

impl World {
    async fn open() -> Self {
        let authority = RunAuthority::new().unwrap();
        let roots = TlsRoots::with_pem(to_pem(authority.certificate()).as_bytes()).unwrap();
        let log = Arc::default();
        let port = serve(authority, Arc::clone(&log)).await;
        let lookup: LookupFunction = Arc::new(|_: &HostName| Ok(vec![Ipv4Addr::LOCALHOST.into()]));
        let egress = Egress::new(
            Vec::new(),
            AddressSource::Function(lookup),
            roots,
            EgressLimits::default(),
        );
        let host = |name: &str| HostPort::parse(&format!("{name}:{port}")).unwrap();
        let hosts = ["api.test", "other.test", "127.0.0.1"].map(host);
        let allowed = AllowList::new(hosts.into_iter().map(Into::into).collect());
        let secret = |name: &str, value: &str, of: &str| GrantedSecret {
            name: SecretName::parse(name).unwrap(),
            value: SecretValue::parse(value.to_owned()).unwrap(),
            hosts: BTreeSet::from([host(of)]),
            injection: SecretInjection::Header,
        };
        let secrets = [
            secret("TOKEN", VALUE, "api.test"),
            secret("OTHER", OTHER_VALUE, "other.test"),
        ];
        let credentials = egress.issue_credentials(&allowed, &secrets).unwrap();
        let placeholders = credentials.placeholders();
        let placeholders = placeholders
            .map(|(name, text)| (name.to_string(), text.to_owned()))
            .collect();
        let bundle = credentials.certificate_bundle().unwrap().to_owned();
        let listener = || StdTcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let proxy = listener();
        let address = proxy.local_addr().unwrap();
        let sockets = RunSockets {
            hosts: Vec::new(),
            proxy: proxy.into(),
            dns_udp: StdUdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().into(),
            dns_tcp: listener().into(),
        };
        Self {
            network: egress.open(sockets, allowed, credentials).unwrap(),
            _egress: egress,
            proxy: address,
            port,
            bundle,
            placeholders,
            log,
        }
    }

    fn with_placeholders(&self, text: &str) -> String {
        let replace = |text: String, (name, placeholder): &(String, String)| text.replace(name, placeholder);
        self.placeholders.iter().fold(text.to_owned(), replace)
    }

    /// Sends a request through a tunnel to the host. `TOKEN` and `OTHER` stand for the placeholders.
    async fn send(
        &self,
        version: HttpVersion,
        host: &str,
        (method, path): (&str, &str),
        headers: &[(&str, String)],
        chunks: &[String],
    ) -> hyper::Result<(u16, String)> {
        let mut stream = TcpStream::connect(self.proxy).await.unwrap();
        let connect = format!("CONNECT {host}:{0} HTTP/1.1\r\nHost: {host}:{0}\r\n\r\n", self.port);
        stream.write_all(connect.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(stream.read_u8().await.unwrap());
        }
        assert!(
            answer.starts_with(b"HTTP/1.1 200"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
        let tls = connector(&self.bundle, version).connect(ServerName::try_from(host.to_owned()).unwrap(), stream);
        let stream = TokioIo::new(tls.await.unwrap());
        let path = self.with_placeholders(path);
        let authority = format!("{host}:{}", self.port);
        let mut request = Request::builder().method(method);
        request = match version {
            Http1 => request.uri(path).header("host", authority),
            Http2 => request.uri(format!("https://{authority}{path}")),
        };
        for (name, value) in headers {
            let value = match value.strip_prefix("b64:") {
                Some(plain) => format!("Basic {}", BASE64_STANDARD.encode(self.with_placeholders(plain))),
                None => self.with_placeholders(value),
            };
            request = request.header(*name, value);
        }
        let chunks: Vec<_> = chunks
            .iter()
            .map(|chunk| Ok::<_, Infallible>(Frame::data(Bytes::from(chunk.clone()))))
            .collect();
        let body = if chunks.is_empty() {
            Full::default().boxed_unsync()
        } else {
            FrameStream::new(futures_util::stream::iter(chunks)).boxed_unsync()
        };
        let request = request.body(body).unwrap();
        let response = match version {
            Http1 => {
                let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
                tokio::spawn(connection.with_upgrades());
                sender.send_request(request).await?
            }
            Http2 => {
                let (mut sender, connection) =
                    hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await?;
                tokio::spawn(connection);
                sender.send_request(request).await?
            }
        };
        let status = response.status().as_u16();
        let head = format!(
            "{:?} {:?}",
            response.headers(),
            response.extensions().get::<hyper::ext::ReasonPhrase>()
        );
        let collected = response.into_body().collect().await?;
        let trailers = format!("{:?}", collected.trailers());
        let body = String::from_utf8_lossy(&collected.to_bytes()).into_owned();
        Ok((status, format!("{head}\n{body}\n{trailers}")))
    }

    fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    async fn finish(self) -> NetworkReport {
        tokio::task::spawn_blocking(|| self.network.finish()).await.unwrap()
    }
}

fn connector(bundle: &str, version: HttpVersion) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(bundle.as_bytes()).map(Result::unwrap));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![version.alpn().to_vec()];
    Arc::new(config).into()
}

/// A server for `api.test` and `other.test`.
async fn serve(authority: RunAuthority, log: Arc<Mutex<Vec<String>>>) -> u16 {
    #[derive(Debug)]
    struct ByName(RunAuthority);
    impl rustls::server::ResolvesServerCert for ByName {
        fn resolve(&self, hello: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
            self.0.certificate_for(&Host::parse(hello.server_name()?).ok()?).ok()
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(ByName(authority)));
    config.alpn_protocols = vec![Http2.alpn().to_vec(), Http1.alpn().to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, log) = (acceptor.clone(), Arc::clone(&log));
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let is_http2 = stream.get_ref().1.alpn_protocol() == Some(Http2.alpn());
                let service = service_fn(move |request| answer(request, Arc::clone(&log)));
                let stream = TokioIo::new(stream);
                let _ = if is_http2 {
                    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    server.serve_connection(stream, service).await
                } else {
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(stream, service)
                        .await
                };
            });
        }
    });
    port
}

/// Answers with everything that was received: in a header, in the text after the status, in a body of small pieces and in a trailer.
async fn answer(request: Request<Incoming>, log: Arc<Mutex<Vec<String>>>) -> Result<Response<StreamBody>, Infallible> {
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        log.lock().unwrap().push("incomplete".to_owned());
        return Ok(Response::new(
            Full::default().map_err(|never| match never {}).boxed_unsync(),
        ));
    };
    let body = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    let received = format!("{} {} {:?} {body}", parts.method, parts.uri, parts.headers);
    // Sensitive headers are not shown by Debug.
    let values: Vec<String> = parts
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())))
        .collect();
    let received = format!("{received}\n{}", values.join("\n"));
    log.lock().unwrap().push(received.clone());
    let path = parts.uri.path();
    let pieces: Vec<Bytes> = received.as_bytes().chunks(5).map(Bytes::copy_from_slice).collect();
    let mut trailers = hyper::HeaderMap::new();
    trailers.insert("x-trailer", HeaderValue::from_static("canary+/value=42"));
    let mut frames: Vec<Result<Frame<Bytes>, crate::answer::BodyError>> =
        pieces.into_iter().map(|piece| Ok(Frame::data(piece))).collect();
    frames.push(match path {
        "/dies" => Err("the server dies".into()),
        _ => Ok(Frame::trailers(trailers)),
    });
    let mut response = Response::new(FrameStream::new(futures_util::stream::iter(frames)).boxed_unsync());
    response
        .headers_mut()
        .insert("x-echo", HeaderValue::from_static("<canary+/value=42>"));
    if path == "/compressed" {
        response
            .headers_mut()
            .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if parts.version != hyper::Version::HTTP_2 {
        response
            .extensions_mut()
            .insert(hyper::ext::ReasonPhrase::from_static(b"canary+/value=42"));
    }
    Ok(response)
}

const BOTH: [HttpVersion; 2] = [Http1, Http2];

#[tokio::test]
async fn the_host_receives_the_value_and_the_script_never_does() {
    let world = World::open().await;
    let form = ("content-type", "application/x-www-form-urlencoded".to_owned());
    let json = ("content-type", "application/json".to_owned());
    let mut sent = 0;
    for version in BOTH {
        // A placeholder that arrives in two chunks is one.
        let text = world.with_placeholders("k=TOKEN&l=1");
        let (first, second) = text.split_at(20);
        let split = vec![first.to_owned(), second.to_owned()];
        let quoted = vec![world.with_placeholders("{\"k\": \"TOKEN\"}")];
        for (path, headers, chunks, expected) in [
            (
                "/h",
                vec![("authorization", "Bearer TOKEN".to_owned())],
                vec![],
                "authorization: Bearer canary+/value=42".to_owned(),
            ),
            (
                "/b",
                vec![("authorization", "b64:me:TOKEN".to_owned())],
                vec![],
                format!("authorization: Basic {}", BASE64_STANDARD.encode(format!("me:{VALUE}"))),
            ),
            (
                "/q/TOKEN?k=TOKEN",
                vec![],
                vec![],
                "/q/canary%2B%2Fvalue%3D42?k=canary%2B%2Fvalue%3D42".to_owned(),
            ),
            (
                "/f",
                vec![form.clone()],
                split,
                "k=canary%2B%2Fvalue%3D42&l=1".to_owned(),
            ),
            ("/j", vec![json.clone()], quoted, format!("{{\"k\": \"{VALUE}\"}}")),
        ] {
            let method = if chunks.is_empty() { "GET" } else { "POST" };
            let (status, answer) = world
                .send(version, "api.test", (method, path), &headers, &chunks)
                .await
                .unwrap();
            sent += 1;
            let log = world.log.lock().unwrap().last().cloned().unwrap();
            assert!(log.contains(&expected), "{version:?} {path}: {log}");
            assert_eq!(status, 200, "{answer}");
            let encoded = BASE64_STANDARD.encode(format!("me:{VALUE}"));
            for value in [VALUE, "canary%2B%2Fvalue%3D42", &encoded[4..20]] {
                assert!(!answer.contains(value), "{version:?} {path}: {answer}");
            }
            assert!(answer.contains("<[secret TOKEN]>"), "{answer}");
        }
    }
    assert_eq!(world.log.lock().unwrap().len(), sent);
    let report = world.finish().await;
    assert!(report.denials.is_empty() && report.failures.is_empty(), "{report:?}");
    assert_eq!(report.connections.len(), sent);
    assert!(!format!("{report:?}").contains("canary"));
}

#[tokio::test]
async fn a_placeholder_for_another_host_is_refused() {
    let world = World::open().await;
    let json = ("content-type", "application/json".to_owned());
    for version in BOTH {
        for (path, header, chunks) in [
            ("/", ("x-key", "TOKEN".to_owned()), vec![]),
            ("/", ("authorization", "b64:me:TOKEN".to_owned()), vec![]),
            ("/?k=TOKEN", ("x-key", "1".to_owned()), vec![]),
            ("/", json.clone(), vec![world.with_placeholders("[\"TOKEN\"]")]),
        ] {
            let method = if chunks.is_empty() { "GET" } else { "POST" };
            let (status, answer) = world
                .send(version, "other.test", (method, path), &[header], &chunks)
                .await
                .unwrap();
            assert_eq!(status, 403, "{answer}");
            assert!(
                answer.contains("the secret TOKEN") && answer.contains("grant_missing"),
                "{answer}"
            );
        }
        // A body that passes in pieces ends where the placeholder does.
        let header = ("content-type", "application/octet-stream".to_owned());
        let chunks = vec!["x".repeat(40_000), world.with_placeholders("TOKEN"), "y".repeat(40_000)];
        let sent = world
            .send(version, "other.test", ("POST", "/"), &[header], &chunks)
            .await;
        assert!(sent.is_err() || sent.is_ok_and(|(status, _)| status == 502));
    }
    assert!(
        world.log().replace("incomplete", "").trim().is_empty(),
        "{}",
        world.log()
    );
    // The control: the secret of this host, in the same place.
    let header = ("x-key", "OTHER".to_owned());
    world
        .send(Http1, "other.test", ("GET", "/"), &[header], &[])
        .await
        .unwrap();
    assert!(world.log().contains("x-key: another-canary"), "{}", world.log());
    let report = world.finish().await;
    let count: u64 = report.denials.iter().map(|denial| denial.count).sum();
    assert_eq!(count, 10, "{report:?}");
    assert!(
        report
            .denials
            .iter()
            .all(|denial| denial.reason.contains("the secret TOKEN")),
        "{report:?}"
    );
}

#[tokio::test]
async fn own_credentials_beside_a_secret_are_a_conflict() {
    let world = World::open().await;
    let own = ("authorization", "Bearer mine".to_owned());
    let json = ("content-type", "application/json".to_owned());
    for version in BOTH {
        let body = [world.with_placeholders("[\"TOKEN\"]")];
        let in_body = world
            .send(version, "api.test", ("POST", "/"), &[own.clone(), json.clone()], &body)
            .await;
        let in_header = [own.clone(), ("x-key", "TOKEN".to_owned())];
        let in_header = world.send(version, "api.test", ("GET", "/"), &in_header, &[]).await;
        for (status, answer) in [in_body.unwrap(), in_header.unwrap()] {
            assert_eq!(status, 403, "{answer}");
            assert!(answer.contains("in addition to the secret TOKEN"), "{answer}");
        }
    }
    assert_eq!(world.log(), "");
    // The controls: the client's own credentials without a secret, and the secret without them.
    world.send(Http1, "api.test", ("GET", "/"), &[own], &[]).await.unwrap();
    assert!(world.log().contains("authorization: Bearer mine"), "{}", world.log());
    let report = world.finish().await;
    assert_eq!(report.denials[0].count, 4, "{report:?}");
}

#[tokio::test]
async fn bodies_that_are_not_replaced_are_named_in_the_report() {
    let world = World::open().await;
    let large = format!(
        "[\"{}\", \"{}\"]",
        "x".repeat(300 << 10),
        world.with_placeholders("TOKEN")
    );
    for (kind, body) in [
        ("application/json", large),
        (
            "multipart/form-data; boundary=x",
            world.with_placeholders("--x\r\n\r\nTOKEN\r\n--x--"),
        ),
    ] {
        let header = ("content-type", kind.to_owned());
        let body: Vec<String> = body
            .as_bytes()
            .chunks(1000)
            .map(|part| String::from_utf8_lossy(part).into_owned())
            .collect();
        let (status, _) = world
            .send(Http1, "api.test", ("POST", "/"), &[header], &body)
            .await
            .unwrap();
        assert_eq!(status, 200);
        let log = world.log.lock().unwrap().last().cloned().unwrap();
        assert!(log.contains("skillbox-secret-TOKEN-") && !log.contains(VALUE), "{kind}");
    }
    let report = world.finish().await;
    assert_eq!((report.denials.len(), report.denials[0].count), (1, 2), "{report:?}");
    assert!(
        report.denials[0]
            .reason
            .contains("only in forms and JSON of up to 256 KiB")
    );
}

#[tokio::test]
async fn answers_that_cannot_be_searched_are_not_passed_on() {
    let world = World::open().await;
    for version in BOTH {
        let headers = [
            ("authorization", "Bearer TOKEN".to_owned()),
            (RANGE.as_str(), "bytes=0-3".to_owned()),
            ("accept-encoding", "gzip, br".to_owned()),
        ];
        let (status, answer) = world
            .send(version, "api.test", ("GET", "/compressed"), &headers, &[])
            .await
            .unwrap();
        assert_eq!(status, 502, "{answer}");
        assert!(
            answer.contains("compressed its answer") && !answer.contains(VALUE),
            "{answer}"
        );
        assert!(world.log().contains("accept-encoding: identity") && !world.log().contains("bytes=0-3"));
        // What came before the end of a server that dies is searched too.
        let died = world
            .send(version, "api.test", ("GET", "/dies"), &headers[..1], &[])
            .await;
        // Over HTTP/2 the end can arrive before the first headers: then there is no answer to pass on.
        let is_error = died
            .as_ref()
            .map_or(true, |(status, answer)| *status == 502 && !answer.contains(VALUE));
        assert!(is_error, "{died:?}");
    }
    let report = world.finish().await;
    assert!(
        report.failures.iter().any(|failure| failure.reason.contains("gzip")),
        "{report:?}"
    );
}
