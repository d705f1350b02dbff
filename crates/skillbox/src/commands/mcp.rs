//! `skillbox mcp`: a Model Context Protocol server.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use skillbox_mcp::{ServerState, serve_http, serve_stdio};
use skillbox_model::{ErrorCode, ExitCode};

use super::agent_session::server_options;
use super::forwarder_thread::ForwarderThread;
use super::isolation_warning;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Span, Terminal, Tone};
use crate::runtime_setup;
use crate::settings::{AgentFlags, HostFlags, TrustFlags};

/// Serve skills over MCP on stdin and stdout, or over HTTP
#[derive(Args, Debug)]
#[command(after_help = concat!(
    "MCP clients start the server themselves, with a configuration such as\n\n\
     \x20 {\"mcpServers\": {\"skillbox\": {\"command\": \"skillbox\", \"args\": [\"mcp\"]}}}\n\n\
     Each client has its own session. Its workspace is removed when the client disconnects.\n\n",
    crate::examples!(
    "skillbox mcp                              skills from the default directories",
    "skillbox mcp --skills ./skills --allow-host /data",
    "skillbox mcp --dialect deepagents         tool names of another ecosystem",
    "skillbox mcp --http 127.0.0.1:8485        many clients on this host",
    )
))]
pub struct McpArgs {
    /// Serve many clients over HTTP, at /mcp on this address
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    /// Accept web pages from this origin, such as http://localhost:6274; repeatable
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,
    #[command(flatten)]
    settings: AgentFlags,
    #[command(flatten)]
    host: HostFlags,
    #[command(flatten)]
    pub(super) trust: TrustFlags,
}

/// Runs the server. Only protocol messages are written to stdout.
pub fn run(args: &McpArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let (settings, _) = args.settings.resolve(context.layers)?;
    let (host, _) = args.host.resolve(context.layers)?;
    isolation_warning::print_if_unconfined(host.allow_unconfined, isolation_warning::CALLERS, terminal)?;
    if args.http.is_none() && terminal.is_stderr_terminal() && std::io::stdin().is_terminal() {
        explain_stdio(terminal)?;
    }
    let spawner = runtime_setup::start_server_spawner()?;
    let runtime = runtime_setup::open_for_server(context, &host, spawner, terminal)?;
    // Dropped after the last run has ended.
    let _forwarder = ForwarderThread::start(context, &runtime)?;
    let options = server_options(settings, context)?;
    let state = ServerState::new(Arc::new(runtime), options)
        .map_err(|error| Failure::from_error(ErrorCode::Storage, &error))?;
    let result = match args.http {
        None => serve_stdio(state),
        Some(address) => serve_http(state, address, &args.allow_origin, |address| {
            print_address(address, terminal)
        }),
    };
    result.map_err(|error| Failure::from_error(ErrorCode::Internal, &error))?;
    Ok(ExitCode::OK)
}

/// Explains to a person who started the server by hand that a client is missing.
fn explain_stdio(terminal: &mut Terminal) -> std::io::Result<()> {
    let mut page = terminal.page();
    page.paragraph(
        0,
        Tone::Plain,
        "This is an MCP server. It waits for JSON-RPC messages on standard input, which an MCP client sends. Clients start \
         it themselves, with a configuration such as",
    );
    page.blank_line();
    let configuration = r#"{"mcpServers": {"skillbox": {"command": "skillbox", "args": ["mcp"]}}}"#;
    page.line(&[Span::plain("  "), Span::new(Tone::Hint, configuration)]);
    page.blank_line();
    page.paragraph(
        0,
        Tone::Dim,
        "End it with Ctrl-C. To serve clients over HTTP, use `skillbox mcp --http 127.0.0.1:8485`; `skillbox tools` shows the \
         tools.",
    );
    terminal.print_message(page)
}

/// Prints the address for clients on stderr.
fn print_address(address: SocketAddr, terminal: &mut Terminal) {
    let mut page = terminal.page();
    let text = format!("http://{address}/mcp");
    page.labelled(0, Span::new(Tone::Plain, "serving"), 8, Tone::Plain, &text);
    // The server works even if stderr is closed.
    let _closed = terminal.print_message(page);
}
