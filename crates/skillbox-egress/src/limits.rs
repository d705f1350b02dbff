//! The limits of the network of one run.

use std::time::Duration;

/// The limits of the network of one run. The host sets them; a script can only reach them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressLimits {
    /// Connections that are open at the same time.
    pub open_connections: usize,
    /// Connections in total.
    pub connections: u64,
    /// Bytes in both directions together.
    pub bytes: u64,
    /// Bytes per second in both directions together; none sets no limit.
    pub bytes_per_second: Option<u64>,
    /// The time without a byte after which a connection is closed.
    pub idle: Duration,
    /// The time in which a client has to send what names its host.
    pub first_bytes: Duration,
    /// The time to resolve a name.
    pub resolve: Duration,
    /// The time to connect to the addresses of a host.
    pub connect: Duration,
}

impl Default for EgressLimits {
    fn default() -> Self {
        Self {
            // Each needs up to three descriptors of this process, of which it usually has 1,024.
            open_connections: 128,
            connections: 10_000,
            bytes: 4 << 30,
            bytes_per_second: None,
            idle: Duration::from_secs(300),
            first_bytes: Duration::from_secs(10),
            resolve: Duration::from_secs(5),
            connect: Duration::from_secs(10),
        }
    }
}
