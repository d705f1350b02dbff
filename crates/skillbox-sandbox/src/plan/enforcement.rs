//! What a host can enforce of what a profile asks for.

use std::collections::BTreeMap;

use skillbox_model::{Enforcement, Layer, LayerState, Tier};

use super::build::PlanError;
use super::job::{Job, Workspace};
use super::op::{LaunchPlan, Op, Step};
use crate::host::{Availability, HostFacts};
use crate::profile::{Need, Profile};

/// A layer on this host: its state when it is asked for, and the fix where it falls short.
struct Offer {
    state: LayerState,
    fix: String,
}

/// Settles every layer, or refuses the run over the first required one that falls short.
pub(super) fn settle(profile: &Profile, facts: &HostFacts, job: &Job) -> Result<Enforcement, PlanError> {
    let mut layers = BTreeMap::new();
    for layer in Layer::ALL {
        let state = match profile.need(layer) {
            Need::Off => LayerState::NotRequested,
            need => {
                let offer = offer(layer, profile, facts, job);
                if need == Need::Required {
                    refuse_gap(profile, layer, &offer)?;
                }
                offer.state
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

fn refuse_gap(profile: &Profile, layer: Layer, offer: &Offer) -> Result<(), PlanError> {
    match &offer.state {
        LayerState::Enforced | LayerState::NotRequested => Ok(()),
        LayerState::Partial { reason } | LayerState::Absent { reason } => Err(PlanError::Isolation {
            profile: profile.name.clone(),
            layer,
            reason: reason.clone(),
            fix: offer.fix.clone(),
        }),
    }
}

fn offer(layer: Layer, profile: &Profile, facts: &HostFacts, job: &Job) -> Offer {
    let enforced = || Offer {
        state: LayerState::Enforced,
        fix: String::new(),
    };
    let partial = |reason: &str, fix: &str| Offer {
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
                "the kernel {} has Landlock ABI {abi}, and this needs ABI {needed}",
                facts.kernel
            ),
        };
        let fix = format!("boot Linux {since} or later with `landlock` in the `lsm=` list");
        Offer {
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
        | Layer::CgroupNamespace => available(&facts.namespaces),
        Layer::Proc => match &facts.namespaces {
            Availability::Available => available(&facts.proc),
            missing => available(missing),
        },
        Layer::LandlockFiles if matches!(facts.landlock_abi, 1..=2) => partial(
            "Landlock before ABI 3 does not cover truncation; the mounts do",
            "boot Linux 6.2 or later",
        ),
        Layer::LandlockFiles => landlock(1, "5.13"),
        Layer::LandlockNetwork => landlock(4, "6.7"),
        Layer::LandlockScope => landlock(6, "6.12"),
        Layer::Seccomp => available(&facts.seccomp),
        Layer::Capabilities | Layer::NoNewPrivileges | Layer::ResourceLimits | Layer::WallClock => enforced(),
        Layer::Memory => match (&facts.cgroup.memory, &facts.cgroup.swap) {
            (Availability::Available, Availability::Missing { reason, fix }) => partial(reason, fix),
            (memory, _) => available(memory),
        },
        Layer::Pids => match &facts.cgroup.pids {
            Availability::Available => enforced(),
            // The kernel counts processes per user namespace, so a resource limit holds for the run alone.
            Availability::Missing { .. } if namespaced(profile, facts) => enforced(),
            Availability::Missing { reason, fix } => {
                partial(&format!("{reason}; processes are counted per user of the host"), fix)
            }
        },
        Layer::Cpu => match &facts.cgroup.cpu_time {
            Availability::Available => enforced(),
            Availability::Missing { reason, fix } => {
                partial(&format!("{reason}; the time of its processes is sampled instead"), fix)
            }
        },
        Layer::WorkspaceQuota => match &job.workspace {
            Workspace::Tmpfs => enforced(),
            Workspace::Directory { quota } => Offer {
                state: quota.clone(),
                fix: "use a workspace in memory".to_owned(),
            },
        },
    }
}

fn available(availability: &Availability) -> Offer {
    match availability {
        Availability::Available => Offer {
            state: LayerState::Enforced,
            fix: String::new(),
        },
        Availability::Missing { reason, fix } => Offer {
            state: LayerState::Absent { reason: reason.clone() },
            fix: fix.clone(),
        },
    }
}

fn namespaced(profile: &Profile, facts: &HostFacts) -> bool {
    profile.need(Layer::UserNamespace) != Need::Off && facts.namespaces.is_available()
}

impl LaunchPlan {
    /// The record after a preferred step failed.
    pub(crate) fn without_step(enforcement: &mut Enforcement, step: &Step, reason: &str) {
        let namespaced = enforcement.layers.get(&Layer::UserNamespace) == Some(&LayerState::Enforced);
        for layer in &step.layers {
            let state = match (layer, &step.op) {
                // The resource limit of the user namespace still stands.
                (Layer::Pids, Op::CreateCgroup(_) | Op::EnterCgroup) if namespaced => continue,
                (Layer::Cpu, _) => LayerState::Partial {
                    reason: format!("{reason}; the time of its processes is sampled instead"),
                },
                _ => LayerState::Absent {
                    reason: reason.to_owned(),
                },
            };
            enforcement.layers.insert(*layer, state);
        }
    }
}
