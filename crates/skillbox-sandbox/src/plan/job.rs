//! The input of a plan that is specific to one run.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};
use skillbox_model::LayerState;

/// One script to start. Without a mount namespace, the paths are those of the host; otherwise those in the sandbox.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The program and its arguments. A program without a slash is looked up in `PATH` inside the sandbox.
    pub argv: Vec<OsString>,
    /// The whole environment; for a repeated name the last value is used.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory, absolute.
    pub cwd: String,
    /// What is mounted as the workspace.
    pub workspace: WorkspaceSource,
    /// Where the workspace is mounted, absolute.
    pub workspace_target: String,
    /// Further mounts; the launch passes their descriptors in this order.
    pub binds: Vec<Bind>,
    /// The bind that the script may change as if it were its own, without changing the source.
    pub writable_skill: Option<WritableSkill>,
    /// Whether a profile without isolation is allowed.
    pub unconfined: UnconfinedPolicy,
    /// The ports of allowed hosts; none if the script can reach no host.
    pub listening_ports: Option<ListeningPorts>,
}

/// What is mounted as the workspace of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceSource {
    /// The filesystem of [`crate::Spawner::create_workspace`], which enforces its limits.
    Tmpfs,
    /// A detached mount of a [`crate::DiskImage`], which enforces its limits.
    Image,
    /// The same, of an image that is larger than the limit. The caller enforces the quota.
    LargerImage {
        /// How far the caller enforces the quota, for the report.
        quota: LayerState,
    },
    /// A directory of the host. The caller enforces the quota.
    Directory {
        /// How far the caller enforces the quota, for the report.
        quota: LayerState,
    },
}

/// A file or directory that is mounted. The launch passes its descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// The absolute mount point. Missing parent directories are created; a symbolic link among them is refused.
    pub target: String,
    /// Whether it is a directory or a file.
    pub kind: BindKind,
    /// Whether the script can write to it.
    pub access: BindAccess,
    /// The owner of its files inside the sandbox.
    pub owner: BindOwner,
}

/// A bind at `directory`/`name` that the script may change. The changes are stored in the workspace, below
/// `directory`: in `name`, which the caller creates together with [`WritableSkill::WORK_DIRECTORY`]. Another bind covers
/// `directory`, so that the script sees only the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WritableSkill {
    /// A directory of the workspace, absolute.
    pub directory: String,
    /// The name of the skill.
    pub name: String,
    /// How the changes are kept apart.
    pub method: CopyMethod,
}

/// How the changes to a skill are kept apart from the skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyMethod {
    /// By an overlay: only changed files take space. If the kernel refuses it, by a copy.
    Overlay,
    /// By a copy of the whole skill.
    Copy,
}

impl WritableSkill {
    /// The directory beside the changes that the kernel needs for an overlay.
    pub const WORK_DIRECTORY: &'static str = ".overlay-work";
    /// fsconfig(2) takes at most 256 bytes, and the path of the skill is one value.
    const MAX_NAME_BYTES: usize = 200;

    /// A skill that is mounted at `directory`/`name`; none if its name is the one of the work directory.
    pub fn new(directory: &str, name: &str) -> Option<Self> {
        // The kernel separates the layers of an overlay by colons, and its versions escape names in different ways.
        let has_plain_name = name.len() <= Self::MAX_NAME_BYTES && !name.contains([':', ',', '\\']);
        (name != Self::WORK_DIRECTORY).then(|| Self {
            directory: directory.to_owned(),
            name: name.to_owned(),
            method: if has_plain_name {
                CopyMethod::Overlay
            } else {
                CopyMethod::Copy
            },
        })
    }

    /// Where the skill is mounted.
    pub fn target(&self) -> String {
        format!("{}/{}", self.directory, self.name)
    }
}

/// The owner of the files of a mount inside the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BindOwner {
    /// The same as on the host. A script with another user id can read only what everyone may read.
    #[serde(rename = "kept")]
    Unchanged,
    /// The script owns the files that have the same owner as the mounted file or directory. This is for inputs that
    /// only their owner may read. On a filesystem without idmapped mounts the owners stay unchanged. They also stay
    /// unchanged without root privileges, because the script then has the caller's own user id.
    Script,
}

/// The ports that skillbox listens on inside a sandbox for allowed hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListeningPorts {
    /// The ports of allowed hosts, on every loopback address.
    pub hosts: Vec<u16>,
    /// The port of the HTTP proxy, on 127.0.0.1; it is not among `hosts`.
    pub proxy: u16,
}

impl ListeningPorts {
    /// The port for questions for names, on 127.0.0.53.
    pub const DNS: u16 = 53;

    /// All TCP ports.
    pub(crate) fn tcp(&self) -> Vec<u16> {
        let mut ports = self.hosts.clone();
        ports.extend([self.proxy, Self::DNS]);
        ports.sort_unstable();
        ports.dedup();
        ports
    }
}

/// Whether a mount is a directory or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BindKind {
    /// A directory.
    Directory,
    /// A file.
    File,
}

/// Whether a script can write to a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BindAccess {
    /// The script can only read.
    ReadOnly,
    /// The script can read and write.
    ReadWrite,
}

/// Whether a profile without isolation is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnconfinedPolicy {
    /// The run is refused.
    Refuse,
    /// The run is allowed.
    Allow,
}
