//! The isolation that was enforced during a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One mechanism of isolation, named after the kernel facility.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The script runs as an ordinary user whose ids have no meaning on the host.
    UserNamespace,
    /// The root contains only what the profile names.
    MountNamespace,
    /// Only processes of the run are visible and can be signalled.
    PidNamespace,
    /// No network interface of the host.
    NetworkNamespace,
    /// No System V or POSIX message queue of the host.
    IpcNamespace,
    /// A fixed host name.
    UtsNamespace,
    /// The host's control groups are not visible.
    CgroupNamespace,
    /// A new, masked /proc.
    Proc,
    /// Landlock rules for files, in addition to the mounts.
    LandlockFiles,
    /// No TCP bind or connect.
    LandlockNetwork,
    /// No signals or abstract sockets to processes outside the sandbox.
    LandlockScope,
    /// The system call filter.
    Seccomp,
    /// Every capability set is empty.
    Capabilities,
    /// Executing a program never raises privileges.
    NoNewPrivileges,
    /// Limits of each process: open files, file size, core dumps, locked memory.
    ResourceLimits,
    /// Limit on the memory of all processes together.
    Memory,
    /// Limit on the number of processes and threads.
    Pids,
    /// Limit on the CPU time of all processes together.
    Cpu,
    /// Limit on the bytes and inodes of the workspace.
    WorkspaceQuota,
    /// The wall-clock deadline at which all processes are killed.
    WallClock,
}

/// The state of a layer during a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum LayerState {
    /// Enforced for the whole run.
    Enforced,
    /// Enforced with a gap.
    Partial {
        /// The gap.
        reason: String,
    },
    /// Preferred by the profile, but not available on this host.
    Absent {
        /// The cause.
        reason: String,
    },
    /// Not requested by the profile.
    NotRequested,
}

/// How much isolation a host offers, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Tier {
    /// All layers.
    T0,
    /// No control group for this user: resource limits per process and a watchdog instead.
    T1,
    /// No new /proc can be mounted, so the run has none.
    T2,
    /// No namespaces: Landlock, seccomp and resource limits only.
    T3,
    /// No isolation.
    T4,
}

/// The enforcement of one run: every layer, and the resulting tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Enforcement {
    /// The tier of the host for this run.
    pub tier: Tier,
    /// The state of every layer.
    pub layers: BTreeMap<Layer, LayerState>,
}

impl Enforcement {
    /// What the run lacks of the best isolation, in one line: its tier, and the layers that its profile asked for and that
    /// were not fully in force. None if nothing is missing.
    pub fn shortfall(&self) -> Option<String> {
        // Layers that are missing for the same reason are named together.
        let mut groups: Vec<(&str, &str, Vec<&str>)> = Vec::new();
        for (layer, state) in &self.layers {
            let (word, reason) = match state {
                LayerState::Absent { reason } => ("absent", reason.as_str()),
                LayerState::Partial { reason } => ("partial", reason.as_str()),
                LayerState::Enforced | LayerState::NotRequested => continue,
            };
            match groups.iter_mut().find(|group| (group.0, group.1) == (word, reason)) {
                Some((.., layers)) => layers.push(layer.as_str()),
                None => groups.push((word, reason, vec![layer.as_str()])),
            }
        }
        let missing: Vec<String> = groups
            .iter()
            .map(|(word, reason, layers)| format!("{} {word} ({reason})", layers.join(", ")))
            .collect();
        match (self.tier, missing.as_slice()) {
            (Tier::T0, []) => None,
            (tier, []) => Some(format!("isolation is of tier {tier:?}, below T0")),
            (tier, missing) => Some(format!(
                "isolation is of tier {tier:?}, weaker than the profile prefers: {}",
                missing.join("; ")
            )),
        }
    }
}

impl Layer {
    /// Every layer, in the order of the enforcement table.
    pub const ALL: [Self; 20] = [
        Self::UserNamespace,
        Self::MountNamespace,
        Self::PidNamespace,
        Self::NetworkNamespace,
        Self::IpcNamespace,
        Self::UtsNamespace,
        Self::CgroupNamespace,
        Self::Proc,
        Self::LandlockFiles,
        Self::LandlockNetwork,
        Self::LandlockScope,
        Self::Seccomp,
        Self::Capabilities,
        Self::NoNewPrivileges,
        Self::ResourceLimits,
        Self::Memory,
        Self::Pids,
        Self::Cpu,
        Self::WorkspaceQuota,
        Self::WallClock,
    ];

    /// The name in JSON and in profiles.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UserNamespace => "user_namespace",
            Self::MountNamespace => "mount_namespace",
            Self::PidNamespace => "pid_namespace",
            Self::NetworkNamespace => "network_namespace",
            Self::IpcNamespace => "ipc_namespace",
            Self::UtsNamespace => "uts_namespace",
            Self::CgroupNamespace => "cgroup_namespace",
            Self::Proc => "proc",
            Self::LandlockFiles => "landlock_files",
            Self::LandlockNetwork => "landlock_network",
            Self::LandlockScope => "landlock_scope",
            Self::Seccomp => "seccomp",
            Self::Capabilities => "capabilities",
            Self::NoNewPrivileges => "no_new_privileges",
            Self::ResourceLimits => "resource_limits",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
            Self::WorkspaceQuota => "workspace_quota",
            Self::WallClock => "wall_clock",
        }
    }
}

impl std::fmt::Display for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortfall_names_the_tier_and_each_reason_once() {
        let absent = |reason: &str| LayerState::Absent { reason: reason.into() };
        let layers = |states: &[(Layer, LayerState)]| states.iter().cloned().collect();
        let whole = Enforcement {
            tier: Tier::T0,
            layers: layers(&[
                (Layer::Seccomp, LayerState::Enforced),
                (Layer::Cpu, LayerState::NotRequested),
            ]),
        };
        assert_eq!(whole.shortfall(), None);
        let degraded = Enforcement {
            tier: Tier::T1,
            layers: layers(&[
                (Layer::Memory, absent("no control group")),
                (Layer::Pids, absent("no control group")),
                (
                    Layer::LandlockScope,
                    LayerState::Partial {
                        reason: "old kernel".into(),
                    },
                ),
            ]),
        };
        assert_eq!(
            degraded.shortfall().unwrap(),
            "isolation is of tier T1, weaker than the profile prefers: landlock_scope partial (old kernel); memory, pids \
             absent (no control group)"
        );
        let unconfined = Enforcement {
            tier: Tier::T4,
            layers: layers(&[]),
        };
        assert_eq!(unconfined.shortfall().unwrap(), "isolation is of tier T4, below T0");
    }

    #[test]
    fn all_layers_are_listed_with_their_serde_names() {
        let written: Vec<String> = Layer::ALL
            .iter()
            .map(|layer| serde_json::to_string(layer).unwrap())
            .collect();
        let named: Vec<String> = Layer::ALL.iter().map(|layer| format!("\"{layer}\"")).collect();
        assert_eq!(written, named);
        assert!(Layer::ALL.is_sorted());
    }
}
