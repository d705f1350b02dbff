//! A profile after `extends` and checks: what the planner reads.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use skillbox_model::{ByteSize, Layer, Limits, ProfileName};

use crate::seccomp::SyscallPolicy;

/// How much a profile insists on a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// Without it the run is refused.
    Required,
    /// Without it the run goes on and the report says so.
    Preferred,
    /// Not asked for.
    Off,
}

/// One complete policy. Every field is settled; nothing is looked up later.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// Its name, as requests and reports give it.
    pub name: ProfileName,
    /// One line for people.
    pub description: String,
    /// The profile it was derived from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extends: Option<ProfileName>,
    /// Every layer with how much the profile insists on it.
    pub layers: BTreeMap<Layer, Need>,
    /// Layers on which the profile insists otherwise where a container is the boundary.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub container_layers: BTreeMap<Layer, Need>,
    /// What the script finds below `/`.
    pub filesystem: FilesystemPolicy,
    /// Where the workspace lives.
    pub workspace: WorkspacePolicy,
    /// What the script can reach by sockets.
    pub network: NetworkPolicy,
    /// Every system call that is named, with what becomes of it.
    pub syscalls: SyscallPolicy,
    /// The environment before the run's own variables.
    pub environment: EnvironmentPolicy,
    /// What a run may use.
    pub limits: ProfileLimits,
}

/// What the script finds below `/`, beside the workspace and `/proc`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesystemPolicy {
    /// Paths of the host, read-only.
    pub visible: Vec<VisiblePath>,
    /// Empty directories.
    pub directories: Vec<MadeDirectory>,
    /// Symbolic links.
    pub links: Vec<MadeLink>,
    /// Small files with a fixed content.
    pub files: Vec<MadeFile>,
    /// Device nodes below `/dev`.
    pub devices: Vec<Device>,
    /// Files below `/proc` that are covered by an empty one.
    pub masked: Vec<MaskedPath>,
    /// The size of the private `/dev/shm`.
    pub shm: ByteSize,
}

/// A path of the host that the script may read and execute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisiblePath {
    /// Absolute, the same inside and outside.
    pub path: String,
    /// A host without it is fine.
    pub optional: bool,
    /// Why the script needs it.
    pub reason: String,
}

/// An empty, read-only directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeDirectory {
    /// Absolute.
    pub path: String,
    /// Why the script needs it.
    pub reason: String,
}

/// A symbolic link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeLink {
    /// Absolute.
    pub path: String,
    /// What it leads to.
    pub target: String,
    /// Why the script needs it.
    pub reason: String,
}

/// A read-only file whose content the profile gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeFile {
    /// Absolute.
    pub path: String,
    /// Its whole content.
    pub content: String,
    /// Why the script needs it.
    pub reason: String,
}

/// One of the harmless device nodes.
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
    /// Absolute, below `/proc`.
    pub path: String,
    /// What it would tell.
    pub reason: String,
}

/// Where the workspace of a run without a session lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspacePolicy {
    /// The backing.
    pub backing: Backing,
}

/// What holds the workspace's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backing {
    /// Memory, with hard limits on bytes and inodes, gone with the run.
    Tmpfs,
    /// A directory of the host.
    Disk,
}

/// What the script can reach by sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkPolicy {
    /// Unix sockets of its own only; no interface is up.
    None,
    /// The loopback interface of its own network namespace.
    Loopback,
    /// The host's network. Only without a network namespace.
    Host,
}

/// The environment of the script before the run's own variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentPolicy {
    /// Variables of the host that go in when they are set.
    pub pass: Vec<PassedVariable>,
    /// Variables with a fixed value.
    pub set: Vec<SetVariable>,
}

/// A variable of the host that goes in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedVariable {
    /// Its name.
    pub name: String,
    /// Why the script needs it.
    pub reason: String,
}

/// A variable with a fixed value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetVariable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Why the script needs it.
    pub reason: String,
}

/// The limits of a run that asks for nothing, and how much more a request may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProfileLimits {
    /// What a run gets.
    #[serde(flatten)]
    pub default: Limits,
    /// The longest wall-clock time that a request may ask for.
    pub wall_max: Duration,
}

impl Profile {
    /// How much the profile insists on a layer.
    pub fn need(&self, layer: Layer) -> Need {
        self.layers.get(&layer).copied().unwrap_or(Need::Off)
    }

    /// How much it insists on a layer of a container.
    pub fn need_in_container(&self, layer: Layer) -> Need {
        self.container_layers
            .get(&layer)
            .copied()
            .unwrap_or_else(|| self.need(layer))
    }

    /// Whether the profile isolates nothing at all.
    pub fn is_unconfined(&self) -> bool {
        use Layer::{LandlockFiles, MountNamespace, PidNamespace, Seccomp, UserNamespace};
        [UserNamespace, MountNamespace, PidNamespace, LandlockFiles, Seccomp]
            .into_iter()
            .all(|layer| self.need(layer) == Need::Off)
    }

    /// The environment that every script of this profile starts from. `lookup` is asked only for the names that
    /// the profile passes.
    pub fn environment(&self, lookup: impl Fn(&str) -> Option<OsString>) -> Vec<(OsString, OsString)> {
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
