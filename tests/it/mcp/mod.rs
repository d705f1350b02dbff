//! The MCP server, as the clients see it that people use.

mod http;
mod pages;
mod stdio;
mod tasks;
mod world;
