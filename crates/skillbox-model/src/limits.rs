//! What a run may use at most.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ByteSize;

/// The hard limits of one run, already settled between the profile and the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Wall-clock time until everything in the sandbox is killed.
    pub wall: Duration,
    /// CPU time of all processes together.
    pub cpu: Duration,
    /// CPU cores' worth of bandwidth, in thousandths; `None` leaves the scheduler alone.
    pub cpu_quota_millis: Option<u32>,
    /// Memory of all processes together, swap included, files on the workspace's tmpfs too.
    pub memory: ByteSize,
    /// Processes and threads.
    pub pids: u64,
    /// Open descriptors of one process.
    pub open_files: u64,
    /// The largest file one process may write.
    pub file: ByteSize,
    /// Bytes in the workspace.
    pub workspace: ByteSize,
    /// Files, directories and links in the workspace.
    pub workspace_inodes: u64,
    /// Bytes kept of stdout and of stderr, each.
    pub output: ByteSize,
}
