//! `skillbox mcp`: a server of the Model Context Protocol.

use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use skillbox_mcp::{Host, serve_http, serve_stdio};
use skillbox_model::{ErrorCode, ExitCode};

use super::Context;
use super::agent::server_options;
use crate::engine;
use crate::failure::Failure;
use crate::render::{Span, Terminal, Tone};
use crate::settings::{AgentFlags, HostFlags};

/// Serve skills to an MCP client on stdin and stdout
#[derive(Args, Debug)]
#[command(after_help = concat!(
    "Clients start it by themselves; most take a piece of JSON such as\n\n\
     \x20 {\"mcpServers\": {\"skillbox\": {\"command\": \"skillbox\", \"args\": [\"mcp\"]}}}\n\n\
     Each client has a session of its own, with a workspace that is gone when the client is.\n\n",
    crate::examples!(
    "skillbox mcp                              the skills of this directory and user",
    "skillbox mcp --skills ./skills --allow-host /data",
    "skillbox mcp --dialect deepagents         tools by the names of another family",
    "skillbox mcp --http 127.0.0.1:8485        many clients of this machine",
    )
))]
pub struct McpArgs {
    /// Listen for many clients over HTTP instead, at /mcp of this address
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    /// Let web pages of this origin in, such as http://localhost:6274; may be repeated
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,
    #[command(flatten)]
    settings: AgentFlags,
    #[command(flatten)]
    host: HostFlags,
}

/// Nothing but the protocol goes to stdout.
pub fn run(args: &McpArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let (settings, _) = args.settings.resolve(context.layers)?;
    let (host, _) = args.host.resolve(context.layers)?;
    let spawner = engine::lasting_spawner()?;
    let runtime = engine::open_server(context, &host, spawner, terminal)?;
    let options = server_options(settings, context);
    let host =
        Host::new(Arc::new(runtime), options).map_err(|error| Failure::from_error(ErrorCode::Storage, &error))?;
    let served = match args.http {
        None => serve_stdio(host),
        Some(address) => serve_http(host, address, &args.allow_origin, |address| {
            tell_address(address, terminal)
        }),
    };
    served.map_err(|error| Failure::from_error(ErrorCode::Internal, &error))?;
    Ok(ExitCode::OK)
}

/// Where clients connect: on stderr, since it is talk.
fn tell_address(address: SocketAddr, terminal: &mut Terminal) {
    let mut page = terminal.page();
    let text = format!("http://{address}/mcp");
    page.beside(0, Span::new(Tone::Plain, "serving"), 8, Tone::Plain, &text);
    // A server is of use without anybody who reads this.
    let _unread = terminal.tell(page);
}
