//! `skillbox doctor`: checks what this host can enforce by trying it.

use clap::Args;
use serde::Serialize;
use skillbox_executor::LocalExecutor;
use skillbox_executor::docker::DaemonFindings;
use skillbox_model::{Enforcement, ErrorBody, ExitCode, Layer, LayerState, SecretName, Tier, with_causes};
use skillbox_sandbox::{Availability, HostFacts, Profiles, SpawnerOptions};

use super::audit_forward::{self, ReceiverStatus};
use super::output::CommandOutput;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone};
use crate::runtime_setup;
use crate::settings::HostFlags;
use crate::trust_setup::open_trust;

/// Check what this host can enforce, and suggest fixes
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox doctor",
    "skillbox doctor --json | jq .tier",
))]
pub struct DoctorArgs {}

/// The result of all checks.
#[derive(Serialize)]
pub struct HostReport {
    tier: Tier,
    kernel: String,
    /// Whether skillbox runs as root.
    privileged: bool,
    /// The user ID of scripts on the host.
    script_uid: u32,
    /// The layers of a trial launch with the default profile.
    layers: Option<Enforcement>,
    missing: Vec<MissingFeature>,
    profiles: Vec<ProfileTrial>,
    docker: DockerStatus,
    /// The receiver of audit records, if one is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_forward: Option<ReceiverStatus>,
    /// The names of the configured secrets; `skillbox secrets check` reads their sources.
    secrets: Vec<SecretName>,
}

/// The Docker daemon, or why it cannot be used.
#[derive(Serialize)]
#[serde(untagged)]
enum DockerStatus {
    Found(Box<DaemonFindings>),
    Missing { error: ErrorBody },
}

/// A feature that the host lacks.
#[derive(Serialize)]
struct MissingFeature {
    what: &'static str,
    reason: String,
    fix: String,
}

/// The trial launch of a profile.
#[derive(Serialize)]
struct ProfileTrial {
    name: String,
    #[serde(rename = "runs")]
    is_usable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
}

const DEFAULT_PROFILE: &str = "default";

pub fn run(_: &DoctorArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<HostReport, Failure> {
    let spawner = runtime_setup::fork_spawner(SpawnerOptions::default())?;
    let profiles = runtime_setup::load_profiles(context, terminal)?.usable;
    let executor = runtime_setup::local_executor(spawner, &profiles, false)?;
    let (host, _) = HostFlags::default().resolve(context.layers)?;
    let docker = match runtime_setup::docker_executor(context, &host, 0, Vec::new()).describe_daemon() {
        Ok(found) => DockerStatus::Found(Box::new(found)),
        Err(error) => {
            let mut body = ErrorBody::new(error.code(), with_causes(&error));
            body.hint = error.hint().or(body.hint);
            DockerStatus::Missing { error: body }
        }
    };
    let mut report = check_host(&executor, &profiles, docker);
    report.audit_forward = audit_forward::find_status(context, &open_trust(context)?)?;
    report.secrets = context.layers.secrets().into_keys().collect();
    Ok(report)
}

fn check_host(executor: &LocalExecutor, profiles: &Profiles, docker: DockerStatus) -> HostReport {
    let facts = executor.facts();
    let mut layers = None;
    let mut trials = Vec::new();
    // A trial of an unconfined profile would prove nothing.
    for profile in profiles.iter().filter(|profile| !profile.is_unconfined()) {
        let trial = executor.probe_profile(profile);
        let error = trial.as_ref().err().map(|error| {
            let mut body = ErrorBody::new(error.code(), with_causes(error));
            body.hint = error.hint().or(body.hint);
            body
        });
        trials.push(ProfileTrial {
            name: profile.name.to_string(),
            is_usable: trial.is_ok(),
            error,
        });
        if profile.name.as_str() == DEFAULT_PROFILE {
            layers = trial.ok();
        }
    }
    HostReport {
        tier: layers.as_ref().map_or(facts.tier(), |layers| layers.tier),
        kernel: facts.kernel.clone(),
        privileged: facts.privileged,
        script_uid: facts.script_ids.uid,
        layers,
        missing: missing_features(facts),
        profiles: trials,
        docker,
        audit_forward: None,
        secrets: Vec::new(),
    }
}

fn missing_features(facts: &HostFacts) -> Vec<MissingFeature> {
    let cgroup = &facts.cgroup;
    let features = [
        ("namespaces", &facts.namespaces),
        ("private /proc", &facts.proc),
        ("system call filters", &facts.seccomp),
        ("memory limits", &cgroup.memory),
        ("swap limits", &cgroup.swap),
        ("process limits", &cgroup.pids),
        ("CPU bandwidth limits", &cgroup.cpu_quota),
        ("CPU time counts", &cgroup.cpu_time),
    ];
    let missing = features
        .into_iter()
        .filter_map(|(what, availability)| match availability {
            Availability::Available => None,
            Availability::Missing { reason, fix } => Some(MissingFeature {
                what,
                reason: reason.clone(),
                fix: fix.clone(),
            }),
        });
    missing.collect()
}

impl CommandOutput for HostReport {
    fn render(&self, page: &mut Page) {
        let user = if self.privileged {
            format!("root; scripts run as unprivileged user {}", self.script_uid)
        } else {
            format!(
                "user {}; scripts run as the same user, without its privileges",
                self.script_uid
            )
        };
        page.labelled(0, Span::new(Tone::Dim, "tier"), 12, Tone::Plain, tier_text(self.tier));
        page.labelled(0, Span::new(Tone::Dim, "kernel"), 12, Tone::Plain, &self.kernel);
        page.labelled(0, Span::new(Tone::Dim, "user"), 12, Tone::Plain, &user);
        page.heading("layers of a trial run with the profile `default`");
        match &self.layers {
            None => page.paragraph(2, Tone::Bad, "the trial run failed; see below"),
            Some(layers) => {
                for layer in Layer::ALL {
                    let (tone, text) = layer_state_text(layers.layers.get(&layer));
                    page.labelled(2, Span::plain(layer.as_str()), 24, tone, &text);
                }
            }
        }
        page.heading("profiles");
        for trial in &self.profiles {
            let (tone, text) = match &trial.error {
                None => (Tone::Good, "usable".to_owned()),
                Some(error) => (Tone::Bad, format!("refused: {}", error.message)),
            };
            page.labelled(2, Span::plain(&trial.name), 24, tone, &text);
        }
        page.heading("Docker");
        self.docker.render(page);
        if let Some(status) = &self.audit_forward {
            page.heading("forwarding of audit records");
            status.render_at(page, 2, 24);
        }
        if !self.secrets.is_empty() {
            page.heading("secrets");
            let names: Vec<&str> = self.secrets.iter().map(SecretName::as_str).collect();
            page.labelled(2, Span::plain("configured"), 24, Tone::Plain, &names.join(", "));
        }
        if !self.missing.is_empty() {
            page.heading("missing features and fixes");
        }
        for missing in &self.missing {
            page.labelled(2, Span::plain(missing.what), 24, Tone::Plain, &missing.reason);
            page.labelled(2, Span::plain(""), 24, Tone::Hint, &missing.fix);
        }
    }

    fn exit_code(&self) -> u8 {
        let is_default_usable = self
            .profiles
            .iter()
            .any(|trial| trial.name == DEFAULT_PROFILE && trial.is_usable);
        if is_default_usable {
            ExitCode::OK
        } else {
            ExitCode::FAILURE
        }
    }
}

impl DockerStatus {
    fn render(&self, page: &mut Page) {
        let found = match self {
            Self::Found(found) => found,
            Self::Missing { error } => {
                page.labelled(2, Span::plain("daemon"), 24, Tone::Warning, &error.message);
                let hint = error.hint.as_deref().unwrap_or_default();
                page.labelled(2, Span::plain(""), 24, Tone::Hint, hint);
                return;
            }
        };
        let daemon = format!("{} at {}, API {}", found.version, found.host, found.api);
        page.labelled(2, Span::plain("daemon"), 24, Tone::Good, &daemon);
        let name = &found.image.name;
        match &found.image.id {
            Some(id) => page.labelled(2, Span::plain("image"), 24, Tone::Good, &format!("{name}, {id}")),
            None => {
                page.labelled(2, Span::plain("image"), 24, Tone::Bad, &format!("{name} is missing"));
                page.labelled(2, Span::plain(""), 24, Tone::Hint, "run `skillbox docker build-runner`");
            }
        }
        page.labelled(
            2,
            Span::plain("control groups"),
            24,
            Tone::Plain,
            &format!("version {}", found.cgroup_version),
        );
        let features = [
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
                "process limits",
                found.pids_limit,
                "missing: mount the `pids` control group",
            ),
        ];
        for (name, is_available, advice) in features {
            let (tone, text) = if is_available {
                (Tone::Good, "yes")
            } else {
                (Tone::Warning, advice)
            };
            page.labelled(2, Span::plain(name), 24, tone, text);
        }
        let ids = match (found.rootless, found.maps_ids) {
            (true, _) => (Tone::Good, "mapped: the daemon is rootless"),
            (false, true) => (Tone::Good, "mapped"),
            (false, false) => (
                Tone::Warning,
                "not mapped: enable `userns-remap` or use a rootless daemon; the profile `strict` needs it",
            ),
        };
        page.labelled(2, Span::plain("user ids"), 24, ids.0, ids.1);
    }
}

fn tier_text(tier: Tier) -> &'static str {
    match tier {
        Tier::T0 => "T0: all layers",
        Tier::T1 => "T1: no control groups; per-process limits and a watchdog instead",
        Tier::T2 => "T2: no private /proc; runs have none",
        Tier::T3 => "T3: no namespaces; only Landlock, system call filter and limits",
        Tier::T4 => "T4: no isolation",
    }
}

/// The state of a layer, with its reason.
pub fn layer_state_text(state: Option<&LayerState>) -> (Tone, String) {
    match state {
        Some(LayerState::Enforced) => (Tone::Good, "enforced".to_owned()),
        Some(LayerState::Partial { reason }) => (Tone::Warning, format!("partial: {reason}")),
        Some(LayerState::Absent { reason }) => (Tone::Bad, format!("absent: {reason}")),
        Some(LayerState::NotRequested) | None => (Tone::Dim, "not requested".to_owned()),
    }
}
