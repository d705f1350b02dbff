//! `skillbox doctor`: what this host can enforce, found by doing it.

use clap::Args;
use serde::Serialize;
use skillbox_executor::LocalExecutor;
use skillbox_executor::docker::DaemonFindings;
use skillbox_model::{Enforcement, ErrorBody, ExitCode, Layer, LayerState, Tier, with_causes};
use skillbox_sandbox::{Availability, HostFacts, Profiles, SpawnerOptions};

use super::{Answer, Context};
use crate::engine;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone};
use crate::settings::HostFlags;

/// Tell what this host can enforce, layer by layer, why not, and the fix
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox doctor",
    "skillbox doctor --json | jq .tier",
))]
pub struct DoctorArgs {}

/// What was found.
#[derive(Serialize)]
pub struct Findings {
    tier: Tier,
    kernel: String,
    /// Whether skillbox was started with the rights of root.
    privileged: bool,
    /// The script's user on the host.
    script_uid: u32,
    /// The layers of a real launch under the default profile.
    layers: Option<Enforcement>,
    missing: Vec<Missing>,
    profiles: Vec<Trial>,
    docker: Docker,
}

/// The Docker daemon, or why there is none.
#[derive(Serialize)]
#[serde(untagged)]
enum Docker {
    Found(Box<DaemonFindings>),
    Missing { error: ErrorBody },
}

/// Something that the host does not give.
#[derive(Serialize)]
struct Missing {
    what: &'static str,
    reason: String,
    fix: String,
}

/// A profile that was tried.
#[derive(Serialize)]
struct Trial {
    name: String,
    runs: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
}

const DEFAULT: &str = "default";

pub fn run(_: &DoctorArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<Findings, Failure> {
    let spawner = engine::spawner(SpawnerOptions::default())?;
    let (profiles, _) = engine::profiles(context, terminal)?;
    let executor = engine::local(spawner, &profiles, false)?;
    let (host, _) = HostFlags::default().resolve(context.layers)?;
    let docker = match engine::docker(context, &host, 0).examine() {
        Ok(found) => Docker::Found(Box::new(found)),
        Err(error) => {
            let mut body = ErrorBody::new(error.code(), with_causes(&error));
            body.hint = error.hint().or(body.hint);
            Docker::Missing { error: body }
        }
    };
    Ok(examine(&executor, &profiles, docker))
}

fn examine(executor: &LocalExecutor, profiles: &Profiles, docker: Docker) -> Findings {
    let facts = executor.facts();
    let mut layers = None;
    let mut trials = Vec::new();
    // A profile that isolates nothing proves nothing.
    for profile in profiles.iter().filter(|profile| !profile.is_unconfined()) {
        let tried = executor.trial(profile);
        let error = tried.as_ref().err().map(|error| {
            let mut body = ErrorBody::new(error.code(), with_causes(error));
            body.hint = error.hint().or(body.hint);
            body
        });
        trials.push(Trial {
            name: profile.name.to_string(),
            runs: tried.is_ok(),
            error,
        });
        if profile.name.as_str() == DEFAULT {
            layers = tried.ok();
        }
    }
    Findings {
        tier: layers.as_ref().map_or(facts.tier(), |layers| layers.tier),
        kernel: facts.kernel.clone(),
        privileged: facts.privileged,
        script_uid: facts.script.uid,
        layers,
        missing: missing(facts),
        profiles: trials,
        docker,
    }
}

fn missing(facts: &HostFacts) -> Vec<Missing> {
    let cgroup = &facts.cgroup;
    let asked = [
        ("namespaces", &facts.namespaces),
        ("a fresh /proc", &facts.proc),
        ("system call filters", &facts.seccomp),
        ("memory limits", &cgroup.memory),
        ("swap limits", &cgroup.swap),
        ("limits of processes", &cgroup.pids),
        ("CPU bandwidth limits", &cgroup.cpu_quota),
        ("CPU time counts", &cgroup.cpu_time),
    ];
    let missing = asked.into_iter().filter_map(|(what, availability)| match availability {
        Availability::Available => None,
        Availability::Missing { reason, fix } => Some(Missing {
            what,
            reason: reason.clone(),
            fix: fix.clone(),
        }),
    });
    missing.collect()
}

impl Answer for Findings {
    fn render(&self, page: &mut Page) {
        let user = if self.privileged {
            format!("root; scripts run as the unprivileged user {}", self.script_uid)
        } else {
            format!(
                "user {}; scripts run as the same, with nothing of its rights",
                self.script_uid
            )
        };
        page.beside(0, Span::new(Tone::Dim, "tier"), 12, Tone::Plain, tier_text(self.tier));
        page.beside(0, Span::new(Tone::Dim, "kernel"), 12, Tone::Plain, &self.kernel);
        page.beside(0, Span::new(Tone::Dim, "started by"), 12, Tone::Plain, &user);
        page.heading("layers, as a run of the profile `default` really had them");
        match &self.layers {
            None => page.paragraph(2, Tone::Bad, "no run was possible; see below"),
            Some(layers) => {
                for layer in Layer::ALL {
                    let (tone, text) = state(layers.layers.get(&layer));
                    page.beside(2, Span::plain(layer.as_str()), 24, tone, &text);
                }
            }
        }
        page.heading("profiles");
        for trial in &self.profiles {
            let (tone, text) = match &trial.error {
                None => (Tone::Good, "runs".to_owned()),
                Some(error) => (Tone::Bad, format!("refused: {}", error.message)),
            };
            page.beside(2, Span::plain(&trial.name), 24, tone, &text);
        }
        page.heading("Docker");
        self.docker.render(page);
        if !self.missing.is_empty() {
            page.heading("what is missing, and the fix");
        }
        for missing in &self.missing {
            page.beside(2, Span::plain(missing.what), 24, Tone::Plain, &missing.reason);
            page.beside(2, Span::plain(""), 24, Tone::Hint, &missing.fix);
        }
    }

    fn exit_code(&self) -> u8 {
        let default_runs = self.profiles.iter().any(|trial| trial.name == DEFAULT && trial.runs);
        if default_runs { ExitCode::OK } else { ExitCode::BAD }
    }
}

impl Docker {
    fn render(&self, page: &mut Page) {
        let found = match self {
            Self::Found(found) => found,
            Self::Missing { error } => {
                page.beside(2, Span::plain("daemon"), 24, Tone::Warning, &error.message);
                let hint = error.hint.as_deref().unwrap_or_default();
                page.beside(2, Span::plain(""), 24, Tone::Hint, hint);
                return;
            }
        };
        let daemon = format!("{} at {}, API {}", found.version, found.host, found.api);
        page.beside(2, Span::plain("daemon"), 24, Tone::Good, &daemon);
        let name = &found.image.name;
        match &found.image.id {
            Some(id) => page.beside(2, Span::plain("image"), 24, Tone::Good, &format!("{name}, {id}")),
            None => {
                page.beside(2, Span::plain("image"), 24, Tone::Bad, &format!("{name} is missing"));
                page.beside(2, Span::plain(""), 24, Tone::Hint, "run `skillbox docker build-runner`");
            }
        }
        page.beside(
            2,
            Span::plain("control groups"),
            24,
            Tone::Plain,
            &format!("version {}", found.cgroup_version),
        );
        let facts = [
            (
                "system call filters",
                found.seccomp,
                "missing: runs are refused; use a daemon built with seccomp",
            ),
            (
                "memory limits",
                found.memory_limit,
                "missing: mount the `memory` control group",
            ),
            (
                "swap limits",
                found.swap_limit,
                "missing: boot with `swapaccount=1`, or without swap",
            ),
            (
                "limits of processes",
                found.pids_limit,
                "missing: mount the `pids` control group",
            ),
        ];
        for (name, has, otherwise) in facts {
            let (tone, text) = if has {
                (Tone::Good, "yes")
            } else {
                (Tone::Warning, otherwise)
            };
            page.beside(2, Span::plain(name), 24, tone, text);
        }
        let ids = match (found.rootless, found.maps_ids) {
            (true, _) => (Tone::Good, "mapped: the daemon is rootless"),
            (false, true) => (Tone::Good, "mapped"),
            (false, false) => (
                Tone::Warning,
                "not mapped: `userns-remap` or a rootless daemon would; the profile `strict` needs it",
            ),
        };
        page.beside(2, Span::plain("user ids"), 24, ids.0, ids.1);
    }
}

fn tier_text(tier: Tier) -> &'static str {
    match tier {
        Tier::T0 => "T0: every layer",
        Tier::T1 => "T1: no control groups; limits per process and a watchdog",
        Tier::T2 => "T2: no fresh /proc; runs have none",
        Tier::T3 => "T3: no namespaces; Landlock, system call filter and limits only",
        Tier::T4 => "T4: nothing",
    }
}

/// A layer's state in a word, with its reason.
pub fn state(state: Option<&LayerState>) -> (Tone, String) {
    match state {
        Some(LayerState::Enforced) => (Tone::Good, "enforced".to_owned()),
        Some(LayerState::Partial { reason }) => (Tone::Warning, format!("partial: {reason}")),
        Some(LayerState::Absent { reason }) => (Tone::Bad, format!("absent: {reason}")),
        Some(LayerState::NotRequested) | None => (Tone::Dim, "not requested".to_owned()),
    }
}
