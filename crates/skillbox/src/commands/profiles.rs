//! `skillbox profiles`: sandbox profiles and their launch plans.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use skillbox_executor::NetworkAccess;
use skillbox_model::{Diagnostic, ErrorBody, ErrorCode, ExitCode, HostPort, Layer, LayerState, RequestRule};
use skillbox_sandbox::{
    AllowedHost, Bind, BindAccess, BindKind, BindOwner, HostFacts, Job, LaunchPlan, Need, NetworkPolicy, Profile,
    Profiles, SkillDirAccess, SpawnerOptions, UnconfinedPolicy, WorkspaceBacking, WorkspaceSource, WritableSkill,
};

use super::output::{CommandOutput, print_output};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone, plural};
use crate::runtime_setup;
use crate::settings::HostFlags;

/// List, show, check and plan sandbox profiles
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox profiles list",
    "skillbox profiles show strict",
    "skillbox profiles check my-profile.yaml",
    "skillbox profiles plan default            print every step without applying it",
    "skillbox profiles plan network --allow-net api.example.com",
))]
pub struct ProfilesArgs {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    host: HostFlags,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List all profiles
    List,
    /// Show a profile with everything it extends
    Show {
        /// Name of the profile
        name: String,
    },
    /// Validate a profile
    Check {
        /// Profile to validate
        file: PathBuf,
    },
    /// Print the steps that a run would apply on this host
    Plan {
        /// Name of the profile
        name: String,
    },
}

#[derive(Serialize)]
struct ProfileList<'a> {
    profiles: Vec<&'a Profile>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct ProfileDetails<'a>(&'a Profile);

#[derive(Serialize)]
struct ProfileCheck {
    valid: bool,
    diagnostics: Vec<Diagnostic>,
}

#[derive(Serialize)]
struct PlanOutput {
    #[serde(flatten)]
    plan: LaunchPlan,
    /// What a run could reach; empty without a network.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reachable_hosts: Vec<AllowedHost>,
    #[serde(skip)]
    layout: PlanLayout,
}

/// How the lines of a plan are laid out.
#[derive(Clone, Copy)]
enum PlanLayout {
    /// Long lines are wrapped, for a terminal.
    Wrapped,
    /// One line for each step, for programs.
    Lines,
}

/// The column of the details of a step, behind its number and its name.
const STEP_DETAILS_COLUMN: usize = 19;

pub fn run(args: &ProfilesArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let profiles = runtime_setup::load_profiles(context, terminal)?.usable;
    match &args.verb {
        Verb::List => print_output(
            &ProfileList {
                profiles: profiles.iter().collect(),
            },
            context,
            terminal,
        ),
        Verb::Show { name } => print_output(&ProfileDetails(find(&profiles, name)?), context, terminal),
        Verb::Check { file } => print_output(&check(&profiles, file)?, context, terminal),
        Verb::Plan { name } => {
            let profile = find(&profiles, name)?;
            let reachable_hosts = reachable_hosts(profile, &args.host.resolve(context.layers)?.0.allow_net);
            let hosts = reachable_hosts
                .iter()
                .map(|allowed| allowed.host.clone().into())
                .collect();
            let access = NetworkAccess::new(hosts)
                .map_err(|error| Failure::new(ErrorCode::InvalidRequest, error.to_string()))?;
            let output = PlanOutput {
                plan: plan(&profiles, profile, &access)?,
                reachable_hosts,
                layout: if std::io::stdout().is_terminal() {
                    PlanLayout::Wrapped
                } else {
                    PlanLayout::Lines
                },
            };
            print_output(&output, context, terminal)
        }
    }
}

/// What a run could reach, and why: the hosts of its profile, and those that the settings grant.
fn reachable_hosts(profile: &Profile, granted: &[HostPort]) -> Vec<AllowedHost> {
    if profile.network != NetworkPolicy::AllowList {
        return Vec::new();
    }
    let granted = granted.iter().map(|host| AllowedHost {
        host: host.clone(),
        requests: RequestRule::default(),
        reason: "granted by the setting allow_net".to_owned(),
    });
    profile.allowed_hosts.iter().cloned().chain(granted).collect()
}

fn find<'a>(profiles: &'a Profiles, name: &str) -> Result<&'a Profile, Failure> {
    profiles.get(name).ok_or_else(|| {
        let known: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        Failure::new(ErrorCode::ProfileUnknown, format!("unknown profile {name:?}"))
            .with_hint(format!("available profiles: {}", known.join(", ")))
    })
}

fn check(profiles: &Profiles, file: &PathBuf) -> Result<ProfileCheck, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::new(
            ErrorCode::ProfileInvalid,
            format!("cannot read {}: {error}", file.display()),
        )
    })?;
    let diagnostics = profiles.check_on_this_host(file, &text).err().unwrap_or_default();
    Ok(ProfileCheck {
        valid: diagnostics.is_empty(),
        diagnostics,
    })
}

/// The plan of a run with placeholders for skill and command, and without inputs.
fn plan(profiles: &Profiles, profile: &Profile, network: &NetworkAccess) -> Result<LaunchPlan, Failure> {
    let facts = HostFacts::probe(SpawnerOptions::default().script_ids).with_profile_paths(profiles.iter());
    let has_own_root = profile.need(Layer::MountNamespace) != Need::Off;
    let is_writable = has_own_root && profile.workspace.skill_dir == SkillDirAccess::Cow;
    let writable_skill = WritableSkill::new("/workspace/skills", "SKILL").filter(|_| is_writable);
    let job = Job {
        argv: ["bash", "-c", "COMMAND"].map(Into::into).to_vec(),
        env: profile.initial_environment(|_| None),
        cwd: "/workspace/skills/SKILL".to_owned(),
        workspace: match profile.workspace.backing {
            WorkspaceBacking::Tmpfs => WorkspaceSource::Tmpfs,
            WorkspaceBacking::Disk => WorkspaceSource::Directory {
                quota: LayerState::Partial {
                    reason: "measured while the run writes".to_owned(),
                },
            },
        },
        workspace_target: "/workspace".to_owned(),
        binds: Vec::from_iter(has_own_root.then(|| Bind {
            target: "/workspace/skills/SKILL".to_owned(),
            kind: BindKind::Directory,
            access: BindAccess::ReadOnly,
            owner: match writable_skill {
                Some(_) => BindOwner::Script,
                None => BindOwner::Unchanged,
            },
        })),
        unconfined: UnconfinedPolicy::Allow,
        writable_skill,
        listening_ports: network.listening_ports(),
    };
    skillbox_sandbox::plan(profile, &profile.limits.default, &facts, &job).map_err(|error| {
        let mut body = ErrorBody::new(error.code(), error.to_string());
        body.hint = error.hint().or(body.hint);
        Failure::from_body(body)
    })
}

impl CommandOutput for ProfileList<'_> {
    fn render(&self, page: &mut Page) {
        for profile in &self.profiles {
            page.labelled(
                0,
                Span::new(Tone::Name, profile.name.as_str()),
                14,
                Tone::Plain,
                &profile.description,
            );
        }
    }
}

impl CommandOutput for ProfileDetails<'_> {
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
            page.labelled(2, Span::plain(layer.as_str()), 24, tone, word);
        }
        page.heading("limits");
        let limits = &profile.limits.default;
        for (label, value) in [
            (
                "wall",
                format!(
                    "{} s, maximum {} s",
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
            ("output", format!("{} of each stream", limits.output)),
        ] {
            page.labelled(2, Span::plain(label), 24, Tone::Plain, &value);
        }
        page.heading("host paths, read-only");
        for path in &profile.filesystem.visible {
            page.labelled(2, Span::plain(&path.path), 32, Tone::Dim, &path.reason);
        }
        page.heading("system calls");
        page.paragraph(
            2,
            Tone::Plain,
            &format!(
                "{}; all other system calls fail with ENOSYS",
                plural(profile.syscalls.rules().len(), "rule")
            ),
        );
    }
}

impl CommandOutput for ProfileCheck {
    fn render(&self, page: &mut Page) {
        if self.valid {
            page.line(&[Span::new(Tone::Good, "valid")]);
        }
    }

    fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    fn exit_code(&self) -> u8 {
        if self.valid { ExitCode::OK } else { ExitCode::FAILURE }
    }
}

impl CommandOutput for PlanOutput {
    fn render(&self, page: &mut Page) {
        for line in self.plan.to_string().lines() {
            match (self.layout, line.split_at_checked(STEP_DETAILS_COLUMN)) {
                (PlanLayout::Wrapped, Some((step, details))) if line.starts_with(' ') => {
                    page.labelled(
                        0,
                        Span::plain(step.trim_end()),
                        STEP_DETAILS_COLUMN,
                        Tone::Plain,
                        details,
                    );
                }
                (PlanLayout::Wrapped, _) if !line.starts_with(' ') => page.line(&[Span::new(Tone::Heading, line)]),
                _ => page.line(&[Span::plain(line)]),
            }
        }
        if !self.reachable_hosts.is_empty() {
            page.heading("reachable hosts");
        }
        for allowed in &self.reachable_hosts {
            let restriction = if allowed.requests.is_unrestricted() {
                String::new()
            } else {
                format!("only {}; ", allowed.requests)
            };
            let details = format!("{restriction}{}", allowed.reason);
            page.labelled(2, Span::plain(allowed.host.to_string()), 32, Tone::Dim, &details);
        }
    }
}
