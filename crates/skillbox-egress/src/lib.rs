//! Carries the connections of a run to the hosts that it may reach, and to no other.
//!
//! The sandbox creates listening sockets in the network namespace of a run, which has no route out. This crate accepts
//! on them outside, answers questions for names itself, and decides about each connection: a rule allows the host → the
//! name is resolved → every address may be used → the connection goes to these addresses → the first bytes name the same
//! host → bytes are copied and counted. Where requests are restricted, or secrets are added to them, it terminates TLS, with
//! an authority that only the run trusts. It never decides which hosts are granted, and asks nobody about other names.

mod address_class;
mod allow_list;
mod answer;
mod authority;
mod client_hello;
mod client_stream;
mod connection_headers;
mod credentials;
mod denial;
mod dns;
mod egress;
mod first_bytes;
mod forward;
mod http_version;
mod limits;
mod metered_stream;
mod name_table;
mod origin;
mod origin_connection;
mod placeholder;
mod proxy;
mod record;
mod redact;
mod replace_body;
mod replace_head;
mod request_check;
mod request_host;
mod request_service;
mod resolver;
mod rewind;
mod run_executor;
mod run_network;
mod run_state;
mod scrub_answer;
#[cfg(test)]
mod secret_requests_tests;
mod serve;
mod terminate;
mod tls_roots;
mod upstream;

pub use allow_list::AllowList;
pub use authority::AuthorityError;
pub use credentials::{CredentialsError, RunCredentials};
pub use egress::{Egress, EgressError, reads_requests};
pub use limits::EgressLimits;
pub use redact::{RedactStream, Redactor, RedactorError};
pub use resolver::{AddressSource, FixedAddress, FixedAddressError, LookupFunction};
pub use run_network::{RunNetwork, RunSockets};
pub use tls_roots::{TlsRoots, TlsRootsError};
