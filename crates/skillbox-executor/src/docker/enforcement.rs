//! What a container really has of what the profile asks for: from the daemon's own record of it, and from what its
//! pid 1 finds around itself. Where the two differ, the worse one counts. Pure.

use std::collections::BTreeMap;

use bollard::models::{ContainerInspectResponse, HostConfig, HostConfigCgroupnsModeEnum, SystemInfo};
use skillbox_model::{Enforcement, Layer, LayerState, Limits, Tier};
use skillbox_runner::{Confinement, Facts};
use skillbox_sandbox::{HOSTNAME, INSIDE, Need, PlanError, Profile};

use super::DockerError;

/// Everything that is known of a container.
pub(super) struct Evidence<'a> {
    pub inspected: &'a ContainerInspectResponse,
    pub info: &'a SystemInfo,
    pub facts: &'a Facts,
    pub confinement: &'a Confinement,
    pub limits: &'a Limits,
}

/// A layer as it is, and the fix where it falls short.
struct Found {
    state: LayerState,
    fix: &'static str,
}

/// Settles every layer, or refuses the run over the first required one that falls short.
pub(super) fn settle(profile: &Profile, evidence: &Evidence<'_>) -> Result<Enforcement, DockerError> {
    let mut layers = BTreeMap::new();
    for layer in Layer::ALL {
        let need = profile.need_in_container(layer);
        if need == Need::Off {
            layers.insert(layer, LayerState::NotRequested);
            continue;
        }
        let found = find(layer, profile, evidence);
        if need == Need::Required
            && let LayerState::Partial { reason } | LayerState::Absent { reason } = &found.state
        {
            return Err(DockerError::Isolation(PlanError::Isolation {
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

fn find(layer: Layer, profile: &Profile, evidence: &Evidence<'_>) -> Found {
    let Evidence {
        inspected,
        info,
        facts,
        confinement,
        limits,
    } = evidence;
    let none = HostConfig::default();
    let host = inspected.host_config.as_ref().unwrap_or(&none);
    let empty = |text: &Option<String>| text.as_deref().unwrap_or_default().is_empty();
    match layer {
        Layer::UserNamespace if maps_ids(info) => enforced(facts.uid == INSIDE.uid, "the runner is another user"),
        Layer::UserNamespace => partial(
            "the daemon maps no ids: inside and outside the script is the same unprivileged user",
            "start the daemon with `userns-remap`, or rootless",
        ),
        Layer::MountNamespace => enforced(
            host.readonly_rootfs == Some(true)
                && facts.read_only_root
                && host.binds.as_ref().is_none_or(Vec::is_empty)
                && host.mounts.as_ref().is_none_or(Vec::is_empty)
                && host.privileged != Some(true),
            "the root can be written to, or something of the host is mounted",
        ),
        Layer::PidNamespace => enforced(
            empty(&host.pid_mode) && facts.pid == 1,
            "the container shares the host's processes",
        ),
        Layer::NetworkNamespace => enforced(
            host.network_mode.as_deref() == Some("none") && facts.interfaces == 0,
            "the container has a network",
        ),
        Layer::IpcNamespace => enforced(
            matches!(host.ipc_mode.as_deref(), Some("private" | "none")),
            "the container shares interprocess communication",
        ),
        Layer::UtsNamespace => {
            let name = inspected.config.as_ref().and_then(|config| config.hostname.as_deref());
            enforced(
                empty(&host.uts_mode) && name == Some(HOSTNAME),
                "the container has the host's name",
            )
        }
        Layer::CgroupNamespace => enforced(
            host.cgroupns_mode == Some(HostConfigCgroupnsModeEnum::PRIVATE),
            "the names of the host's control groups are visible",
        ),
        Layer::Proc => {
            let masked = host.masked_paths.clone().unwrap_or_default();
            let all = profile.filesystem.masked.iter().all(|path| masked.contains(&path.path));
            enforced(all, "the daemon did not mask everything that the profile names")
        }
        Layer::LandlockFiles => landlock(confinement.files.is_some(), facts),
        Layer::LandlockNetwork => landlock(confinement.refuse_tcp, facts),
        Layer::LandlockScope => landlock(confinement.scope, facts),
        Layer::Seccomp => {
            let is_ours = |option: &String| option.starts_with("seccomp={");
            enforced(
                facts.seccomp && host.security_opt.iter().flatten().any(is_ours),
                "the daemon did not install the filter",
            )
        }
        Layer::Capabilities => enforced(facts.no_capabilities, "the container has capabilities"),
        Layer::NoNewPrivileges => enforced(facts.no_new_privileges, "a program can raise its privileges"),
        Layer::ResourceLimits => enforced(
            facts.open_files == Some(limits.open_files),
            "the daemon did not set the limits of processes",
        ),
        Layer::Memory => memory(host, facts, limits),
        Layer::Pids => {
            let asked = limits.pids.saturating_add(1);
            let told = host.pids_limit.and_then(|limit| u64::try_from(limit).ok());
            enforced(
                told == Some(asked) && facts.pids.is_none_or(|limit| limit <= asked),
                "the daemon does not count processes",
            )
        }
        Layer::Cpu if facts.tells_cpu => enforced(true, ""),
        Layer::Cpu => partial(
            "the control group tells no CPU time; each process has a limit of its own",
            "mount the `cpuacct` control group on the host",
        ),
        Layer::WorkspaceQuota => enforced(
            (1..=limits.workspace.bytes().next_multiple_of(64 << 10)).contains(&facts.workspace_bytes)
                && (1..=limits.workspace_inodes).contains(&facts.workspace_inodes),
            "the workspace is not a file system of its own size",
        ),
        Layer::WallClock => enforced(true, ""),
    }
}

fn memory(host: &HostConfig, facts: &Facts, limits: &Limits) -> Found {
    let asked = limits.memory.bytes();
    let told = host.memory.and_then(|limit| u64::try_from(limit).ok());
    if told != Some(asked) || facts.memory_bytes.is_some_and(|limit| limit > asked) {
        return Found {
            state: LayerState::Absent {
                reason: "the daemon does not limit memory".to_owned(),
            },
            fix: "mount the `memory` control group on the host",
        };
    }
    let with_swap = facts.memory_and_swap_bytes;
    let swap_told = host.memory_swap == host.memory;
    if !swap_told || with_swap.is_some_and(|limit| limit > asked) {
        return partial(
            "swap is not limited with memory",
            "boot the host with `swapaccount=1`, or without swap",
        );
    }
    enforced(true, "")
}

fn landlock(is_applied: bool, facts: &Facts) -> Found {
    if is_applied {
        return enforced(true, "");
    }
    Found {
        state: LayerState::Absent {
            reason: format!("the kernel's Landlock has version {}", facts.landlock_abi),
        },
        fix: "boot Linux 6.12 or later with `landlock` in the `lsm=` list",
    }
}

/// Whether ids inside mean others outside.
pub(super) fn maps_ids(info: &SystemInfo) -> bool {
    let options = info.security_options.iter().flatten();
    options
        .into_iter()
        .any(|option| option.contains("name=userns") || option.contains("name=rootless"))
}

fn enforced(is_true: bool, otherwise: &str) -> Found {
    let state = if is_true {
        LayerState::Enforced
    } else {
        LayerState::Absent {
            reason: otherwise.to_owned(),
        }
    };
    Found {
        state,
        fix: "see `skillbox doctor`; the daemon does not give what it was asked for",
    }
}

fn partial(reason: &str, fix: &'static str) -> Found {
    Found {
        state: LayerState::Partial {
            reason: reason.to_owned(),
        },
        fix,
    }
}
