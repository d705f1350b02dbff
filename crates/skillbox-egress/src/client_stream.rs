//! The end of a connection that the script holds.

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// The end of a connection that the script holds.
pub(crate) trait ClientStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Decides whether closing the connection resets it. A script sees a reset as an error, and an orderly end as an
    /// empty answer of a server.
    fn set_reset_on_close(&self, reset: bool);
}

impl ClientStream for TcpStream {
    fn set_reset_on_close(&self, reset: bool) {
        // After a failure the connection only ends in the other way.
        let _ = if reset {
            self.set_zero_linger()
        } else {
            rustix::net::sockopt::set_socket_linger(self, None).map_err(Into::into)
        };
    }
}

/// A tunnel through the proxy port.
impl ClientStream for TokioIo<hyper::upgrade::Upgraded> {
    fn set_reset_on_close(&self, _reset: bool) {}
}
