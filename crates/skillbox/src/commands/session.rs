//! `skillbox session`: what is kept between runs.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;
use skillbox_artifacts::Freed;
use skillbox_model::{ByteSize, ErrorCode, ExecutorKind, SessionId, SkillName};
use skillbox_runtime::session::SessionRecord;
use skillbox_runtime::{AgentName, DocSelection, LoadMode, RunError, Runtime};

use super::{Answer, Context, show};
use crate::engine;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone, plural};
use crate::settings::HostFlags;

/// List, show and remove stored sessions and their workspaces
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox session list",
    "skillbox session show s1 --json",
    "skillbox session gc --idle 3600           remove what was not used for an hour",
))]
pub struct SessionArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Every stored session
    List,
    /// One session: its runs, and what its agents have loaded
    Show {
        /// The session
        id: String,
    },
    /// Remove a session with its workspace and artifacts
    Rm {
        /// The session
        id: String,
    },
    /// Remove sessions that were not used for long, content that no artifact has, and what interrupted runs left
    Gc {
        /// Seconds without use after which a session is removed
        #[arg(long, value_name = "SECONDS", default_value_t = 7 * 24 * 3600)]
        idle: u64,
    },
}

#[derive(Serialize)]
struct Listing {
    sessions: Vec<SessionRecord>,
}

/// One session with what its agents have loaded.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    record: SessionRecord,
    loaded: Vec<Loaded>,
    disabled: Vec<SkillName>,
}

#[derive(Serialize)]
struct Loaded {
    agent: AgentName,
    skill: SkillName,
    mode: LoadMode,
    /// Paths of documents, or `*` for all of them.
    docs: DocSelection,
}

#[derive(Serialize)]
struct Removed {
    removed: Vec<SessionId>,
    /// Content that no artifact has any more.
    freed: Freed,
    /// Containers that ended runs had left.
    #[serde(skip_serializing_if = "Option::is_none")]
    containers: Option<usize>,
}

pub fn run(args: &SessionArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let (host, _) = HostFlags::default().resolve(context.layers)?;
    let runtime = engine::open(context, &host, &[], None, terminal)?;
    match &args.verb {
        Verb::List => show(
            &Listing {
                sessions: told(runtime.sessions().list())?,
            },
            context,
            terminal,
        ),
        Verb::Show { id } => show(&one(&runtime, id)?, context, terminal),
        Verb::Rm { id } => {
            let id = parse(id)?;
            let freed = told(runtime.remove_session(&id))?;
            let removed = Removed {
                removed: vec![id],
                freed,
                containers: None,
            };
            show(&removed, context, terminal)
        }
        Verb::Gc { idle } => {
            let garbage = told(runtime.collect_garbage(Duration::from_secs(*idle)))?;
            let containers = match (runtime.sweep_containers(), host.executor) {
                (Ok(count), _) => Some(count),
                // A host that does not use Docker need not have it.
                (Err(_), ExecutorKind::Local) => None,
                (Err(error), ExecutorKind::Docker) => return Err(Failure::from_body(error.body())),
            };
            let removed = Removed {
                removed: garbage.sessions,
                freed: garbage.artifacts,
                containers,
            };
            show(&removed, context, terminal)
        }
    }
}

fn one(runtime: &Runtime, id: &str) -> Result<Shown, Failure> {
    let id = parse(id)?;
    let record = told(runtime.sessions().open(&id).and_then(|session| session.record()))?;
    let state = told(runtime.session_state(&id))?;
    let mut all = Vec::new();
    for agent in state.agents() {
        all.extend(state.loaded(agent).map(|loaded| Loaded {
            agent: agent.clone(),
            skill: loaded.skill.clone(),
            mode: loaded.mode,
            docs: state.docs(agent, &loaded.skill).cloned().unwrap_or_default(),
        }));
    }
    Ok(Shown {
        record,
        loaded: all,
        disabled: state.disabled().iter().cloned().collect(),
    })
}

fn parse(id: &str) -> Result<SessionId, Failure> {
    SessionId::parse(id).map_err(|error| Failure::from_error(ErrorCode::SessionUnknown, &error))
}

fn told<T>(result: Result<T, impl Into<RunError>>) -> Result<T, Failure> {
    result.map_err(|error| Failure::from_body(error.into().body()))
}

impl Answer for Listing {
    fn render(&self, page: &mut Page) {
        if self.sessions.is_empty() {
            page.line(&[Span::plain("no sessions are stored")]);
            page.paragraph(0, Tone::Dim, "`skillbox run SKILL --session ID -- …` makes one");
        }
        for session in &self.sessions {
            session.render(page);
        }
    }
}

impl Answer for SessionRecord {
    fn render(&self, page: &mut Page) {
        let idle = self.idle().as_secs();
        let text = format!(
            "{}, last used {} ago",
            plural(usize::try_from(self.runs).unwrap_or(usize::MAX), "run"),
            duration(idle)
        );
        page.beside(0, Span::new(Tone::Name, self.id.as_str()), 24, Tone::Plain, &text);
    }
}

impl Answer for Shown {
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
            let stays = match loaded.mode {
                LoadMode::Session => "",
                LoadMode::Turn => " for this turn",
                LoadMode::Once => " for one prompt",
            };
            let whose = if loaded.agent == AgentName::default() {
                String::new()
            } else {
                format!(" by {}", loaded.agent)
            };
            let text = format!("loaded{whose}{stays}{docs}");
            page.beside(2, Span::new(Tone::Name, loaded.skill.as_str()), 24, Tone::Plain, &text);
        }
        for skill in &self.disabled {
            page.beside(2, Span::new(Tone::Name, skill.as_str()), 24, Tone::Dim, "disabled");
        }
    }
}

impl Answer for Removed {
    fn render(&self, page: &mut Page) {
        for id in &self.removed {
            page.line(&[Span::plain("removed "), Span::new(Tone::Name, id.as_str())]);
        }
        let containers = self.containers.unwrap_or(0);
        if containers > 0 {
            page.line(&[Span::plain(format!("removed {}", plural(containers, "container")))]);
        }
        if self.freed != Freed::default() {
            let (contents, size) = (plural(self.freed.contents, "stored file"), ByteSize(self.freed.bytes));
            page.line(&[Span::plain(format!("freed {contents}, {size}"))]);
        }
        if self.removed.is_empty() && containers == 0 && self.freed == Freed::default() {
            page.line(&[Span::plain("nothing to remove")]);
        }
    }
}

/// A length of time, to the unit that matters.
fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => plural(usize::try_from(seconds / 86_400).unwrap_or(usize::MAX), "day"),
    }
}
