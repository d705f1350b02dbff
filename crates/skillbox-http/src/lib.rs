//! Skills over HTTP: listed, disclosed to agents, run in the sandbox, their files kept, for several tenants.
//!
//! A front door of the runtime. `routes` has one file for each part of the API, `runs` what is going on, `openapi` the
//! document that describes it, made of the same table that serves it. Everything that is decided is decided by the
//! runtime. Nothing here prints, and no tenant can name anything of another.

mod app;
mod connection;
mod content;
mod error;
mod extract;
mod guard;
mod limits;
mod metrics;
mod openapi;
mod request_log;
mod routes;
mod runs;
mod server;
mod tenant;
mod token;

pub use limits::Limits;
pub use server::{ServeError, Server};
pub use token::{NewToken, TokenError, TokenHash};
