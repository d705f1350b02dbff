//! `skillbox serve`: the HTTP server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use skillbox_http::{Limits, NewToken, ServeError, Server};
use skillbox_model::{ErrorCode, ExitCode, TenantName};

use super::agent_session::server_options;
use super::output::{CommandOutput, print_output};
use crate::context::Context;
use crate::failure::Failure;
use crate::logging;
use crate::render::{Page, Span, Terminal, Tone};
use crate::runtime_setup;
use crate::settings::{AgentFlags, HostFlags, ServeFlags, ServeSettings};
use crate::trace_export::TraceExport;

/// File descriptors reserved for runs, files and the log.
const RESERVED_DESCRIPTORS: u64 = 512;

/// Serve skills, sessions, runs and artifacts over HTTP
#[derive(Args, Debug)]
#[command(after_help = concat!(
    "The API is described at /docs, and for programs at /openapi.json. Without tokens, the server accepts connections \
     from this host only and treats all clients as one user. With tokens, each client belongs to a tenant, and tenants \
     are isolated from each other.\n\n",
    crate::examples!(
    "skillbox serve                            on 127.0.0.1:8484, this host only",
    "skillbox serve token alice                create a token for a tenant",
    "skillbox serve --listen 0.0.0.0:8484      for other hosts; needs a token",
    )
))]
pub struct ServeArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    serve: ServeFlags,
    #[command(flatten)]
    settings: AgentFlags,
    #[command(flatten)]
    host: HostFlags,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Create a token and print its entry for the config file
    Token {
        /// Tenant of the token; tokens of one tenant share everything
        tenant: String,
    },
}

pub fn run(args: &ServeArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    match &args.verb {
        Some(Verb::Token { tenant }) => print_output(&IssuedToken::for_tenant(tenant)?, context, terminal),
        None => serve(args, context, terminal),
    }
}

fn serve(args: &ServeArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let (serve, _) = args.serve.resolve(context.layers)?;
    let (settings, _) = args.settings.resolve(context.layers)?;
    let (host, _) = args.host.resolve(context.layers)?;
    let trace_export = serve
        .otlp_endpoint
        .as_deref()
        .map(TraceExport::to_collector)
        .transpose()?;
    logging::start(context.settings.log, trace_export.as_ref());
    if serve.tokens.is_empty() && !serve.listen.ip().is_loopback() {
        return Err(serve_failure(&ServeError::NoTokens(serve.listen)));
    }
    let spawner = runtime_setup::start_server_spawner()?;
    let runtime = runtime_setup::open_for_server(context, &host, spawner, terminal)?;
    let options = server_options(settings, context);
    let limits = limits(&serve);
    let server =
        Server::new(Arc::new(runtime), options, serve.tokens, limits).map_err(|error| serve_failure(&error))?;
    let result = server.serve(serve.listen, |address| print_address(address, terminal));
    result.map_err(|error| serve_failure(&error))?;
    Ok(ExitCode::OK)
}

fn limits(settings: &ServeSettings) -> Limits {
    let seconds = |count: usize| Duration::from_secs(count as u64);
    // Each connection needs a file descriptor.
    let descriptors = raise_descriptor_limit();
    let available = usize::try_from(descriptors.saturating_sub(RESERVED_DESCRIPTORS)).unwrap_or(usize::MAX);
    Limits {
        max_runs: settings.max_runs,
        max_queued: settings.max_queued,
        max_connections: settings.max_connections.min(available.max(64)),
        max_body_bytes: settings.max_body,
        max_upload_bytes: settings.max_upload as u64,
        head_timeout: seconds(settings.head_time),
        grace_period: seconds(settings.grace),
        session_idle_timeout: seconds(settings.session_idle),
    }
}

/// Raises the soft limit of file descriptors to the hard limit and returns the limit in force.
fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let in_force = if setrlimit(Resource::Nofile, raised).is_ok() {
        raised
    } else {
        limit
    };
    in_force.current.unwrap_or(u64::MAX)
}

fn serve_failure(error: &ServeError) -> Failure {
    let failure = Failure::from_error(ErrorCode::Internal, error);
    match error {
        ServeError::NoTokens(_) => Failure::usage(
            error.to_string(),
            "create a token with `skillbox serve token TENANT`, or listen on 127.0.0.1",
        ),
        ServeError::Listen { .. } => failure.with_hint("choose another address with --listen"),
        _ => failure,
    }
}

/// Prints the address for clients on stderr.
fn print_address(address: SocketAddr, terminal: &mut Terminal) {
    let mut page = terminal.page();
    let text = format!("http://{address}");
    page.labelled(0, Span::new(Tone::Plain, "serving"), 8, Tone::Plain, &text);
    // The server works even if stderr is closed.
    let _closed = terminal.print_message(page);
}

/// A new token, shown once.
#[derive(Serialize)]
struct IssuedToken {
    tenant: String,
    token: String,
    /// The entry for the setting `tokens`.
    #[serde(rename = "line")]
    entry: String,
}

impl IssuedToken {
    fn for_tenant(tenant: &str) -> Result<Self, Failure> {
        let name = TenantName::parse(tenant)
            .map_err(|error| Failure::from_error(ErrorCode::InvalidRequest, &error).with_hint("choose another name"))?;
        let created = NewToken::generate(name).map_err(|error| Failure::from_error(ErrorCode::Internal, &error))?;
        Ok(Self {
            tenant: tenant.to_owned(),
            token: created.token,
            entry: created.entry.to_string(),
        })
    }
}

impl CommandOutput for IssuedToken {
    fn render(&self, page: &mut Page) {
        page.paragraph(0, Tone::Dim, "Token for the client; it is not shown again:");
        page.line(&[Span::new(Tone::Name, &self.token)]);
        page.blank_line();
        page.paragraph(0, Tone::Dim, "Entry for skillbox.toml:");
        page.line(&[Span::plain(format!("tokens = [\"{}\"]", self.entry))]);
    }
}
