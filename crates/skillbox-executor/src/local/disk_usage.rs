//! The disk usage of a workspace on disk, checked while a run writes to it.

use std::time::{Duration, Instant};

use skillbox_model::ByteSize;

use crate::workspace::{Workspace, tree_usage};

/// Checks the usage of a workspace that no kernel limit bounds. A check walks the whole tree, so the interval grows
/// with its duration: checks take at most a tenth of the time.
#[derive(Debug)]
pub(crate) struct DiskUsageCheck {
    bytes: ByteSize,
    inodes: u64,
    next: Instant,
}

impl DiskUsageCheck {
    pub(crate) fn new(bytes: ByteSize, inodes: u64) -> Self {
        Self {
            bytes,
            inodes,
            next: Instant::now(),
        }
    }

    /// Whether the workspace exceeds its quota. Returns false without a check if the next check is not due.
    pub(crate) fn is_over_quota(&mut self, workspace: &Workspace) -> bool {
        let begin = Instant::now();
        if begin < self.next {
            return false;
        }
        let over = self.is_over_quota_now(workspace);
        let end = Instant::now();
        self.next = end + (end - begin).saturating_mul(10).max(Duration::from_millis(50));
        over
    }

    /// Like `is_over_quota`, but always checks: a short run may end before its first check.
    pub(crate) fn is_over_quota_now(&self, workspace: &Workspace) -> bool {
        let (bytes, inodes) = tree_usage(workspace.root(), self.inodes);
        bytes > self.bytes.bytes() || inodes > self.inodes
    }
}
