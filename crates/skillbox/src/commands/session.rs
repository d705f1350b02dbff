//! `skillbox session`: stored sessions and their workspaces.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;
use skillbox_artifacts::FreedContent;
use skillbox_model::{ByteSize, ErrorCode, ExecutorKind, SessionId, SkillName};
use skillbox_runtime::session::SessionRecord;
use skillbox_runtime::{AgentName, DocSelection, LoadMode, RunError, Runtime};

use super::output::{CommandOutput, print_output};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone, plural};
use crate::runtime_setup;
use crate::settings::HostFlags;

/// List, show and remove stored sessions
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox session list",
    "skillbox session show s1 --json",
    "skillbox session gc --idle 3600           remove sessions unused for an hour",
))]
pub struct SessionArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List all sessions
    List,
    /// Show a session, its runs and its loaded skills
    Show {
        /// ID of the session
        id: String,
    },
    /// Remove a session with its workspace and artifacts
    Rm {
        /// ID of the session
        id: String,
    },
    /// Remove idle sessions, unreferenced content and leftovers of interrupted runs
    Gc {
        /// Remove sessions unused for this many seconds
        #[arg(long, value_name = "SECONDS", default_value_t = 7 * 24 * 3600)]
        idle: u64,
    },
}

#[derive(Serialize)]
struct SessionList {
    sessions: Vec<SessionRecord>,
}

/// A session with the skills that its agents have loaded.
#[derive(Serialize)]
struct SessionDetails {
    #[serde(flatten)]
    record: SessionRecord,
    loaded: Vec<LoadedSkill>,
    disabled: Vec<SkillName>,
}

#[derive(Serialize)]
struct LoadedSkill {
    agent: AgentName,
    skill: SkillName,
    mode: LoadMode,
    /// Paths of the selected documents, or `*` for all.
    docs: DocSelection,
}

#[derive(Serialize)]
struct GarbageReport {
    removed: Vec<SessionId>,
    /// Content that no artifact refers to any more.
    freed: FreedContent,
    /// The number of removed containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    containers: Option<usize>,
}

pub fn run(args: &SessionArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let (host, _) = HostFlags::default().resolve(context.layers)?;
    let runtime = runtime_setup::open_runtime(context, &host, None, terminal)?;
    match &args.verb {
        Verb::List => print_output(
            &SessionList {
                sessions: map_session_error(runtime.sessions().list())?,
            },
            context,
            terminal,
        ),
        Verb::Show { id } => print_output(&session_details(&runtime, id)?, context, terminal),
        Verb::Rm { id } => {
            let id = parse_id(id)?;
            let freed = map_session_error(runtime.remove_session(&id))?;
            let removed = GarbageReport {
                removed: vec![id],
                freed,
                containers: None,
            };
            print_output(&removed, context, terminal)
        }
        Verb::Gc { idle } => {
            let garbage = map_session_error(runtime.collect_garbage(Duration::from_secs(*idle)))?;
            let containers = match (runtime.remove_abandoned_containers(), host.executor) {
                (Ok(count), _) => Some(count),
                // A host that does not use Docker need not have a daemon.
                (Err(_), ExecutorKind::Local) => None,
                (Err(error), ExecutorKind::Docker) => return Err(Failure::from_body(error.body())),
            };
            let removed = GarbageReport {
                removed: garbage.sessions,
                freed: garbage.artifacts,
                containers,
            };
            print_output(&removed, context, terminal)
        }
    }
}

fn session_details(runtime: &Runtime, id: &str) -> Result<SessionDetails, Failure> {
    let id = parse_id(id)?;
    let record = map_session_error(runtime.sessions().open(&id).and_then(|session| session.record()))?;
    let state = map_session_error(runtime.session_state(&id))?;
    let mut all = Vec::new();
    for agent in state.agents() {
        all.extend(state.loaded(agent).map(|loaded| LoadedSkill {
            agent: agent.clone(),
            skill: loaded.skill.clone(),
            mode: loaded.mode,
            docs: state.docs(agent, &loaded.skill).cloned().unwrap_or_default(),
        }));
    }
    Ok(SessionDetails {
        record,
        loaded: all,
        disabled: state.disabled().iter().cloned().collect(),
    })
}

fn parse_id(id: &str) -> Result<SessionId, Failure> {
    SessionId::parse(id).map_err(|error| Failure::from_error(ErrorCode::SessionUnknown, &error))
}

fn map_session_error<T>(result: Result<T, impl Into<RunError>>) -> Result<T, Failure> {
    result.map_err(|error| Failure::from_body(error.into().body()))
}

impl CommandOutput for SessionList {
    fn render(&self, page: &mut Page) {
        if self.sessions.is_empty() {
            page.line(&[Span::plain("no stored sessions")]);
            page.paragraph(
                0,
                Tone::Dim,
                "create one with `skillbox run SKILL --session ID -- COMMAND`",
            );
        }
        for session in &self.sessions {
            session.render(page);
        }
    }
}

impl CommandOutput for SessionRecord {
    fn render(&self, page: &mut Page) {
        let idle = self.idle_time().as_secs();
        let text = format!(
            "{}, last used {} ago",
            plural(usize::try_from(self.runs).unwrap_or(usize::MAX), "run"),
            format_duration(idle)
        );
        page.labelled(0, Span::new(Tone::Name, self.id.as_str()), 24, Tone::Plain, &text);
    }
}

impl CommandOutput for SessionDetails {
    fn render(&self, page: &mut Page) {
        self.record.render(page);
        for loaded in &self.loaded {
            let docs = match &loaded.docs {
                DocSelection::All => ", with all documents".to_owned(),
                DocSelection::Chosen(docs) if docs.is_empty() => String::new(),
                DocSelection::Chosen(docs) => {
                    let docs: Vec<String> = docs.iter().map(ToString::to_string).collect();
                    format!(", with {}", docs.join(", "))
                }
            };
            let lifetime = match loaded.mode {
                LoadMode::Session => "",
                LoadMode::Turn => " for this turn",
                LoadMode::Once => " for one prompt",
            };
            let owner = if loaded.agent == AgentName::default() {
                String::new()
            } else {
                format!(" by {}", loaded.agent)
            };
            let text = format!("loaded{owner}{lifetime}{docs}");
            page.labelled(2, Span::new(Tone::Name, loaded.skill.as_str()), 24, Tone::Plain, &text);
        }
        for skill in &self.disabled {
            page.labelled(2, Span::new(Tone::Name, skill.as_str()), 24, Tone::Dim, "disabled");
        }
    }
}

impl CommandOutput for GarbageReport {
    fn render(&self, page: &mut Page) {
        for id in &self.removed {
            page.line(&[Span::plain("removed "), Span::new(Tone::Name, id.as_str())]);
        }
        let containers = self.containers.unwrap_or(0);
        if containers > 0 {
            page.line(&[Span::plain(format!("removed {}", plural(containers, "container")))]);
        }
        if self.freed != FreedContent::default() {
            let (files, size) = (plural(self.freed.blobs, "stored file"), ByteSize(self.freed.bytes));
            page.line(&[Span::plain(format!("freed {files}, {size}"))]);
        }
        if self.removed.is_empty() && containers == 0 && self.freed == FreedContent::default() {
            page.line(&[Span::plain("nothing to remove")]);
        }
    }
}

/// Formats a duration in its largest unit, such as `3 h`.
fn format_duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => plural(usize::try_from(seconds / 86_400).unwrap_or(usize::MAX), "day"),
    }
}
