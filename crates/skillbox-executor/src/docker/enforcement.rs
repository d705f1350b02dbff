//! Compares a container with what the profile requires: a pure function of the evidence. The evidence is the daemon's
//! description of the container, and what the runner observes inside. If the two differ, the worse one counts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bollard::models::{ContainerInspectResponse, HostConfig, HostConfigCgroupnsModeEnum, SystemInfo};
use skillbox_model::{Enforcement, Layer, LayerState, Limits, Tier};
use skillbox_runner::{ContainerFacts, LandlockConfinement};
use skillbox_sandbox::{HOSTNAME, Need, PlanError, Profile, SANDBOX_IDS};

use super::DockerError;
use super::skills_root::has_only_these_mounts;

/// Everything that is known about a container.
pub(super) struct ContainerEvidence<'a> {
    pub inspected: &'a ContainerInspectResponse,
    pub info: &'a SystemInfo,
    pub facts: &'a ContainerFacts,
    pub confinement: &'a LandlockConfinement,
    pub limits: &'a Limits,
    /// The directories of the host that the operator mounts.
    pub skills_roots: &'a [PathBuf],
}

/// The state of a layer, and how to fix it if it is incomplete.
struct LayerFinding {
    state: LayerState,
    fix: &'static str,
}

/// Determines the state of every layer, or refuses the run if a required layer is incomplete.
pub(super) fn determine_enforcement(
    profile: &Profile,
    evidence: &ContainerEvidence<'_>,
) -> Result<Enforcement, DockerError> {
    let mut layers = BTreeMap::new();
    for layer in Layer::ALL {
        let need = profile.need_in_container(layer);
        if need == Need::Off {
            layers.insert(layer, LayerState::NotRequested);
            continue;
        }
        let found = check_layer(layer, profile, evidence);
        if need == Need::Required
            && let LayerState::Partial { reason } | LayerState::Absent { reason } = &found.state
        {
            return Err(DockerError::Isolation(PlanError::LayerUnavailable {
                profile: profile.name.clone(),
                layer,
                reason: reason.clone(),
                fix: found.fix.to_owned(),
            }));
        }
        layers.insert(layer, found.state);
    }
    let is_limited = [Layer::Memory, Layer::Pids, Layer::Cpu]
        .iter()
        .all(|layer| !matches!(layers.get(layer), Some(LayerState::Absent { .. })));
    let tier = if is_limited { Tier::T0 } else { Tier::T1 };
    Ok(Enforcement { tier, layers })
}

fn check_layer(layer: Layer, profile: &Profile, evidence: &ContainerEvidence<'_>) -> LayerFinding {
    let ContainerEvidence {
        inspected,
        info,
        facts,
        confinement,
        limits,
        skills_roots,
    } = evidence;
    let empty_config = HostConfig::default();
    let host = inspected.host_config.as_ref().unwrap_or(&empty_config);
    let is_empty = |text: &Option<String>| text.as_deref().unwrap_or_default().is_empty();
    match layer {
        Layer::UserNamespace if maps_ids(info) => {
            enforced_if(facts.uid == SANDBOX_IDS.uid, "the runner runs as an unexpected user")
        }
        Layer::UserNamespace => partial(
            "the daemon does not map user ids: the script is the same unprivileged user inside and outside the container",
            "run the daemon with `userns-remap` or rootless",
        ),
        Layer::MountNamespace => enforced_if(
            host.readonly_rootfs == Some(true)
                && facts.read_only_root
                && host.binds.as_ref().is_none_or(Vec::is_empty)
                && has_only_these_mounts(host.mounts.as_deref().unwrap_or_default(), skills_roots)
                && host.privileged != Some(true),
            "the root file system is writable, or a directory of the host is mounted that the operator did not name",
        ),
        Layer::PidNamespace => enforced_if(
            is_empty(&host.pid_mode) && facts.pid == 1,
            "the container shares the host's pid namespace",
        ),
        Layer::NetworkNamespace => enforced_if(
            host.network_mode.as_deref() == Some("none") && facts.network_interfaces == 0,
            "the container has a network interface",
        ),
        Layer::IpcNamespace => enforced_if(
            matches!(host.ipc_mode.as_deref(), Some("private" | "none")),
            "the container shares its IPC namespace",
        ),
        Layer::UtsNamespace => {
            let name = inspected.config.as_ref().and_then(|config| config.hostname.as_deref());
            enforced_if(
                is_empty(&host.uts_mode) && name == Some(HOSTNAME),
                "the container has the host's UTS namespace",
            )
        }
        Layer::CgroupNamespace => enforced_if(
            host.cgroupns_mode == Some(HostConfigCgroupnsModeEnum::PRIVATE),
            "the host's control group names are visible",
        ),
        Layer::Proc => {
            let masked = host.masked_paths.clone().unwrap_or_default();
            let are_all_masked = profile.filesystem.masked.iter().all(|path| masked.contains(&path.path));
            enforced_if(
                are_all_masked,
                "the daemon did not mask all paths that the profile lists",
            )
        }
        Layer::LandlockFiles => check_landlock(confinement.files.is_some(), facts),
        Layer::LandlockNetwork => check_landlock(confinement.refuse_tcp, facts),
        Layer::LandlockScope => check_landlock(confinement.scope, facts),
        Layer::Seccomp => {
            let is_ours = |option: &String| option.starts_with("seccomp={");
            enforced_if(
                facts.has_seccomp_filter && host.security_opt.iter().flatten().any(is_ours),
                "the daemon did not install the system call filter",
            )
        }
        Layer::Capabilities => enforced_if(facts.no_capabilities, "the container has capabilities"),
        Layer::NoNewPrivileges => enforced_if(facts.no_new_privileges, "programs can gain privileges"),
        Layer::ResourceLimits => enforced_if(
            facts.open_file_limit == Some(limits.open_files),
            "the daemon did not set the resource limits",
        ),
        Layer::Memory => check_memory(host, facts, limits),
        Layer::Pids => {
            let requested = limits.pids.saturating_add(1);
            let configured = host.pids_limit.and_then(|limit| u64::try_from(limit).ok());
            enforced_if(
                configured == Some(requested) && facts.process_limit.is_none_or(|limit| limit <= requested),
                "the daemon does not limit the number of processes",
            )
        }
        Layer::Cpu if facts.counts_cpu_time => enforced_if(true, ""),
        Layer::Cpu => partial(
            "the control group does not report CPU time; the limit applies to each process separately",
            "mount the `cpuacct` control group on the host",
        ),
        Layer::WorkspaceQuota => enforced_if(
            (1..=limits.workspace.bytes().next_multiple_of(64 << 10)).contains(&facts.workspace_bytes)
                && (1..=limits.workspace_inodes).contains(&facts.workspace_inodes),
            "the workspace is not a file system with the requested size",
        ),
        Layer::WallClock => enforced_if(true, ""),
    }
}

fn check_memory(host: &HostConfig, facts: &ContainerFacts, limits: &Limits) -> LayerFinding {
    let requested = limits.memory.bytes();
    let configured = host.memory.and_then(|limit| u64::try_from(limit).ok());
    if configured != Some(requested) || facts.memory_limit_bytes.is_some_and(|limit| limit > requested) {
        return LayerFinding {
            state: LayerState::Absent {
                reason: "the daemon does not limit memory".to_owned(),
            },
            fix: "mount the `memory` control group on the host",
        };
    }
    let with_swap = facts.memory_and_swap_limit_bytes;
    let swap_is_limited = host.memory_swap == host.memory;
    if !swap_is_limited || with_swap.is_some_and(|limit| limit > requested) {
        return partial(
            "swap is not limited together with memory",
            "boot the host with `swapaccount=1`, or without swap",
        );
    }
    enforced_if(true, "")
}

fn check_landlock(is_applied: bool, facts: &ContainerFacts) -> LayerFinding {
    if is_applied {
        return enforced_if(true, "");
    }
    LayerFinding {
        state: LayerState::Absent {
            reason: format!("the kernel supports Landlock version {}", facts.landlock_abi),
        },
        fix: "boot Linux 6.12 or later with `landlock` in the `lsm=` list",
    }
}

/// Whether the daemon maps user ids.
pub(super) fn maps_ids(info: &SystemInfo) -> bool {
    let options = info.security_options.iter().flatten();
    options
        .into_iter()
        .any(|option| option.contains("name=userns") || option.contains("name=rootless"))
}

fn enforced_if(is_enforced: bool, reason: &str) -> LayerFinding {
    let state = if is_enforced {
        LayerState::Enforced
    } else {
        LayerState::Absent {
            reason: reason.to_owned(),
        }
    };
    LayerFinding {
        state,
        fix: "run `skillbox doctor`: the daemon does not provide what was requested",
    }
}

fn partial(reason: &str, fix: &'static str) -> LayerFinding {
    LayerFinding {
        state: LayerState::Partial {
            reason: reason.to_owned(),
        },
        fix,
    }
}
