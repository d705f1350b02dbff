//! Time limits of a delivery, and why one fails.

use std::io;
use std::time::Duration;

/// The timeout of a connection, a read and a write.
pub const TIMEOUT: Duration = Duration::from_secs(5);

/// Why a batch was not delivered.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The receiver cannot be reached, or did not accept everything.
    #[error("{target}: {source}")]
    Io {
        /// The receiver.
        target: String,
        /// The cause.
        source: io::Error,
    },
    /// The request to a collector failed.
    #[error("{target}: {}", skillbox_model::with_causes(source))]
    Request {
        /// The collector.
        target: String,
        /// The cause.
        source: reqwest::Error,
    },
    /// A collector answered with an error.
    #[error("{target}: the collector answered {status}: {body}")]
    Refused {
        /// The collector.
        target: String,
        /// The status code.
        status: u16,
        /// The start of the body.
        body: String,
    },
    /// The token cannot be read.
    #[error("audit_forward_token: {0}")]
    Token(String),
}
