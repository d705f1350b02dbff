//! `skillbox serve`: the HTTP API.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use skillbox_http::{Limits, NewToken, ServeError, Server};
use skillbox_model::{ErrorCode, ExitCode, TenantName};

use super::agent::server_options;
use super::{Answer, Context, show};
use crate::engine;
use crate::failure::Failure;
use crate::log_lines;
use crate::render::{Page, Span, Terminal, Tone};
use crate::settings::{AgentFlags, HostFlags, ServeFlags, ServeSettings};
use crate::traces::Traces;

/// Descriptors that are not for connections: runs, files, the log.
const OTHER_DESCRIPTORS: u64 = 512;

/// Serve skills, sessions, runs and artifacts over HTTP
#[derive(Args, Debug)]
#[command(after_help = concat!(
    "GET /docs describes the API, GET /openapi.json the same for programs. Without tokens only programs of this \
     machine are let in, and all of them are one user; with tokens each belongs to a tenant, and no tenant sees \
     anything of another.\n\n",
    crate::examples!(
    "skillbox serve                            on 127.0.0.1:8484, for this machine",
    "skillbox serve token alice                a new token, and its line for skillbox.toml",
    "skillbox serve --listen 0.0.0.0:8484      refused until there is a token",
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
    /// Make a token and print it with its line for the configuration
    Token {
        /// Whose token it is: those with the same name share everything
        tenant: String,
    },
}

pub fn run(args: &ServeArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    match &args.verb {
        Some(Verb::Token { tenant }) => show(&Issued::to(tenant)?, context, terminal),
        None => serve(args, context, terminal),
    }
}

fn serve(args: &ServeArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let (serve, _) = args.serve.resolve(context.layers)?;
    let (settings, _) = args.settings.resolve(context.layers)?;
    let (host, _) = args.host.resolve(context.layers)?;
    let traces = serve.otlp_endpoint.as_deref().map(Traces::to).transpose()?;
    log_lines::start(context.settings.log, traces.as_ref());
    if serve.tokens.is_empty() && !serve.listen.ip().is_loopback() {
        return Err(refused(&ServeError::NoTokens(serve.listen)));
    }
    let spawner = engine::lasting_spawner()?;
    let runtime = engine::open_server(context, &host, spawner, terminal)?;
    let options = server_options(settings, context);
    let limits = limits(&serve);
    let server = Server::new(Arc::new(runtime), options, serve.tokens, limits).map_err(|error| refused(&error))?;
    let served = server.serve(serve.listen, |address| tell_address(address, terminal));
    served.map_err(|error| refused(&error))?;
    Ok(ExitCode::OK)
}

fn limits(settings: &ServeSettings) -> Limits {
    let seconds = |count: usize| Duration::from_secs(count as u64);
    // More connections than the system gives us descriptors for are no connections.
    let descriptors = take_every_descriptor();
    let possible = usize::try_from(descriptors.saturating_sub(OTHER_DESCRIPTORS)).unwrap_or(usize::MAX);
    Limits {
        runs: settings.max_runs,
        queued: settings.max_queued,
        connections: settings.max_connections.min(possible.max(64)),
        body: settings.max_body,
        upload: settings.max_upload as u64,
        head_time: seconds(settings.head_time),
        grace: seconds(settings.grace),
        session_idle: seconds(settings.session_idle),
    }
}

/// Takes as many descriptors as this process may have; gives how many there are.
fn take_every_descriptor() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let granted = if setrlimit(Resource::Nofile, most).is_ok() {
        most
    } else {
        limit
    };
    granted.current.unwrap_or(u64::MAX)
}

fn refused(error: &ServeError) -> Failure {
    let failure = Failure::from_error(ErrorCode::Internal, error);
    match error {
        ServeError::NoTokens(_) => Failure::usage(
            error.to_string(),
            "`skillbox serve token TENANT` makes one; or listen on 127.0.0.1",
        ),
        ServeError::Listen { .. } => failure.hint("choose another address with --listen"),
        _ => failure,
    }
}

/// Where clients connect: on stderr, since it is talk.
fn tell_address(address: SocketAddr, terminal: &mut Terminal) {
    let mut page = terminal.page();
    let text = format!("http://{address}");
    page.beside(0, Span::new(Tone::Plain, "serving"), 8, Tone::Plain, &text);
    // A server is of use without anybody who reads this.
    let _unread = terminal.tell(page);
}

/// A new token, shown once.
#[derive(Serialize)]
struct Issued {
    tenant: String,
    token: String,
    line: String,
}

impl Issued {
    fn to(tenant: &str) -> Result<Self, Failure> {
        let name = TenantName::parse(tenant)
            .map_err(|error| Failure::from_error(ErrorCode::InvalidRequest, &error).hint("choose another name"))?;
        let made = NewToken::make(name).map_err(|error| Failure::from_error(ErrorCode::Internal, &error))?;
        Ok(Self {
            tenant: tenant.to_owned(),
            token: made.token,
            line: made.line.to_string(),
        })
    }
}

impl Answer for Issued {
    fn render(&self, page: &mut Page) {
        page.paragraph(0, Tone::Dim, "The token, for the client; it is shown only now:");
        page.line(&[Span::new(Tone::Name, &self.token)]);
        page.gap();
        page.paragraph(0, Tone::Dim, "Its line for skillbox.toml:");
        page.line(&[Span::plain(format!("tokens = [\"{}\"]", self.line))]);
    }
}
