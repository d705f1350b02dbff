//! The MCP server, used by published clients.

mod client_docs;
mod fixture;
pub use fixture::{McpFixture, McpHttpServer};
mod http;
mod short_results;
mod stdio;
mod tasks;
