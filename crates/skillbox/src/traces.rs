//! Spans for a collector, by OTLP over HTTP, where somebody asked for it.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;

use crate::failure::Failure;

/// A collector that takes longer is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// More of its answer is not read.
const LONGEST_ANSWER: u64 = 64 << 10;

/// Sends spans while it lives; what is left goes out at its end.
pub struct Traces(SdkTracerProvider);

impl Traces {
    /// Prepares to send to a collector such as `http://127.0.0.1:4318`.
    pub fn to(endpoint: &str) -> Result<Self, Failure> {
        let unusable = |why: &str| {
            Failure::usage(
                format!("otlp_endpoint: {endpoint:?} {why}"),
                "such as http://127.0.0.1:4318",
            )
        };
        let Some(rest) = endpoint.strip_prefix("http://") else {
            return Err(unusable(
                "is not http://; a collector beside the server takes TLS from there",
            ));
        };
        let path = match rest.trim_end_matches('/').split_once('/') {
            None => "/v1/traces",
            Some(_) => "",
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(PlainClient)
            .with_timeout(PATIENCE)
            .with_endpoint(format!("{}{path}", endpoint.trim_end_matches('/')))
            .build()
            .map_err(|error| unusable(&format!("cannot be used: {error}")))?;
        let about = Resource::builder_empty().with_service_name("skillbox").build();
        let provider = SdkTracerProvider::builder()
            .with_resource(about)
            .with_batch_exporter(exporter)
            .build();
        Ok(Self(provider))
    }

    /// Where spans are handed in.
    pub fn provider(&self) -> &SdkTracerProvider {
        &self.0
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        // A collector that is gone does not keep us.
        let _unsent = self.0.shutdown_with_timeout(PATIENCE);
    }
}

/// One request, one connection: enough for a batch every few seconds, on the exporter's own thread.
#[derive(Debug)]
struct PlainClient;

#[async_trait]
impl HttpClient for PlainClient {
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
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut head = format!("POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n");
    for (name, value) in request.headers() {
        head.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap_or_default()));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", request.body().len()));
    stream.write_all(head.as_bytes())?;
    stream.write_all(request.body())?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut answer)?;
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let status = std::str::from_utf8(line).ok().and_then(|line| line.split(' ').nth(1));
    let response = Response::builder().status(status.unwrap_or("502"));
    response.body(Bytes::new()).map_err(io::Error::other)
}
