//! Resource limits of a run.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ByteSize;

/// The hard limits of one run, resolved from the profile and the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Wall-clock time until all processes of the sandbox are killed.
    pub wall: Duration,
    /// CPU time of all processes together.
    pub cpu: Duration,
    /// CPU bandwidth in thousandths of a core; `None` sets no quota.
    pub cpu_quota_millis: Option<u32>,
    /// Memory of all processes together, including swap and files on the workspace's tmpfs.
    pub memory: ByteSize,
    /// Number of processes and threads.
    pub pids: u64,
    /// Open file descriptors of each process.
    pub open_files: u64,
    /// Size of the largest file that a process may write.
    pub file: ByteSize,
    /// Bytes in the workspace.
    pub workspace: ByteSize,
    /// Number of files, directories and links in the workspace.
    pub workspace_inodes: u64,
    /// Bytes that are kept of each of stdout and stderr.
    pub output: ByteSize,
}
