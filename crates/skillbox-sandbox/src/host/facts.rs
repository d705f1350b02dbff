//! The facts about the host that the planner needs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use skillbox_model::Tier;

use super::resource::Resource;
use super::uid_gid::UidGid;
use crate::cgroup::CgroupVersion;

/// Facts about the host and the caller's privileges on it. Collecting them starts no process and changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// The kernel release.
    pub kernel: String,
    /// Whether the caller may use ids other than its own, and may mount without a user namespace.
    pub privileged: bool,
    /// The ids on the host that scripts run with.
    pub script_ids: UidGid,
    /// Namespaces. All kinds are available if user namespaces are.
    pub namespaces: Availability,
    /// A fresh `/proc`, mounted for the pid namespace of the run.
    pub proc: Availability,
    /// The system calls that create mounts.
    pub mount_api: MountApi,
    /// The version of the Landlock ABI; 0 without Landlock.
    pub landlock_abi: u8,
    /// System call filters.
    pub seccomp: Availability,
    /// Control groups.
    pub cgroup: CgroupFacts,
    /// The hard limits of the caller that are not unlimited.
    pub hard_limits: BTreeMap<Resource, u64>,
    /// The paths that profiles name and that exist on this host.
    pub paths: BTreeMap<String, PathType>,
}

/// Whether a facility is available.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Availability {
    /// The host has it and the caller may use it.
    Available,
    /// The host lacks it, or the caller may not use it.
    Missing {
        /// The cause.
        reason: String,
        /// How to make it available.
        fix: String,
    },
}

/// The system calls that create mounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MountApi {
    /// open_tree(2), fsopen(2), mount_setattr(2) and move_mount(2), which work on descriptors.
    Descriptors,
    /// The same without mount_setattr(2), before Linux 5.12: attributes are set by remounting an attached mount.
    DescriptorsWithRemount,
    /// Only mount(2), which takes paths: before Linux 5.2, and under system call filters that refuse the newer calls.
    MountByPath,
}

/// The control groups that the caller can create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupFacts {
    /// The version of the interface; `None` if no group can be created.
    pub version: Option<CgroupVersion>,
    /// Memory limits.
    pub memory: Availability,
    /// Memory limits that include swap; available also if the host uses no swap.
    pub swap: Availability,
    /// Limits on the number of processes.
    pub pids: Availability,
    /// Limits on CPU bandwidth.
    pub cpu_quota: Availability,
    /// Accounting of CPU time.
    pub cpu_time: Availability,
}

/// The type of a path on the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathType {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link, with its target.
    Link(String),
}

impl Availability {
    /// Creates [`Self::Missing`].
    pub(crate) fn missing(reason: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Missing {
            reason: reason.into(),
            fix: fix.into(),
        }
    }

    /// Whether it is [`Self::Available`].
    pub fn is_available(&self) -> bool {
        matches!(self, Self::Available)
    }
}

impl CgroupFacts {
    /// No control groups at all, for one reason.
    pub(crate) fn unavailable(reason: &str, fix: &str) -> Self {
        let missing = || Availability::missing(reason, fix);
        Self {
            version: None,
            memory: missing(),
            swap: missing(),
            pids: missing(),
            cpu_quota: missing(),
            cpu_time: missing(),
        }
    }
}

impl HostFacts {
    /// The isolation tier that this host supports.
    pub fn tier(&self) -> Tier {
        if !self.namespaces.is_available() {
            let has_landlock_or_seccomp = self.landlock_abi > 0 || self.seccomp.is_available();
            if has_landlock_or_seccomp { Tier::T3 } else { Tier::T4 }
        } else if !self.proc.is_available() {
            Tier::T2
        } else if !self.cgroup.memory.is_available() || !self.cgroup.pids.is_available() {
            Tier::T1
        } else {
            Tier::T0
        }
    }
}
