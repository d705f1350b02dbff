//! Serves skills over the Model Context Protocol: as tools, resources and prompts.
//!
//! A front end of the runtime, which makes all decisions. `server` answers the requests of a client, `session` is the state
//! of one client, `skills` the protocol's extension for skills. This crate prints nothing; only protocol messages are
//! written to standard output.

mod blocking;
mod call;
mod changes;
mod connections;
mod http;
mod http_accept;
mod lock;
mod output_uri;
mod page;
mod progress;
mod prompts;
mod resources;
mod server;
mod server_state;
mod session;
mod session_handles;
mod session_resolver;
mod skills;
mod stdio;
mod tasks;
mod tools;

pub use http::serve_http;
pub use server_state::{ServerState, StartError};
pub use stdio::{ServeError, serve_stdio};
