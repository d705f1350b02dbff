//! Exports spans to a collector with OTLP over HTTP.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;

use crate::failure::Failure;

/// The timeout for each connection, read and write, and for the final flush.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of response bytes that are read.
const MAX_RESPONSE_BYTES: u64 = 64 << 10;

/// Exports spans until it is dropped; the drop flushes the remaining ones.
pub struct TraceExport(SdkTracerProvider);

impl TraceExport {
    /// An exporter to a collector such as `http://127.0.0.1:4318`.
    pub fn to_collector(endpoint: &str) -> Result<Self, Failure> {
        let invalid = |reason: &str| {
            Failure::usage(
                format!("otlp_endpoint: {endpoint:?} {reason}"),
                "use an address such as http://127.0.0.1:4318",
            )
        };
        let Some(rest) = endpoint.strip_prefix("http://") else {
            return Err(invalid(
                "is not an http:// address; for TLS, run a collector on this host that forwards the spans",
            ));
        };
        let path = match rest.trim_end_matches('/').split_once('/') {
            None => "/v1/traces",
            Some(_) => "",
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(BlockingClient)
            .with_timeout(EXPORT_TIMEOUT)
            .with_endpoint(format!("{}{path}", endpoint.trim_end_matches('/')))
            .build()
            .map_err(|error| invalid(&format!("cannot be used: {error}")))?;
        let resource = Resource::builder_empty().with_service_name("skillbox").build();
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_batch_exporter(exporter)
            .build();
        Ok(Self(provider))
    }

    /// The provider that records spans.
    pub fn provider(&self) -> &SdkTracerProvider {
        &self.0
    }
}

impl Drop for TraceExport {
    fn drop(&mut self) {
        // An unreachable collector must not block the exit.
        let _unsent = self.0.shutdown_with_timeout(EXPORT_TIMEOUT);
    }
}

/// A client that opens one connection for each request. That suffices for a batch every few seconds on the exporter's
/// own thread.
#[derive(Debug)]
struct BlockingClient;

#[async_trait]
impl HttpClient for BlockingClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        Ok(send(&request)?)
    }
}

fn send(request: &Request<Bytes>) -> io::Result<Response<Bytes>> {
    let uri = request.uri();
    let host = uri.host().unwrap_or_default();
    let port = uri.port_u16().unwrap_or(80);
    let mut addresses = (host.trim_matches(['[', ']']), port).to_socket_addrs()?;
    let address = addresses.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
    let mut stream = TcpStream::connect_timeout(&address, EXPORT_TIMEOUT)?;
    stream.set_read_timeout(Some(EXPORT_TIMEOUT))?;
    stream.set_write_timeout(Some(EXPORT_TIMEOUT))?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut head = format!("POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n");
    for (name, value) in request.headers() {
        head.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap_or_default()));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", request.body().len()));
    stream.write_all(head.as_bytes())?;
    stream.write_all(request.body())?;
    let mut response = Vec::new();
    stream.take(MAX_RESPONSE_BYTES).read_to_end(&mut response)?;
    let status_line = response.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let status = std::str::from_utf8(status_line)
        .ok()
        .and_then(|line| line.split(' ').nth(1));
    let response = Response::builder().status(status.unwrap_or("502"));
    response.body(Bytes::new()).map_err(io::Error::other)
}
