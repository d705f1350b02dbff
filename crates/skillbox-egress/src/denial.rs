//! Why something was denied, in the words of the report.

use std::net::IpAddr;

use skillbox_model::{Host, SecretName};

/// What a script tried to reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub host: Host,
    pub port: u16,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Why a connection was not carried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denial {
    #[error("no rule allows it; the operator allows it with `--allow-net {0}`")]
    NotAllowed(Target),
    #[error("no rule allows this name; the operator allows it with `--allow-net {0}`")]
    NameNotAllowed(String),
    #[error("the run has used more than {0} names")]
    TooManyNames(usize),
    #[error("its address {address} is not public; the operator allows it with `--allow-net {}`", HostPortText(*address, *port))]
    AddressNotPublic { address: IpAddr, port: u16 },
    #[error("the connection names no host: TLS without a server name")]
    ServerNameMissing,
    #[error("TLS names another host: {0}")]
    ServerNameDiffers(String),
    #[error("the server name of TLS is encrypted, so it cannot be checked")]
    ServerNameEncrypted,
    #[error("this is not a valid start of TLS")]
    MalformedTls,
    #[error("the HTTP request names another host: {0}")]
    HttpHostDiffers(String),
    #[error("the HTTP request does not name its host exactly once")]
    HttpHostMissing,
    #[error("HTTP/2 without TLS is not carried")]
    Http2WithoutTls,
    #[error("no rule allows {request}; allowed: {allowed}")]
    RequestNotAllowed { request: String, allowed: String },
    #[error("the header {0} names another method or path, which is not checked")]
    OverridingHeader(&'static str),
    #[error("the request contains the placeholder of the secret {0}, which may not be sent to this host")]
    SecretNotGranted(SecretName),
    #[error(
        "the request has its own credentials in the header {header} in addition to the secret {secret}; send only one of them"
    )]
    CredentialConflict { secret: SecretName, header: &'static str },
    #[error("the value of a secret contains characters that are not allowed in {0}")]
    ValueNotAllowedHere(String),
    #[error(
        "the body contains the placeholder of the secret {0}, which is replaced only in forms and JSON of up to 256 KiB"
    )]
    BodyNotReplaced(SecretName),
    #[error("skillbox reads the requests to this host, so only HTTP is carried")]
    NotHttp,
    #[error("the connection carries something that is not a valid HTTP request")]
    MalformedRequest,
    #[error("ports 80 and 443 carry only HTTP and TLS, which name their host")]
    NeitherTlsNorHttp,
    #[error("the client did not name its host in time")]
    FirstBytesTimeout,
    #[error("this is no request for a proxy: CONNECT or an absolute URL with `http://` is expected")]
    NotAProxyRequest,
    #[error("the run has {0} open connections, the most that are allowed")]
    TooManyOpenConnections(usize),
    #[error("the run has opened {0} connections, the most that are allowed")]
    TooManyConnections(u64),
    #[error("the run has transferred {0} bytes, the most that are allowed")]
    TooManyBytes(u64),
}

/// Why an allowed connection did not come about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the name cannot be resolved: {0}")]
    Unresolved(String),
    #[error("cannot connect: {0}")]
    NotConnected(String),
    #[error("no secure connection to the host: {0}")]
    NotSecure(String),
    #[error("the host did not answer: {0}")]
    NoAnswer(String),
    #[error(
        "the client ended TLS: {0}; skillbox reads the requests to this host, so the client must trust SSL_CERT_FILE"
    )]
    ClientHandshake(String),
    #[error("the host compressed its answer ({0}) although it was asked not to, so secrets cannot be removed from it")]
    CompressedAnswer(String),
    #[error("the run has no certificate authority")]
    NoAuthority,
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Denied(#[from] Denial),
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// An address and a port as a rule writes them.
struct HostPortText(IpAddr, u16);

impl std::fmt::Display for HostPortText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", Host::of_address(self.0), self.1)
    }
}
