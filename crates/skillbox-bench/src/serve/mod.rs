//! `serve`: the cost of a run over HTTP and over MCP, and the load of many clients.
//!
//! The servers are processes of their own; this process makes the requests, over loopback.

mod client;
mod command;
mod load_test;
mod server;

pub(crate) use command::{Arguments, measure};
