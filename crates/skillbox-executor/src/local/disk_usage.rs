//! Checks the disk usage of a workspace on disk while a run writes to it.

use std::time::{Duration, Instant};

use skillbox_model::ByteSize;

use skillbox_sandbox::Sandbox;

use crate::workspace::{Backing, Workspace, tree_usage};

/// Checks the usage of a workspace that the kernel does not limit. A check walks the whole tree. The interval between
/// two checks grows with their duration, so checks take at most a tenth of the time.
#[derive(Debug)]
pub(crate) struct DiskUsageCheck {
    max_bytes: ByteSize,
    max_inodes: u64,
    next_check: Instant,
}

impl DiskUsageCheck {
    pub(crate) fn new(max_bytes: ByteSize, max_inodes: u64) -> Self {
        Self {
            max_bytes,
            max_inodes,
            next_check: Instant::now(),
        }
    }

    /// Whether the workspace exceeds its quota. Returns false without a check if the next check is not due.
    pub(crate) fn is_over_quota(&mut self, workspace: &Workspace, sandbox: &Sandbox) -> bool {
        let begin = Instant::now();
        if begin < self.next_check {
            return false;
        }
        let is_over = self.is_over_quota_now(workspace) || self.is_over_quota_with_nameless_files(workspace, sandbox);
        let end = Instant::now();
        self.next_check = end + (end - begin).saturating_mul(10).max(Duration::from_millis(50));
        is_over
    }

    /// Like `is_over_quota`, but always checks: a short run may end before its first check.
    pub(crate) fn is_over_quota_now(&self, workspace: &Workspace) -> bool {
        if let Backing::Image { capacity } = workspace.backing() {
            // The file system enforces its own size; only a smaller limit has to be checked.
            return capacity > image_tolerance(self.max_bytes)
                && workspace.used_bytes(self.max_inodes) > self.max_bytes.bytes();
        }
        let (bytes, inodes) = tree_usage(workspace.root(), self.max_inodes);
        bytes > self.max_bytes.bytes() || inodes > self.max_inodes
    }

    /// Whether the files that the script holds without a name, together with the others, exceed the quota.
    fn is_over_quota_with_nameless_files(&self, workspace: &Workspace, sandbox: &Sandbox) -> bool {
        if workspace.backing() != Backing::Disk {
            return false;
        }
        let Ok(root) = rustix::fs::fstat(workspace.root()) else {
            return true;
        };
        let nameless = sandbox.nameless_bytes(root.st_dev);
        nameless > 0 && nameless.saturating_add(workspace.used_bytes(self.max_inodes)) > self.max_bytes.bytes()
    }
}

/// The largest file system that counts as one of this size: some of it is for the records of the file system.
pub(crate) fn image_tolerance(max_bytes: ByteSize) -> u64 {
    max_bytes
        .bytes()
        .saturating_add(max_bytes.bytes() / 10)
        .saturating_add(8 << 20)
}
