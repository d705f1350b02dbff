//! What a run did on the network.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The connections of a run to allowed hosts, and what was denied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkReport {
    /// The first connections, in the order of their ends.
    pub connections: Vec<NetworkConnection>,
    /// The first denials; equal ones are counted.
    pub denials: Vec<NetworkDenial>,
    /// The first failures of allowed connections, such as a name that does not exist; equal ones are counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<NetworkDenial>,
    /// The number of further connections.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted_connections: u64,
    /// The number of further denials.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted_denials: u64,
}

/// One connection to an allowed host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkConnection {
    /// The name or address that the script meant.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// Bytes from the script to the host.
    pub bytes_sent: u64,
    /// Bytes from the host to the script.
    pub bytes_received: u64,
    /// How long the connection was open, in milliseconds.
    pub ms: u64,
}

/// Something that the script tried in vain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkDenial {
    /// The name or address that the script meant.
    pub host: String,
    /// The port; null if only the name was asked for.
    pub port: Option<u16>,
    /// Why it was denied or failed, and the option that would allow it, if one would.
    pub reason: String,
    /// How often it happened.
    pub count: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
