//! Terminates the TLS of a script, so that its requests can be checked and changed.
//!
//! The script sees a certificate of its run's own authority; the host sees a client that checks its certificate as the
//! script would. Both sides speak the version of HTTP that the host chose from those of the script.

use std::sync::Arc;

use rustls::server::{Acceptor, ClientHello, NoServerSessionStorage, ResolvesServerCert, ServerConfig};
use rustls::sign::CertifiedKey;
use rustls::version;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;

use crate::client_stream::ClientStream;
use crate::denial::{Denial, Failure, Refusal, Target};
use crate::http_version::HttpVersion;
use crate::metered_stream::MeteredStream;
use crate::origin_connection::OriginConnection;
use crate::request_host::Scheme;
use crate::request_service::RequestService;
use crate::rewind::Rewind;
use crate::run_state::RunState;

/// Serves a connection whose ClientHello names the host.
pub(crate) async fn serve<S: ClientStream>(
    run: &Arc<RunState>,
    client: Rewind<S>,
    upstream: MeteredStream,
    target: &Target,
) {
    if let Err(refusal) = terminate(run, client, upstream, target).await {
        run.record_refusal(target, &refusal);
    }
}

async fn terminate<S: ClientStream>(
    run: &Arc<RunState>,
    client: Rewind<S>,
    upstream: MeteredStream,
    target: &Target,
) -> Result<(), Refusal> {
    let authority = run.credentials.authority.as_ref().ok_or(Failure::NoAuthority)?;
    let hello = timeout(
        run.limits.first_bytes,
        LazyConfigAcceptor::new(Acceptor::default(), client),
    )
    .await;
    let handshake = hello
        .map_err(|_| Denial::FirstBytesTimeout)?
        .map_err(|_| Denial::MalformedTls)?;
    let offer = Offer::of(&handshake.client_hello())?;
    let (connection, version) = OriginConnection::start_tls(run, upstream, target, &offer.versions).await?;
    if !offer.versions.contains(&version) {
        return Err(
            Failure::NotConnected("the host does not speak the version of HTTP of the client".to_owned()).into(),
        );
    }
    let certificate = authority
        .certificate_for(&target.host)
        .map_err(|error| Failure::NotSecure(error.to_string()))?;
    let config = server_config(certificate, offer.has_names.then_some(version))
        .map_err(|error| Failure::NotSecure(error.to_string()))?;
    let client = timeout(run.limits.first_bytes, handshake.into_stream(config)).await;
    let client = client
        .map_err(|_| Denial::FirstBytesTimeout)?
        .map_err(|error| Failure::ClientHandshake(error.to_string()))?;
    RequestService::new(run, target, Scheme::Https, connection)
        .serve(client, version)
        .await;
    Ok(())
}

/// The versions of HTTP that a client offers.
struct Offer {
    versions: Vec<HttpVersion>,
    /// Whether it names versions at all. Without, it speaks HTTP/1.1.
    has_names: bool,
}

impl Offer {
    fn of(hello: &ClientHello<'_>) -> Result<Self, Denial> {
        let Some(names) = hello.alpn() else {
            return Ok(Self {
                versions: vec![HttpVersion::Http1],
                has_names: false,
            });
        };
        let versions: Vec<HttpVersion> = names.filter_map(HttpVersion::of_alpn).collect();
        if versions.is_empty() {
            return Err(Denial::NotHttp);
        }
        Ok(Self {
            versions,
            has_names: true,
        })
    }
}

fn server_config(
    certificate: Arc<CertifiedKey>,
    version: Option<HttpVersion>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(OneCertificate(certificate)));
    config.alpn_protocols = version.iter().map(|version| version.alpn().to_vec()).collect();
    // Each connection is checked from its start.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// The certificate for the host of the connection; its name was checked before.
#[derive(Debug)]
struct OneCertificate(Arc<CertifiedKey>);

impl ResolvesServerCert for OneCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}
