//! What was really enforced during a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One independent mechanism of isolation, named after the kernel facility.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The script's ids mean nothing on the host, and it is an ordinary user.
    UserNamespace,
    /// The root is made only of what the profile names.
    MountNamespace,
    /// Only the run's own processes are visible and reachable.
    PidNamespace,
    /// No network interface of the host.
    NetworkNamespace,
    /// No System V or POSIX message queue of the host.
    IpcNamespace,
    /// A fixed host name.
    UtsNamespace,
    /// The host's control groups have no names inside.
    CgroupNamespace,
    /// A fresh, masked /proc.
    Proc,
    /// Rules on files, enforced below the mounts.
    LandlockFiles,
    /// No TCP bind or connect.
    LandlockNetwork,
    /// No signal and no abstract socket out of the sandbox.
    LandlockScope,
    /// The system call filter.
    Seccomp,
    /// Every capability set is empty.
    Capabilities,
    /// No exec raises privileges.
    NoNewPrivileges,
    /// Limits of one process: open files, file size, core, locked memory.
    ResourceLimits,
    /// Memory of all processes together.
    Memory,
    /// Processes and threads.
    Pids,
    /// CPU time of all processes together.
    Cpu,
    /// Bytes and inodes of the workspace.
    WorkspaceQuota,
    /// The wall-clock deadline that kills everything.
    WallClock,
}

/// What became of a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum LayerState {
    /// In force for the whole run.
    Enforced,
    /// In force with a gap that the reason names.
    Partial {
        /// The gap.
        reason: String,
    },
    /// Asked for, preferred, and not to be had here.
    Absent {
        /// The cause.
        reason: String,
    },
    /// The profile does not ask for it.
    NotRequested,
}

/// How much of the isolation a host can give, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Tier {
    /// All layers.
    T0,
    /// No control group for this user: resource limits per process, and a watchdog.
    T1,
    /// No fresh /proc can be mounted: the run has none.
    T2,
    /// No namespaces: Landlock, seccomp and resource limits only.
    T3,
    /// Nothing.
    T4,
}

/// The record of one run: every layer, and the tier they make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Enforcement {
    /// The tier of the host for this run.
    pub tier: Tier,
    /// Every layer with what became of it.
    pub layers: BTreeMap<Layer, LayerState>,
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

    /// The name on the wire and in profiles.
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
    fn the_list_of_layers_is_complete_and_named_as_serde_names_it() {
        let written: Vec<String> = Layer::ALL
            .iter()
            .map(|layer| serde_json::to_string(layer).unwrap())
            .collect();
        let named: Vec<String> = Layer::ALL.iter().map(|layer| format!("\"{layer}\"")).collect();
        assert_eq!(written, named);
        assert!(Layer::ALL.is_sorted());
    }
}
