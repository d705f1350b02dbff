//! `skillbox state`: what the state directory holds.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;
use skillbox_model::ByteSize;
use skillbox_runtime::{StateKind, StateUsage};

use super::output::{CommandOutput, print_output};
use super::session::{collect_garbage, map_session_error};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone, plural};
use crate::runtime_setup;
use crate::settings::HostFlags;

/// Show what the state directory holds, and remove what is not needed
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox state du",
    "skillbox state du --json",
    "skillbox state gc                         remove what nothing refers to",
    "skillbox state gc --snapshot-days 1       and skills not run since yesterday",
))]
pub struct StateArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Show how much of the disk each kind of state uses
    Du,
    /// Remove idle sessions, unused frozen skills, unreferenced content and leftovers of interrupted runs
    Gc {
        /// Remove sessions unused for this many seconds
        #[arg(long, value_name = "SECONDS", default_value_t = 7 * 24 * 3600)]
        idle: u64,
        /// Remove frozen skills that did not run for this many days
        #[arg(long, value_name = "DAYS")]
        snapshot_days: Option<usize>,
    },
}

#[derive(Serialize)]
struct UsageReport {
    state_dir: PathBuf,
    total_bytes: u64,
    usage: Vec<StateUsage>,
}

pub fn run(args: &StateArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let (mut host, _) = HostFlags::default().resolve(context.layers)?;
    match &args.verb {
        Verb::Du => {
            let runtime = runtime_setup::open_runtime(context, &host, None, terminal)?;
            let usage = map_session_error(runtime.state_usage())?;
            let report = UsageReport {
                state_dir: context.settings.state_dir.clone(),
                total_bytes: usage.iter().map(|usage| usage.bytes).sum(),
                usage,
            };
            print_output(&report, context, terminal)
        }
        Verb::Gc { idle, snapshot_days } => {
            host.snapshot_days = snapshot_days.unwrap_or(host.snapshot_days);
            let runtime = runtime_setup::open_runtime(context, &host, None, terminal)?;
            let removed = collect_garbage(&runtime, &host, Duration::from_secs(*idle))?;
            print_output(&removed, context, terminal)
        }
    }
}

impl CommandOutput for UsageReport {
    fn render(&self, page: &mut Page) {
        for usage in &self.usage {
            if usage.bytes == 0 && usage.entries == 0 {
                continue;
            }
            let (label, one) = match usage.kind {
                StateKind::Sessions => ("sessions", "session"),
                StateKind::Artifacts => ("artifacts", "entry"),
                StateKind::Snapshots => ("snapshots", "frozen skill"),
                StateKind::Scratch => ("scratch", "running workspace"),
                StateKind::Tenants => ("tenants", "tenant"),
                StateKind::BuiltIn => ("built-in", "skill"),
                StateKind::Other => ("other", "file"),
            };
            let size = ByteSize(usage.bytes).to_string();
            let text = match usage.kind {
                StateKind::Artifacts => size,
                _ => format!("{size}, {}", plural(usage.entries, one)),
            };
            page.labelled(0, Span::new(Tone::Name, label), 12, Tone::Plain, &text);
        }
        page.labelled(
            0,
            Span::new(Tone::Name, "total"),
            12,
            Tone::Plain,
            &format!("{} in {}", ByteSize(self.total_bytes), self.state_dir.display()),
        );
    }
}
