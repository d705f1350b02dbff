//! `skillbox profiles`: what the sandbox allows, and what it would do.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use skillbox_model::{Diagnostic, ErrorBody, ErrorCode, ExitCode, Layer, LayerState};
use skillbox_sandbox::{
    Access, Backing, Bind, BindKind, HostFacts, Job, LaunchPlan, Need, Ownership, Profile, Profiles, SpawnerOptions,
    Unconfined, Workspace,
};

use super::{Answer, Context, show};
use crate::engine;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone, plural};

/// List, show and check sandbox profiles, or print what one would do
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox profiles list",
    "skillbox profiles show strict",
    "skillbox profiles check my-profile.yaml",
    "skillbox profiles plan default            every step, in order, without taking one",
))]
pub struct ProfilesArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Every profile
    List,
    /// One profile, resolved
    Show {
        /// The profile
        name: String,
    },
    /// Whether a file is a good profile
    Check {
        /// The file
        file: PathBuf,
    },
    /// What would be applied on this host, step by step
    Plan {
        /// The profile
        name: String,
    },
}

#[derive(Serialize)]
struct Listing<'a> {
    profiles: Vec<&'a Profile>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Shown<'a>(&'a Profile);

#[derive(Serialize)]
struct Checked {
    valid: bool,
    diagnostics: Vec<Diagnostic>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Planned(LaunchPlan);

pub fn run(args: &ProfilesArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let (profiles, _) = engine::profiles(context, terminal)?;
    match &args.verb {
        Verb::List => show(
            &Listing {
                profiles: profiles.iter().collect(),
            },
            context,
            terminal,
        ),
        Verb::Show { name } => show(&Shown(find(&profiles, name)?), context, terminal),
        Verb::Check { file } => show(&check(&profiles, file)?, context, terminal),
        Verb::Plan { name } => show(&Planned(plan(&profiles, find(&profiles, name)?)?), context, terminal),
    }
}

fn find<'a>(profiles: &'a Profiles, name: &str) -> Result<&'a Profile, Failure> {
    profiles.get(name).ok_or_else(|| {
        let known: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        Failure::new(ErrorCode::ProfileUnknown, format!("no profile is named {name:?}"))
            .hint(format!("known are {}", known.join(", ")))
    })
}

fn check(profiles: &Profiles, file: &PathBuf) -> Result<Checked, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::new(
            ErrorCode::ProfileInvalid,
            format!("cannot read {}: {error}", file.display()),
        )
    })?;
    let diagnostics = profiles.check(file, &text).err().unwrap_or_default();
    Ok(Checked {
        valid: diagnostics.is_empty(),
        diagnostics,
    })
}

/// The plan of a small run: what a real one adds is its own skill, inputs and command.
fn plan(profiles: &Profiles, profile: &Profile) -> Result<LaunchPlan, Failure> {
    let facts = HostFacts::gather(&SpawnerOptions::default()).with_paths_of(profiles.iter());
    let shows_own_root = profile.need(Layer::MountNamespace) != Need::Off;
    let job = Job {
        argv: ["bash", "-c", "COMMAND"].map(Into::into).to_vec(),
        env: profile.environment(|_| None),
        cwd: "/workspace/skills/SKILL".to_owned(),
        workspace: match profile.workspace.backing {
            Backing::Tmpfs => Workspace::Tmpfs,
            Backing::Disk => Workspace::Directory {
                quota: LayerState::Partial {
                    reason: "looked at while the run writes".to_owned(),
                },
            },
        },
        workspace_target: "/workspace".to_owned(),
        binds: Vec::from_iter(shows_own_root.then(|| Bind {
            target: "/workspace/skills/SKILL".to_owned(),
            kind: BindKind::Directory,
            access: Access::ReadOnly,
            owner: Ownership::Kept,
        })),
        unconfined: Unconfined::Allow,
    };
    skillbox_sandbox::plan(profile, &profile.limits.default, &facts, &job).map_err(|error| {
        let mut body = ErrorBody::new(error.code(), error.to_string());
        body.hint = error.hint().or(body.hint);
        Failure::from_body(body)
    })
}

impl Answer for Listing<'_> {
    fn render(&self, page: &mut Page) {
        for profile in &self.profiles {
            page.beside(
                0,
                Span::new(Tone::Name, profile.name.as_str()),
                14,
                Tone::Plain,
                &profile.description,
            );
        }
    }
}

impl Answer for Shown<'_> {
    fn render(&self, page: &mut Page) {
        let profile = self.0;
        page.line(&[Span::new(Tone::Name, profile.name.as_str())]);
        page.paragraph(2, Tone::Plain, &profile.description);
        page.heading("layers");
        for layer in Layer::ALL {
            let (tone, word) = match profile.need(layer) {
                Need::Required => (Tone::Good, "required"),
                Need::Preferred => (Tone::Warning, "preferred"),
                Need::Off => (Tone::Dim, "off"),
            };
            page.beside(2, Span::plain(layer.as_str()), 24, tone, word);
        }
        page.heading("limits");
        let limits = &profile.limits.default;
        for (label, value) in [
            (
                "wall",
                format!(
                    "{} s, at most {} s",
                    limits.wall.as_secs(),
                    profile.limits.wall_max.as_secs()
                ),
            ),
            ("cpu", format!("{} s", limits.cpu.as_secs())),
            ("memory", limits.memory.to_string()),
            ("pids", limits.pids.to_string()),
            ("open files", limits.open_files.to_string()),
            ("file", limits.file.to_string()),
            (
                "workspace",
                format!("{}, {} inodes", limits.workspace, limits.workspace_inodes),
            ),
            ("output", format!("{} kept of each stream", limits.output)),
        ] {
            page.beside(2, Span::plain(label), 24, Tone::Plain, &value);
        }
        page.heading("visible of the host, read-only");
        for path in &profile.filesystem.visible {
            page.beside(2, Span::plain(&path.path), 32, Tone::Dim, &path.reason);
        }
        page.heading("system calls");
        page.paragraph(
            2,
            Tone::Plain,
            &format!(
                "{} named; all others do not exist",
                plural(profile.syscalls.rules().len(), "rule")
            ),
        );
    }
}

impl Answer for Checked {
    fn render(&self, page: &mut Page) {
        if self.valid {
            page.line(&[Span::new(Tone::Good, "valid")]);
        }
    }

    fn findings(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    fn exit_code(&self) -> u8 {
        if self.valid { ExitCode::OK } else { ExitCode::BAD }
    }
}

impl Answer for Planned {
    fn render(&self, page: &mut Page) {
        for line in self.0.to_string().lines() {
            page.line(&[Span::plain(line)]);
        }
    }
}
