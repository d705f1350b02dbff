//! Decides whether this host can enforce each layer.

use std::collections::BTreeMap;

use skillbox_model::{Enforcement, Layer, LayerState, Tier};

use super::error::PlanError;
use super::job::{Job, WorkspaceSource};
use super::op::{Op, RunOp, SpawnOp};
use super::step::Step;
use crate::host::{Availability, HostFacts};
use crate::profile::{Need, Profile};

/// How far this host can enforce a layer.
struct LayerSupport {
    state: LayerState,
    /// How to make the layer fully available; empty if it is already.
    fix: String,
}

/// The state of every layer, or an error for the first required layer that is not fully available.
pub(super) fn assess_layers(profile: &Profile, facts: &HostFacts, job: &Job) -> Result<Enforcement, PlanError> {
    let mut layers = BTreeMap::new();
    for layer in Layer::ALL {
        let state = match profile.need(layer) {
            Need::Off => LayerState::NotRequested,
            need => {
                let support = layer_support(layer, profile, facts, job);
                if need == Need::Required {
                    check_required(profile, layer, &support)?;
                }
                support.state
            }
        };
        layers.insert(layer, state);
    }
    let tier = if profile.is_unconfined() {
        Tier::T4
    } else {
        facts.tier()
    };
    Ok(Enforcement { tier, layers })
}

fn check_required(profile: &Profile, layer: Layer, support: &LayerSupport) -> Result<(), PlanError> {
    match &support.state {
        LayerState::Enforced | LayerState::NotRequested => Ok(()),
        LayerState::Partial { reason } | LayerState::Absent { reason } => Err(PlanError::LayerUnavailable {
            profile: profile.name.clone(),
            layer,
            reason: reason.clone(),
            fix: support.fix.clone(),
        }),
    }
}

fn layer_support(layer: Layer, profile: &Profile, facts: &HostFacts, job: &Job) -> LayerSupport {
    let enforced = || LayerSupport {
        state: LayerState::Enforced,
        fix: String::new(),
    };
    let partial = |reason: &str, fix: &str| LayerSupport {
        state: LayerState::Partial { reason: reason.into() },
        fix: fix.into(),
    };
    let landlock = |needed: u8, since: &str| {
        if facts.landlock_abi >= needed {
            return enforced();
        }
        let reason = match facts.landlock_abi {
            0 => format!("the kernel {} has no Landlock, or it is not enabled", facts.kernel),
            abi => format!(
                "the kernel {} has Landlock ABI {abi}, and this layer needs ABI {needed}",
                facts.kernel
            ),
        };
        let fix = format!("boot Linux {since} or later with `landlock` in the `lsm=` list");
        LayerSupport {
            state: LayerState::Absent { reason },
            fix,
        }
    };
    match layer {
        Layer::UserNamespace
        | Layer::MountNamespace
        | Layer::PidNamespace
        | Layer::NetworkNamespace
        | Layer::IpcNamespace
        | Layer::UtsNamespace
        | Layer::CgroupNamespace => support_of(&facts.namespaces),
        Layer::Proc => match &facts.namespaces {
            Availability::Available => support_of(&facts.proc),
            missing => support_of(missing),
        },
        Layer::LandlockFiles if matches!(facts.landlock_abi, 1..=2) => partial(
            "Landlock before ABI 3 does not restrict truncation; the mounts do",
            "boot Linux 6.2 or later",
        ),
        Layer::LandlockFiles => landlock(1, "5.13"),
        Layer::LandlockNetwork => landlock(4, "6.7"),
        Layer::LandlockScope => landlock(6, "6.12"),
        Layer::Seccomp => support_of(&facts.seccomp),
        Layer::Capabilities | Layer::NoNewPrivileges | Layer::ResourceLimits | Layer::WallClock => enforced(),
        Layer::Memory => match (&facts.cgroup.memory, &facts.cgroup.swap) {
            (Availability::Available, Availability::Missing { reason, fix }) => partial(reason, fix),
            (memory, _) => support_of(memory),
        },
        Layer::Pids => match &facts.cgroup.pids {
            Availability::Available => enforced(),
            // The kernel counts processes per user namespace, so a resource limit applies to this run only.
            Availability::Missing { .. } if has_user_namespace(profile, facts) => enforced(),
            Availability::Missing { reason, fix } => {
                partial(&format!("{reason}; processes are counted per user of the host"), fix)
            }
        },
        Layer::Cpu => match &facts.cgroup.cpu_time {
            Availability::Available => enforced(),
            Availability::Missing { reason, fix } => partial(
                &format!("{reason}; the CPU time of its processes is sampled instead"),
                fix,
            ),
        },
        Layer::WorkspaceQuota => match &job.workspace {
            WorkspaceSource::Tmpfs | WorkspaceSource::Image => enforced(),
            WorkspaceSource::LargerImage { quota } => LayerSupport {
                state: quota.clone(),
                fix: "use a new session".to_owned(),
            },
            WorkspaceSource::Directory { quota } => LayerSupport {
                state: quota.clone(),
                fix: "use a workspace in memory".to_owned(),
            },
        },
    }
}

fn support_of(availability: &Availability) -> LayerSupport {
    match availability {
        Availability::Available => LayerSupport {
            state: LayerState::Enforced,
            fix: String::new(),
        },
        Availability::Missing { reason, fix } => LayerSupport {
            state: LayerState::Absent { reason: reason.clone() },
            fix: fix.clone(),
        },
    }
}

fn has_user_namespace(profile: &Profile, facts: &HostFacts) -> bool {
    profile.need(Layer::UserNamespace) != Need::Off && facts.namespaces.is_available()
}

/// Updates the enforcement record after a preferred step failed.
pub(crate) fn record_failed_step(enforcement: &mut Enforcement, step: &Step, reason: &str) {
    let has_user_namespace = enforcement.layers.get(&Layer::UserNamespace) == Some(&LayerState::Enforced);
    for layer in &step.layers {
        let state = match (layer, &step.op) {
            // The resource limit inside the user namespace still applies.
            (Layer::Pids, Op::Spawn(SpawnOp::CreateCgroup(_)) | Op::Run(RunOp::EnterCgroup)) if has_user_namespace => {
                continue;
            }
            (Layer::Cpu, _) => LayerState::Partial {
                reason: format!("{reason}; the CPU time of its processes is sampled instead"),
            },
            _ => LayerState::Absent {
                reason: reason.to_owned(),
            },
        };
        enforcement.layers.insert(*layer, state);
    }
}
