//! `skillbox runs`: the runs of this state directory, now and in the past.

use clap::{Args, Subcommand};
use serde::Serialize;
use skillbox_model::{RunId, TenantName};
use skillbox_runtime::{HistoryError, PastRun, RunFilter, RunHistory, RunList, RunStatus, RunSummary, TenantFilter};

use super::output::{CommandOutput, print_output};
use super::points_in_time::{format_time, parse_since};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone};
use crate::settings::TrustFlags;
use crate::trust_setup::history_limits;

/// List, show, kill and remove runs
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox runs list --failed --since 1d",
    "skillbox runs list --skill csv-report --json",
    "skillbox runs show 019b2f…                 its report, without file contents",
    "skillbox runs kill 019b2f…                 whichever process started it",
))]
pub struct RunsArgs {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    pub(super) trust: TrustFlags,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List runs, the newest first
    List {
        /// Only runs of this skill
        #[arg(long, value_name = "NAME")]
        skill: Option<String>,
        /// Only runs of this tenant of a server
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// Only runs that failed, were refused or lost
        #[arg(long)]
        failed: bool,
        /// Only runs since this time, or of this duration: 2026-01-31, 7d
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Maximum number of runs
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
    },
    /// Show a run with its report
    Show {
        /// ID of the run
        id: String,
    },
    /// Kill a run, whichever process started it
    Kill {
        /// ID of the run
        id: String,
    },
    /// Remove a run from the history
    Rm {
        /// ID of the run
        id: String,
    },
}

#[derive(Serialize)]
struct Killed {
    killed: RunId,
}

#[derive(Serialize)]
struct Removed {
    removed: RunId,
}

pub fn run(args: &RunsArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let history = RunHistory::new(&context.settings.state_dir, history_limits(context));
    match &args.verb {
        Verb::List {
            skill,
            tenant,
            failed,
            since,
            limit,
        } => {
            let tenant = tenant.as_deref().map(parse_tenant).transpose()?;
            let filter = RunFilter {
                tenant: tenant.map_or(TenantFilter::All, |tenant| TenantFilter::Only(Some(tenant))),
                skill: skill.clone(),
                failed: *failed,
                since_ms: since.as_deref().map(parse_since).transpose()?.unwrap_or_default(),
                before: None,
                limit: Some(*limit),
            };
            print_output(
                &ShownRuns(history.list(&filter).map_err(history_failure)?),
                context,
                terminal,
            )
        }
        Verb::Show { id } => {
            let run = history.show(&parse_id(id)?, &TenantFilter::All);
            print_output(&ShownRun(run.map_err(history_failure)?), context, terminal)
        }
        Verb::Kill { id } => {
            let killed = parse_id(id)?;
            history.kill(&killed).map_err(history_failure)?;
            print_output(&Killed { killed }, context, terminal)
        }
        Verb::Rm { id } => {
            let removed = parse_id(id)?;
            history.remove(&removed).map_err(history_failure)?;
            print_output(&Removed { removed }, context, terminal)
        }
    }
}

fn parse_id(text: &str) -> Result<RunId, Failure> {
    RunId::parse(text).map_err(|error| Failure::usage(error.to_string(), "see `skillbox runs list`"))
}

fn parse_tenant(text: &str) -> Result<TenantName, Failure> {
    TenantName::parse(text).map_err(|error| Failure::usage(error.to_string(), "see `skillbox runs list`"))
}

fn history_failure(error: HistoryError) -> Failure {
    let failure = Failure::from_error(error.code(), &error);
    match error {
        HistoryError::Unknown(_) => failure.with_hint("see `skillbox runs list`"),
        _ => failure,
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct ShownRuns(RunList);

#[derive(Serialize)]
#[serde(transparent)]
struct ShownRun(PastRun);

fn status_of(run: &RunSummary) -> (Tone, String) {
    match (run.status, run.exit_code) {
        (RunStatus::Queued, _) => (Tone::Dim, "queued".to_owned()),
        (RunStatus::Running, _) => (Tone::Name, "running".to_owned()),
        (RunStatus::Lost, _) => (Tone::Bad, "lost".to_owned()),
        (RunStatus::Refused, _) => (Tone::Warning, run.error_code.clone().unwrap_or_default()),
        (RunStatus::Ended, Some(0)) => (Tone::Good, "ok".to_owned()),
        (RunStatus::Ended, Some(code)) => (Tone::Warning, format!("exit {code}")),
        (RunStatus::Ended, None) => (Tone::Warning, run.ended_by.clone().unwrap_or_default()),
    }
}

impl CommandOutput for ShownRuns {
    fn render(&self, page: &mut Page) {
        if self.0.runs.is_empty() {
            page.line(&[Span::plain("no runs")]);
        }
        for run in &self.0.runs {
            let (tone, status) = status_of(run);
            page.line(&[
                Span::new(Tone::Dim, run.run_id.as_str()),
                Span::plain("  "),
                Span::new(tone, format!("{status:<12}  ")),
                Span::new(Tone::Name, &run.skill),
            ]);
            let mut text = format_time(run.started_ms);
            if let Some(duration) = run.duration_ms {
                text.push_str(&format!(", {duration} ms"));
            }
            if let Some(tenant) = &run.tenant {
                text.push_str(&format!(", tenant {tenant}"));
            }
            let command: String = run.command.chars().take(80).collect();
            page.paragraph(2, Tone::Dim, &format!("{text}: {command}"));
        }
        if self.0.has_more {
            page.line(&[Span::new(Tone::Dim, "more runs match; see --limit and --since")]);
        }
    }
}

impl CommandOutput for ShownRun {
    fn render(&self, page: &mut Page) {
        let run = &self.0;
        let field = |page: &mut Page, label: &str, text: &str| {
            page.labelled(0, Span::new(Tone::Dim, label), 11, Tone::Plain, text);
        };
        page.line(&[Span::new(Tone::Name, run.run_id.as_str())]);
        field(page, "skill", &run.skill);
        field(page, "command", &run.command);
        field(page, "started", &format_time(run.started_ms));
        if let Some(ended) = run.ended_ms {
            field(page, "ended", &format_time(ended));
        }
        if let Some(error) = &run.error {
            field(page, "refused", &format!("{} ({})", error.message, error.code.as_str()));
        }
        if run.status == RunStatus::Lost {
            field(page, "lost", "its process ended before it");
        }
        let Some(report) = &run.report else { return };
        let code = report.exit_code.map(|code| format!(", exit code {code}"));
        let how = format!("{}{}", report.ended_by.as_str(), code.unwrap_or_default());
        field(page, "ended by", &format!("{how}, after {} ms", report.duration_ms));
        field(page, "digest", &report.skill_digest.to_string());
        field(page, "profile", &format!("{} on {}", report.profile, report.executor));
        for warning in &report.warnings {
            field(page, "warning", warning);
        }
        for file in &report.output_files {
            field(
                page,
                "file",
                &format!("{}, {} bytes, {}", file.name, file.size_bytes, file.sha256),
            );
        }
        for (title, text) in [("stdout", &report.stdout), ("stderr", &report.stderr)] {
            if !text.is_empty() {
                page.heading(title);
                page.verbatim(0, Tone::Plain, text);
            }
        }
    }
}

impl CommandOutput for Killed {
    fn render(&self, page: &mut Page) {
        page.labelled(0, Span::new(Tone::Good, "killed"), 8, Tone::Plain, self.killed.as_str());
    }
}

impl CommandOutput for Removed {
    fn render(&self, page: &mut Page) {
        page.labelled(
            0,
            Span::new(Tone::Good, "removed"),
            9,
            Tone::Plain,
            self.removed.as_str(),
        );
    }
}
