//! `serve`: the cost of a run over HTTP and over MCP, and a load test with many clients.
//!
//! The servers are separate processes. This process sends the requests, over loopback.

mod client;
mod command;
mod load_test;
mod server;

pub(crate) use command::{Arguments, measure};
