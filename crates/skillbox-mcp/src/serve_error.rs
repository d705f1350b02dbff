//! Errors of a server.

use std::io;
use std::net::SocketAddr;

use rmcp::service::ServerInitializeError;

/// The reason why a server could not start or ended early.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The threads or signal handlers of the server cannot be created.
    #[error("the server cannot start")]
    Start(#[source] io::Error),
    /// The session of the client cannot be created.
    #[error("the session cannot be opened: {0}")]
    Session(String),
    /// Every machine that can reach the address could run scripts.
    #[error("{0} is reachable from other machines, and clients are not authenticated")]
    NotLoopback(SocketAddr),
    /// The address is not available.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The first message of the client violates the protocol.
    #[error("the first message of the client violates the protocol")]
    Client(#[source] Box<ServerInitializeError>),
}
