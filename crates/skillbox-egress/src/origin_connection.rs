//! A connection to one host that carries requests.

use std::future::Future;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls_pki_types::ServerName;
use skillbox_model::Host;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use crate::answer::StreamBody;
use crate::denial::{Failure, Refusal, Target};
use crate::http_version::{HttpVersion, MAX_HEAD_BYTES, MAX_STREAMS, WINDOW_BYTES};
use crate::metered_stream::{Meter, MeteredStream};
use crate::request_host::Scheme;
use crate::run_executor::RunExecutor;
use crate::run_state::RunState;
use crate::upstream::connect;

/// A connection to one host that carries requests.
pub(crate) struct OriginConnection {
    target: Target,
    scheme: Scheme,
    sender: Sender,
    meter: Arc<Meter>,
}

enum Sender {
    Http1(http1::SendRequest<StreamBody>),
    Http2(http2::SendRequest<StreamBody>),
}

impl OriginConnection {
    /// Begins HTTP/1 without TLS.
    pub async fn start_plain(run: &Arc<RunState>, upstream: MeteredStream, target: &Target) -> Result<Self, Refusal> {
        let meter = Arc::clone(upstream.meter());
        Self::start(run, upstream, meter, (target, Scheme::Http), HttpVersion::Http1).await
    }

    /// Begins TLS and HTTP. The certificate must be valid for the host, for an authority that this host trusts. Returns
    /// the version of HTTP that the server has chosen.
    pub async fn start_tls(
        run: &Arc<RunState>,
        upstream: MeteredStream,
        target: &Target,
        offered: &[HttpVersion],
    ) -> Result<(Self, HttpVersion), Refusal> {
        let meter = Arc::clone(upstream.meter());
        let connector = TlsConnector::from(run.roots.client());
        let names = offered.iter().map(|version| version.alpn().to_vec()).collect();
        let handshake = connector.with_alpn(names).connect(server_name(&target.host)?, upstream);
        let stream = match tokio::time::timeout(run.limits.connect, handshake).await {
            Ok(stream) => stream.map_err(|error| Failure::NotSecure(error.to_string()))?,
            Err(_) => return Err(Failure::NotSecure("no answer in time".to_owned()).into()),
        };
        let version = match stream.get_ref().1.alpn_protocol() {
            Some(name) => HttpVersion::of_alpn(name).unwrap_or(HttpVersion::Http1),
            None => HttpVersion::Http1,
        };
        let connection = Self::start(run, stream, meter, (target, Scheme::Https), version).await?;
        Ok((connection, version))
    }

    async fn start<S>(
        run: &Arc<RunState>,
        stream: S,
        meter: Arc<Meter>,
        (target, scheme): (&Target, Scheme),
        version: HttpVersion,
    ) -> Result<Self, Refusal>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let failed = |error: hyper::Error| Failure::NotConnected(error.to_string());
        let stream = TokioIo::new(stream);
        let sender = match version {
            HttpVersion::Http1 => {
                let mut client = http1::Builder::new();
                client.preserve_header_case(true).max_buf_size(MAX_HEAD_BYTES);
                let (sender, connection) = client.handshake(stream).await.map_err(failed)?;
                spawn_until_idle(run, &meter, connection.with_upgrades());
                Sender::Http1(sender)
            }
            HttpVersion::Http2 => {
                let (sender, connection) = http2::Builder::new(RunExecutor(Arc::clone(run)))
                    .timer(TokioTimer::new())
                    .initial_stream_window_size(WINDOW_BYTES)
                    .initial_connection_window_size(WINDOW_BYTES)
                    .max_header_list_size(MAX_HEAD_BYTES as u32)
                    .initial_max_send_streams(MAX_STREAMS as usize)
                    .handshake(stream)
                    .await
                    .map_err(failed)?;
                spawn_until_idle(run, &meter, connection);
                Sender::Http2(sender)
            }
        };
        Ok(Self {
            target: target.clone(),
            scheme,
            sender,
            meter,
        })
    }

    /// A connection for the next request: this one if it is open and leads to the target, otherwise a new one, about
    /// which is decided anew.
    pub async fn reuse_or_connect(
        current: Option<Self>,
        run: &Arc<RunState>,
        target: &Target,
        scheme: Scheme,
    ) -> Result<Self, Refusal> {
        let version = current.as_ref().map_or(HttpVersion::Http1, Self::version);
        if let Some(mut current) = current
            && current.target == *target
            && current.scheme == scheme
            && current.is_ready().await
        {
            return Ok(current);
        }
        let upstream = connect(run, target).await?;
        match scheme {
            Scheme::Http => Self::start_plain(run, upstream, target).await,
            // The client speaks the version that was chosen first.
            Scheme::Https => match Self::start_tls(run, upstream, target, &[version]).await? {
                (connection, chosen) if chosen == version => Ok(connection),
                _ => Err(Failure::NotConnected("the host speaks another version of HTTP now".to_owned()).into()),
            },
        }
    }

    async fn is_ready(&mut self) -> bool {
        match &mut self.sender {
            Sender::Http1(sender) => sender.ready().await.is_ok(),
            Sender::Http2(sender) => sender.ready().await.is_ok(),
        }
    }

    fn version(&self) -> HttpVersion {
        match self.sender {
            Sender::Http1(_) => HttpVersion::Http1,
            Sender::Http2(_) => HttpVersion::Http2,
        }
    }

    /// The counts of the connection.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Sends a request. The answer does not depend on this value, so that requests of HTTP/2 run at the same time.
    pub fn send(
        &mut self,
        request: Request<StreamBody>,
    ) -> impl Future<Output = hyper::Result<Response<Incoming>>> + use<> {
        enum Either<A, B> {
            Http1(A),
            Http2(B),
        }
        let answer = match &mut self.sender {
            Sender::Http1(sender) => Either::Http1(sender.send_request(request)),
            Sender::Http2(sender) => Either::Http2(sender.send_request(request)),
        };
        async move {
            match answer {
                Either::Http1(answer) => answer.await,
                Either::Http2(answer) => answer.await,
            }
        }
    }
}

/// Serves the connection to the host until it ends or is idle.
fn spawn_until_idle<F>(run: &Arc<RunState>, meter: &Arc<Meter>, connection: F)
where
    F: Future<Output = hyper::Result<()>> + Send + 'static,
{
    let (idle, meter) = (run.limits.idle, Arc::clone(meter));
    run.spawn(async move {
        tokio::select! {
            // The request that was on its way fails with the same error.
            _ = connection => {}
            () = meter.wait_until_idle(idle) => {}
        }
    });
}

fn server_name(host: &Host) -> Result<ServerName<'static>, Failure> {
    match host {
        Host::Name(name) => {
            ServerName::try_from(name.as_str().to_owned()).map_err(|error| Failure::NotSecure(error.to_string()))
        }
        Host::Address(address) => Ok(ServerName::IpAddress((*address).into())),
    }
}
