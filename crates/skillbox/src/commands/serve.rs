//! `skillbox serve`: the HTTP server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use skillbox_http::{Limits, ListenAddress, NewToken, ReloadedSettings, ServeError, Server, TokenScope};
use skillbox_model::{ErrorCode, ExitCode, TenantName, with_causes};
use skillbox_trust::{ManagedEntity, ManagementActivity};

use super::agent_session::server_options;
use super::forwarder_thread::ForwarderThread;
use super::isolation_warning;
use super::misspelled_variables;
use super::output::{CommandOutput, print_output};
use crate::context::Context;
use crate::failure::Failure;
use crate::logging;
use crate::render::{Page, Span, Terminal, Tone};
use crate::runtime_setup;
use crate::secret_source::configured_secrets;
use crate::settings::{self, AgentFlags, Environment, HostFlags, LogLevel, ServeFlags, ServeSettings, TrustFlags};
use crate::trace_export::TraceExport;
use crate::trust_setup::{open_trust, trust_failure};

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
    "skillbox serve token prom --metrics       create a token for the metrics only",
    "skillbox serve --listen 0.0.0.0:8484      for other hosts; needs a token",
    "skillbox serve --listen unix:skillbox.sock    for programs of this user",
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
    #[command(flatten)]
    pub(super) trust: TrustFlags,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Create a token and print its entry for the config file
    Token {
        /// Tenant of the token; tokens of one tenant share everything
        tenant: String,
        /// The token shows the metrics of the server, and nothing else; TENANT is only its name
        #[arg(long)]
        metrics: bool,
    },
}

pub fn run(args: &ServeArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    match &args.verb {
        Some(Verb::Token { tenant, metrics }) => {
            let scope = if *metrics {
                TokenScope::Metrics
            } else {
                TokenScope::Tenant
            };
            let token = IssuedToken::generate(tenant, scope)?;
            let entity = ManagedEntity {
                kind: "token",
                name: tenant.clone(),
                uid: Some(token.entry.clone()),
            };
            let recorded = open_trust(context)?.record(ManagementActivity::Create, &entity, "a token was created");
            recorded.map_err(trust_failure)?;
            print_output(&token, context, terminal)
        }
        None if context.settings.log == LogLevel::Off => serve(args, context, terminal),
        // With a log, everything on standard error is a JSON line.
        None => serve(args, context, terminal).or_else(|failure| {
            tracing::error!(
                code = failure.code().as_str(),
                hint = failure.hint(),
                "{}",
                failure.message()
            );
            Ok(failure.exit_code())
        }),
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
    if context.settings.log == LogLevel::Off {
        misspelled_variables::warn_about_misspelled_variables(context, terminal)?;
    } else {
        logging::log_panics();
        misspelled_variables::log_misspelled_variables(context);
    }
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        pid = std::process::id(),
        "starting"
    );
    if serve.tokens.is_empty() && !serve.listen.is_local() {
        return Err(serve_failure(&ServeError::NoTokens(serve.listen)));
    }
    match context.settings.log {
        LogLevel::Off => {
            isolation_warning::print_if_unconfined(host.allow_unconfined, isolation_warning::CALLERS, terminal)?;
        }
        _ if host.allow_unconfined => tracing::warn!("{}", isolation_warning::CALLERS),
        _ => {}
    }
    let spawner = runtime_setup::start_server_spawner()?;
    let runtime = runtime_setup::open_for_server(context, &host, spawner, terminal)?;
    // Dropped after the last run has ended.
    let _forwarder = ForwarderThread::start(context, &runtime)?;
    let options = server_options(settings, context)?;
    let limits = limits(&serve);
    let server =
        Server::new(Arc::new(runtime), options, serve.tokens, limits).map_err(|error| serve_failure(&error))?;
    let server = server.with_reload(read_settings(
        args.serve.clone(),
        context.config_path.map(Path::to_owned),
    ));
    let has_log = context.settings.log != LogLevel::Off;
    let result = server.serve(serve.listen, |address| {
        if has_log {
            tracing::info!(address = address.url(), "listening");
        } else {
            print_address(address, terminal);
        }
    });
    result.map_err(|error| serve_failure(&error))?;
    Ok(ExitCode::OK)
}

/// Reads the settings of the server again: from the same flags, the environment of the process, and the config file.
fn read_settings(
    flags: ServeFlags,
    config_path: Option<PathBuf>,
) -> impl Fn() -> Result<ReloadedSettings, String> + Send + Sync + 'static {
    move || {
        let layers = settings::read_layers(Environment::of_process(), config_path.as_deref())
            .map_err(|error| with_causes(&error))?;
        if let Some(refused) = layers.refusals().first() {
            return Err(refused.to_string());
        }
        let (serve, _) = flags.resolve(&layers).map_err(|error| with_causes(&error))?;
        Ok(ReloadedSettings {
            limits: limits(&serve),
            tokens: serve.tokens,
            secrets: configured_secrets(&layers),
        })
    }
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
        max_buffered_bytes: settings.max_buffered,
        max_upload_bytes: settings.max_upload as u64,
        head_timeout: seconds(settings.head_time),
        grace_period: seconds(settings.grace),
        session_idle_timeout: seconds(settings.session_idle),
        results_ttl: seconds(settings.results_ttl),
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
fn print_address(address: &ListenAddress, terminal: &mut Terminal) {
    let mut page = terminal.page();
    page.labelled(0, Span::new(Tone::Plain, "serving"), 8, Tone::Plain, &address.url());
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
    fn generate(tenant: &str, scope: TokenScope) -> Result<Self, Failure> {
        let name = TenantName::parse(tenant)
            .map_err(|error| Failure::from_error(ErrorCode::InvalidRequest, &error).with_hint("choose another name"))?;
        let created =
            NewToken::generate(name, scope).map_err(|error| Failure::from_error(ErrorCode::Internal, &error))?;
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
