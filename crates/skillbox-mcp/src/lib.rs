//! Serves skills over the Model Context Protocol: as tools, resources and prompts.
//!
//! This crate is a front end; all decisions are made by the runtime. `request_handler` answers the requests of a client,
//! `session` is the state of one client, and `skills` the protocol's extension for skills. This crate prints nothing; only protocol messages are
//! written to standard output.

mod blocking;
mod call;
mod changes;
mod connection_tracker;
mod http;
mod http_accept;
mod lock;
mod output_uri;
mod page;
mod progress;
mod prompts;
mod request_handler;
mod resources;
mod serve_error;
mod server_state;
mod session;
mod session_handles;
mod session_limit;
mod session_name;
mod session_resolver;
mod skills;
mod stdio;
mod stop_signal;
mod tasks;
mod tools;

pub use http::serve_http;
pub use serve_error::ServeError;
pub use server_state::{ServerState, StartError};
pub use stdio::serve_stdio;
