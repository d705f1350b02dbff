//! What one run brings along.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};
use skillbox_model::LayerState;

/// One script to start. Paths are inside the sandbox, unless the profile has no mount namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The program and its arguments. A program without a slash is looked up in `PATH`, inside.
    pub argv: Vec<OsString>,
    /// The whole environment; a later value of a name wins.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory, absolute.
    pub cwd: String,
    /// What holds the workspace.
    pub workspace: Workspace,
    /// Where the workspace is mounted, absolute.
    pub workspace_target: String,
    /// What else is mounted; the descriptors come with the launch, in this order.
    pub binds: Vec<Bind>,
    /// Whether a profile without isolation may be used.
    pub unconfined: Unconfined,
}

/// What holds the workspace of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workspace {
    /// The descriptor of [`crate::Spawner::create_workspace`], whose limits are hard.
    Tmpfs,
    /// A directory of the host; the caller says what watches its size.
    Directory {
        /// What the report says about the quota.
        quota: LayerState,
    },
}

/// One descriptor to mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// Where, absolute. Missing directories on the way are made; a link on the way is refused.
    pub target: String,
    /// What it is.
    pub kind: BindKind,
    /// Whether the script can write to it.
    pub access: Access,
    /// Whose files it shows.
    pub owner: Ownership,
}

/// Whose files a mounted thing shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ownership {
    /// Those of their owners. A script that is another user reads what everyone may read.
    Kept,
    /// Those of the script, where they belong to the owner of the mounted thing: for inputs that only their owner may
    /// read. On a filesystem that cannot show them so they stay with their owners; without root rights nothing is
    /// changed, since the script is the caller's own user then.
    Script,
}

/// What a mounted thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BindKind {
    /// A directory.
    Directory,
    /// A file.
    File,
}

/// Whether a script can write to a mounted thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// It cannot.
    ReadOnly,
    /// It can.
    ReadWrite,
}

/// Whether a profile without isolation may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unconfined {
    /// It is refused.
    Refuse,
    /// The host allows it.
    Allow,
}
