//! The HTTP API: list skills, disclose them to agents, run them in the sandbox and store their files, for several tenants.
//!
//! A front end of the runtime, which makes all decisions. `routes` has one file for each part of the API, `runs` the
//! state of runs, `openapi` the document that describes the API, generated from the table that serves it. Nothing here
//! prints, and no tenant can access anything of another.

mod app;
mod authentication;
mod body_budget;
mod connection;
mod content;
mod error;
mod extract;
mod histogram;
mod limits;
mod listen;
mod lock;
mod metrics;
mod openapi;
mod reload;
mod request_id;
mod request_log;
mod routes;
mod run_metrics;
mod run_start;
mod runs;
mod server;
mod tenant;
mod token;

pub use limits::Limits;
pub use listen::ListenAddress;
pub use reload::ReloadedSettings;
pub use server::{ServeError, Server};
pub use token::{NewToken, TokenError, TokenHash, TokenScope};
