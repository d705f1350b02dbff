//! `skillbox session`: stored sessions and their workspaces.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;
use skillbox_artifacts::FreedContent;
use skillbox_executor::snapshot::SnapshotUsage;
use skillbox_model::{ByteSize, ErrorCode, ExecutorKind, SessionId, SkillName, TenantName};
use skillbox_runtime::session::{Fork, SessionRecord};
use skillbox_runtime::{AgentName, DocSelection, LoadMode, RunError, Runtime};
use skillbox_sandbox::SpawnerOptions;

use super::output::{CommandOutput, print_output};
use super::session_get;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone, plural};
use crate::runtime_setup;
use crate::settings::{HostFlags, HostSettings};

/// The number of files of a workspace whose sizes are added up, more than a session's quota allows.
const MAX_COUNTED_FILES: u64 = 1_000_000;

/// List, show, read and remove stored sessions
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox session list",
    "skillbox session list --tenant alice      those of a tenant of the server",
    "skillbox session show s1 --json",
    "skillbox session get s1 out/table.csv > table.csv",
    "skillbox session gc --idle 3600           remove sessions unused for an hour",
))]
pub struct SessionArgs {
    /// Use the sessions of this tenant of `skillbox serve`
    #[arg(long, value_name = "NAME", global = true)]
    tenant: Option<String>,
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
    /// Read a file of a session's workspace
    Get {
        /// ID of the session
        id: String,
        /// Path in the workspace, such as out/table.csv or workspace://out/table.csv
        path: String,
        /// Write to this file, which must not exist
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
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
    sessions: Vec<ListedSession>,
}

/// A session with the size of its workspace.
#[derive(Serialize)]
struct ListedSession {
    #[serde(flatten)]
    record: SessionRecord,
    workspace_bytes: u64,
}

/// A session with the skills that its agents have loaded.
#[derive(Serialize)]
struct SessionDetails {
    #[serde(flatten)]
    record: SessionRecord,
    loaded: Vec<LoadedSkill>,
    disabled: Vec<SkillName>,
    /// Sessions in which skills with `context: fork` are loaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    forks: Vec<Fork>,
}

#[derive(Serialize)]
struct LoadedSkill {
    agent: AgentName,
    skill: SkillName,
    mode: LoadMode,
    /// Paths of the selected documents, or `*` for all.
    docs: DocSelection,
    /// The model that the skill asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
}

#[derive(Serialize)]
pub(super) struct GarbageReport {
    removed: Vec<SessionId>,
    /// Content that no artifact refers to any more.
    freed: FreedContent,
    /// The removed snapshots of skills.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshots: Option<SnapshotUsage>,
    /// The number of removed containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    containers: Option<usize>,
}

pub fn run(args: &SessionArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let spawner = match args.verb {
        // The sandbox knows the user that owns a workspace. A host without it has no workspaces in disk images.
        Verb::Get { .. } => runtime_setup::fork_spawner(SpawnerOptions::for_single_run()).ok(),
        _ => None,
    };
    let (host, _) = HostFlags::default().resolve(context.layers)?;
    let runtime = runtime_setup::open_runtime(context, &host, spawner, terminal)?;
    let runtime = for_tenant(runtime, args.tenant.as_deref())?;
    match &args.verb {
        Verb::List => print_output(&list(&runtime)?, context, terminal),
        Verb::Show { id } => print_output(&session_details(&runtime, id)?, context, terminal),
        Verb::Get { id, path, to } => session_get::run(&runtime, &parse_id(id)?, path, to.as_deref()),
        Verb::Rm { id } => {
            let id = parse_id(id)?;
            let freed = map_session_error(runtime.remove_session(&id))?;
            let removed = GarbageReport {
                removed: vec![id],
                freed,
                snapshots: None,
                containers: None,
            };
            print_output(&removed, context, terminal)
        }
        Verb::Gc { idle } => {
            let removed = collect_garbage(&runtime, &host, Duration::from_secs(*idle))?;
            print_output(&removed, context, terminal)
        }
    }
}

/// The runtime of a tenant, or the host's own.
pub(super) fn for_tenant(runtime: Runtime, tenant: Option<&str>) -> Result<Runtime, Failure> {
    let Some(tenant) = tenant else { return Ok(runtime) };
    let tenant = TenantName::parse(tenant).map_err(|error| Failure::from_error(ErrorCode::InvalidRequest, &error))?;
    Ok(runtime.for_tenant(&tenant))
}

fn list(runtime: &Runtime) -> Result<SessionList, Failure> {
    let mut sessions = Vec::new();
    for record in map_session_error(runtime.sessions().list())? {
        // A session that is removed at this moment is listed without a size.
        let workspace_bytes = runtime
            .sessions()
            .open(&record.id)
            .and_then(|session| session.workspace_bytes(MAX_COUNTED_FILES))
            .unwrap_or(0);
        sessions.push(ListedSession {
            record,
            workspace_bytes,
        });
    }
    Ok(SessionList { sessions })
}

/// Removes what is not needed any more.
pub(super) fn collect_garbage(
    runtime: &Runtime,
    host: &HostSettings,
    idle: Duration,
) -> Result<GarbageReport, Failure> {
    let garbage = map_session_error(runtime.collect_garbage(idle))?;
    let containers = match (runtime.remove_abandoned_containers(), host.executor) {
        (Ok(count), _) => Some(count),
        // A host that does not use Docker need not have a daemon.
        (Err(_), ExecutorKind::Local) => None,
        (Err(error), ExecutorKind::Docker) => return Err(Failure::from_body(error.body())),
    };
    Ok(GarbageReport {
        removed: garbage.sessions,
        freed: garbage.artifacts,
        snapshots: Some(garbage.snapshots),
        containers,
    })
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
            model: state.model_of(&loaded.skill).map(str::to_owned),
        }));
    }
    Ok(SessionDetails {
        record,
        loaded: all,
        disabled: state.disabled().iter().cloned().collect(),
        forks: map_session_error(runtime.session_forks(&id))?,
    })
}

fn parse_id(id: &str) -> Result<SessionId, Failure> {
    SessionId::parse(id).map_err(|error| Failure::from_error(ErrorCode::SessionUnknown, &error))
}

pub(super) fn map_session_error<T>(result: Result<T, impl Into<RunError>>) -> Result<T, Failure> {
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
            render_session(&session.record, Some(session.workspace_bytes), page);
        }
    }
}

impl CommandOutput for SessionRecord {
    fn render(&self, page: &mut Page) {
        render_session(self, None, page);
    }
}

/// Renders a session as one line.
fn render_session(record: &SessionRecord, workspace_bytes: Option<u64>, page: &mut Page) {
    let idle = record.idle_time().as_secs();
    let size = workspace_bytes.map_or_else(String::new, |bytes| format!(", {}", ByteSize(bytes)));
    let text = format!(
        "{}{size}, last used {} ago",
        plural(usize::try_from(record.runs).unwrap_or(usize::MAX), "run"),
        format_duration(idle)
    );
    page.labelled(0, Span::new(Tone::Name, record.id.as_str()), 24, Tone::Plain, &text);
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
            let model = loaded.model.as_ref().map(|model| format!(", for the model {model}"));
            let text = format!("loaded{owner}{lifetime}{docs}{}", model.unwrap_or_default());
            page.labelled(2, Span::new(Tone::Name, loaded.skill.as_str()), 24, Tone::Plain, &text);
        }
        for fork in &self.forks {
            let state = if fork.returned { "returned" } else { "has not returned" };
            let text = format!("forked as {}, {state}", fork.session);
            page.labelled(2, Span::new(Tone::Name, fork.skill.as_str()), 24, Tone::Plain, &text);
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
        let snapshots = self.snapshots.unwrap_or_default();
        if snapshots.snapshots > 0 {
            let (count, size) = (plural(snapshots.snapshots, "frozen skill"), ByteSize(snapshots.bytes));
            page.line(&[Span::plain(format!("removed {count}, {size}"))]);
        }
        if self.freed != FreedContent::default() {
            let (files, size) = (plural(self.freed.blobs, "stored file"), ByteSize(self.freed.bytes));
            page.line(&[Span::plain(format!("freed {files}, {size}"))]);
        }
        if self.removed.is_empty()
            && containers == 0
            && snapshots.snapshots == 0
            && self.freed == FreedContent::default()
        {
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
