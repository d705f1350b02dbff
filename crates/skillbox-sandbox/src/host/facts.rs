//! What this host can give, as the planner needs it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use skillbox_model::Tier;

use crate::plan::{CgroupVersion, Ids, Resource};

/// Facts about the host and the caller's rights on it. Reading them forks nothing and changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// The kernel's release.
    pub kernel: String,
    /// Whether the caller may use other ids than its own and make mounts directly.
    pub privileged: bool,
    /// The ids on the host that scripts run with.
    pub script: Ids,
    /// Every namespace: they come together with the user namespace.
    pub namespaces: Availability,
    /// A fresh `/proc`.
    pub proc: Availability,
    /// The interface for mounts.
    pub mount_api: MountApi,
    /// The version of Landlock's interface; 0 for none.
    pub landlock_abi: u8,
    /// System call filters.
    pub seccomp: Availability,
    /// Control groups.
    pub cgroup: CgroupFacts,
    /// The hard limits of the caller that are below "unlimited".
    pub hard_limits: BTreeMap<Resource, u64>,
    /// The paths that profiles name, as they are on this host. A path that is missing here is missing there.
    pub paths: BTreeMap<String, PathFact>,
}

/// Whether something is to be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Availability {
    /// It is.
    Available,
    /// It is not.
    Missing {
        /// The cause.
        reason: String,
        /// What to do about it.
        fix: String,
    },
}

/// Which interface makes the mounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MountApi {
    /// Descriptors: open_tree, fsopen, mount_setattr, move_mount.
    Descriptors,
    /// Descriptors without mount_setattr, before Linux 5.12: attributes are set by remounting what is attached.
    Remounts,
    /// mount(2) by path, before Linux 5.2 and under filters that refuse the newer calls.
    Paths,
}

/// What control groups the caller can have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupFacts {
    /// The interface that carries the memory controller, or would.
    pub version: Option<CgroupVersion>,
    /// Limits on memory.
    pub memory: Availability,
    /// Whether swap counts as memory, or there is none.
    pub swap: Availability,
    /// Limits on processes.
    pub pids: Availability,
    /// Limits on bandwidth.
    pub cpu_quota: Availability,
    /// Counts of CPU time.
    pub cpu_time: Availability,
}

/// What a path of the host is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathFact {
    /// A directory.
    Directory,
    /// A file.
    File,
    /// A symbolic link, with where it leads.
    Link(String),
}

impl Availability {
    /// Missing for a cause, with a fix.
    pub(crate) fn missing(reason: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Missing {
            reason: reason.into(),
            fix: fix.into(),
        }
    }

    /// Whether it is to be had.
    pub fn is_available(&self) -> bool {
        matches!(self, Self::Available)
    }
}

impl CgroupFacts {
    /// No control groups for one cause.
    pub(crate) fn none(reason: &str, fix: &str) -> Self {
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
    /// How much of the isolation this host can give.
    pub fn tier(&self) -> Tier {
        if !self.namespaces.is_available() {
            let nothing = self.landlock_abi == 0 && !self.seccomp.is_available();
            if nothing { Tier::T4 } else { Tier::T3 }
        } else if !self.proc.is_available() {
            Tier::T2
        } else if !self.cgroup.memory.is_available() || !self.cgroup.pids.is_available() {
            Tier::T1
        } else {
            Tier::T0
        }
    }
}
