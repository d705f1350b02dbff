//! `skillbox env`: the environments with the packages of skills.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;
use skillbox_environment::StoredEnvironment;
use skillbox_executor::{CancelToken, EventSink};
use skillbox_model::{ByteSize, ErrorCode, RunEvent};
use skillbox_runtime::{RunError, SkillEnvironment};
use skillbox_sandbox::SpawnerOptions;

use super::output::{CommandOutput, print_output};
use crate::context::Context;
use crate::failure::Failure;
use crate::interrupt;
use crate::render::{Page, Span, Terminal, Tone, Verbosity, plural};
use crate::runtime_setup;
use crate::settings::HostFlags;

/// Install the packages that skills declare, and show what is installed
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox env build csv-report        install the packages of a skill",
    "skillbox env list",
    "skillbox env gc --unused 30          remove what no run used for 30 days",
))]
pub struct EnvArgs {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    host: HostFlags,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Install the packages that a skill declares, in the sandbox
    Build {
        /// The skill
        skill: String,
    },
    /// List the installed environments
    #[command(visible_alias = "ls")]
    List,
    /// Remove environments that no run uses
    Gc {
        /// Remove environments unused for this many days
        #[arg(long, value_name = "DAYS", default_value_t = 30)]
        unused: u64,
        /// Remove the least recently used ones until the rest takes at most this many bytes
        #[arg(long, value_name = "BYTES")]
        max_bytes: Option<u64>,
    },
}

#[derive(Serialize)]
struct BuiltEnvironments {
    environments: Vec<SkillEnvironment>,
}

#[derive(Serialize)]
struct StoredEnvironments {
    environments: Vec<StoredEnvironment>,
}

#[derive(Serialize)]
struct RemovedEnvironments {
    removed: Vec<StoredEnvironment>,
}

pub fn run(args: &EnvArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let (host, _) = args.host.resolve(context.layers)?;
    match &args.verb {
        Verb::Build { skill } => {
            let spawner = match context.spawner.take() {
                Some(spawner) => spawner,
                None => runtime_setup::fork_spawner(SpawnerOptions::for_single_run())?,
            };
            let runtime = runtime_setup::open_runtime(context, &host, Some(spawner), terminal)?;
            let cancel = CancelToken::new().map_err(|error| Failure::from_error(ErrorCode::Internal, &error))?;
            interrupt::cancel_on_signal(&cancel);
            let is_quiet = context.as_json || context.verbosity <= Verbosity::Quiet;
            let mut listener = |event: RunEvent| {
                if let (RunEvent::BuildingEnvironment { declared }, false) = (event, is_quiet) {
                    let line = format!("installing {}\n", plural(declared, "declared package"));
                    let _written = terminal.write_stderr(line.as_bytes());
                }
            };
            let environments = runtime
                .build_environments(skill, &cancel, &mut EventSink::with_listener(&mut listener))
                .map_err(|error| Failure::from_body(error.body()))?;
            print_output(&BuiltEnvironments { environments }, context, terminal)
        }
        Verb::List => {
            let runtime = runtime_setup::open_runtime(context, &host, None, terminal)?;
            let environments = runtime.list_environments().map_err(store_failure)?;
            print_output(&StoredEnvironments { environments }, context, terminal)
        }
        Verb::Gc { unused, max_bytes } => {
            let runtime = runtime_setup::open_runtime(context, &host, None, terminal)?;
            let max_age = Duration::from_secs(unused.saturating_mul(24 * 3600));
            let removed = runtime
                .collect_environments(max_age, max_bytes.unwrap_or(u64::MAX))
                .map_err(store_failure)?;
            print_output(&RemovedEnvironments { removed }, context, terminal)
        }
    }
}

fn store_failure(error: skillbox_environment::EnvironmentStoreError) -> Failure {
    Failure::from_body(RunError::from(error).body())
}

impl CommandOutput for BuiltEnvironments {
    fn render(&self, page: &mut Page) {
        if self.environments.is_empty() {
            page.line(&[Span::plain("the skill declares no packages")]);
        }
        for environment in &self.environments {
            let built = match environment.built_ms {
                Some(ms) => format!("installed in {}.{} s", ms / 1000, ms % 1000 / 100),
                None => "installed before".to_owned(),
            };
            page.line(&[
                Span::new(Tone::Name, &environment.declared_in),
                Span::plain(format!("  {}, {built}", plural(environment.packages.len(), "package"))),
            ]);
            page.paragraph(2, Tone::Plain, &environment.packages.join(", "));
            page.line(&[Span::new(Tone::Dim, format!("  {}", environment.digest))]);
        }
    }
}

impl CommandOutput for StoredEnvironments {
    fn render(&self, page: &mut Page) {
        if self.environments.is_empty() {
            page.line(&[Span::plain("no environments")]);
        }
        render_stored(&self.environments, page);
    }
}

impl CommandOutput for RemovedEnvironments {
    fn render(&self, page: &mut Page) {
        let bytes = self.removed.iter().map(|removed| removed.bytes).sum();
        page.line(&[Span::plain(format!(
            "removed {}, {}",
            plural(self.removed.len(), "environment"),
            ByteSize(bytes)
        ))]);
        render_stored(&self.removed, page);
    }
}

fn render_stored(environments: &[StoredEnvironment], page: &mut Page) {
    for environment in environments {
        page.line(&[
            Span::new(Tone::Name, environment.digest.to_string()),
            Span::plain(format!(
                "  {}, {}, {}",
                environment.kind,
                plural(environment.packages, "package"),
                ByteSize(environment.bytes)
            )),
        ]);
    }
}
