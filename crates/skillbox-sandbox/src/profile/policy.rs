//! A complete profile, merged with the one that it extends and checked.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use skillbox_model::{ByteSize, HostPort, Layer, Limits, ProfileName, RequestRule};

use crate::seccomp::SyscallPolicy;

/// Whether a run needs an isolation layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// The run is refused if the layer cannot be enforced.
    Required,
    /// The run continues if the layer cannot be enforced, and the report says so.
    Preferred,
    /// The layer is not used.
    Off,
}

/// One complete policy. Every field has its final value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// Its name in requests and reports.
    pub name: ProfileName,
    /// A one-line description.
    pub description: String,
    /// The profile that it extends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extends: Option<ProfileName>,
    /// The need for every layer.
    pub layers: BTreeMap<Layer, Need>,
    /// The layers whose need differs in a container; every other layer has the need in `layers`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub container_layers: BTreeMap<Layer, Need>,
    /// The files that the script sees.
    pub filesystem: FilesystemPolicy,
    /// How the workspace is stored.
    pub workspace: WorkspacePolicy,
    /// What the script can reach through sockets.
    pub network: NetworkPolicy,
    /// The hosts that every run with this profile may reach, if `network` is an allow-list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_hosts: Vec<AllowedHost>,
    /// The rules for system calls.
    pub syscalls: SyscallPolicy,
    /// The environment to which a run adds its own variables.
    pub environment: EnvironmentPolicy,
    /// The limits of a run.
    pub limits: ProfileLimits,
}

/// What the root directory of the script contains besides the workspace and `/proc`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesystemPolicy {
    /// Paths of the host, read-only.
    pub visible: Vec<VisiblePath>,
    /// Empty directories.
    pub directories: Vec<EmptyDirectory>,
    /// Symbolic links.
    pub links: Vec<SymbolicLink>,
    /// Small files with fixed content.
    pub files: Vec<FixedFile>,
    /// Device nodes below `/dev`.
    pub devices: Vec<Device>,
    /// Files below `/proc` that an empty file covers.
    pub masked: Vec<MaskedPath>,
    /// The size of the private `/dev/shm`.
    pub shm: ByteSize,
}

/// A path of the host that the script may read and execute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisiblePath {
    /// The absolute path, the same on the host and in the sandbox.
    pub path: String,
    /// Whether the path may be missing on the host.
    pub optional: bool,
    /// Why the script needs it.
    pub reason: String,
}

/// An empty, read-only directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmptyDirectory {
    /// The absolute path.
    pub path: String,
    /// Why the script needs it.
    pub reason: String,
}

/// A symbolic link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolicLink {
    /// The absolute path.
    pub path: String,
    /// The target of the link.
    pub target: String,
    /// Why the script needs it.
    pub reason: String,
}

/// A read-only file whose content the profile contains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixedFile {
    /// The absolute path.
    pub path: String,
    /// The whole content.
    pub content: String,
    /// Why the script needs it.
    pub reason: String,
}

/// A device node that gives no access to the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The name below `/dev`.
    pub name: String,
    /// Why the script needs it.
    pub reason: String,
}

/// A file of `/proc` that reads as empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaskedPath {
    /// The absolute path, below `/proc`.
    pub path: String,
    /// What the file would reveal.
    pub reason: String,
}

/// How the workspace is stored, for a run without a session, and what of it the script may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspacePolicy {
    /// Where its files are stored.
    pub backing: WorkspaceBacking,
    /// Whether the script may change the directory of its skill.
    pub skill_dir: SkillDirAccess,
}

/// Whether a script may change the directory of its skill. The skill itself never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillDirAccess {
    /// It may change a private view of the directory (copy-on-write), which is discarded after the run.
    Cow,
    /// It may only read.
    ReadOnly,
}

/// Where the files of a workspace are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceBacking {
    /// In memory, with hard limits on bytes and inodes; the kernel frees it after the run.
    Tmpfs,
    /// In a directory of the host.
    Disk,
}

/// What the script can reach through sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkPolicy {
    /// Only its own Unix sockets; no network interface is up.
    None,
    /// The loopback interface of its own network namespace.
    Loopback,
    /// Allowed hosts, through sockets that skillbox listens on in the run's own network namespace. There is no route out.
    AllowList,
    /// The network of the host. The layer `network_namespace` must be off.
    Host,
}

/// A host that every run with a profile may reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedHost {
    /// The host and the port.
    pub host: HostPort,
    /// The requests to it that are allowed.
    #[serde(default)]
    pub requests: RequestRule,
    /// Why scripts need it.
    pub reason: String,
}

/// The environment to which a run adds its own variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentPolicy {
    /// Variables that are copied from the host if they are set there.
    pub pass: Vec<PassedVariable>,
    /// Variables with a fixed value.
    pub set: Vec<FixedVariable>,
}

/// A variable that is copied from the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedVariable {
    /// Its name.
    pub name: String,
    /// Why the script needs it.
    pub reason: String,
}

/// A variable with a fixed value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixedVariable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Why the script needs it.
    pub reason: String,
}

/// The default limits of a run, and the maximum for requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProfileLimits {
    /// The limits of a run whose request sets none.
    #[serde(flatten)]
    pub default: Limits,
    /// The longest wall-clock time that a request may set.
    pub wall_max: Duration,
}

impl Profile {
    /// The need for a layer.
    pub fn need(&self, layer: Layer) -> Need {
        self.layers.get(&layer).copied().unwrap_or(Need::Off)
    }

    /// The need for a layer in a container.
    pub fn need_in_container(&self, layer: Layer) -> Need {
        self.container_layers
            .get(&layer)
            .copied()
            .unwrap_or_else(|| self.need(layer))
    }

    /// Whether the profile isolates nothing: the namespaces for users, mounts and pids, Landlock for files and the
    /// system call filter are all off.
    pub fn is_unconfined(&self) -> bool {
        use Layer::{LandlockFiles, MountNamespace, PidNamespace, Seccomp, UserNamespace};
        [UserNamespace, MountNamespace, PidNamespace, LandlockFiles, Seccomp]
            .into_iter()
            .all(|layer| self.need(layer) == Need::Off)
    }

    /// The environment of every script with this profile, before the variables of the run. `lookup` returns the value
    /// of a host variable; it is called only for the variables that the profile copies.
    pub fn initial_environment(&self, lookup: impl Fn(&str) -> Option<OsString>) -> Vec<(OsString, OsString)> {
        let passed = self
            .environment
            .pass
            .iter()
            .filter_map(|variable| Some((OsString::from(&variable.name), lookup(&variable.name)?)));
        let set = self
            .environment
            .set
            .iter()
            .map(|variable| (OsString::from(&variable.name), OsString::from(&variable.value)));
        passed.chain(set).collect()
    }
}
