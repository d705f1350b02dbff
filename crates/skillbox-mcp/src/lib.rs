//! Skills over the Model Context Protocol: described, read as resources, offered as prompts, and run.
//!
//! A front door of the runtime. `server` is what a client talks to, `session` what one client has, `skills` the
//! protocol's extension for skills; everything that is decided is decided by the runtime. Nothing here prints, and
//! nothing but the protocol is ever written to standard output.

mod call;
mod changes;
mod connections;
mod door;
mod host;
mod http;
mod output_uri;
mod page;
mod progress;
mod prompts;
mod resources;
mod seat;
mod server;
mod session;
mod skills;
mod stdio;
mod tasks;
mod tools;

pub use host::{Host, HostError};
pub use http::serve_http;
pub use stdio::{ServeError, serve_stdio};
