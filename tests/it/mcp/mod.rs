//! The MCP server, used by published clients.

mod client_docs;
mod fixture;
mod http;
mod stdio;
mod tasks;
