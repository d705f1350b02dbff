//! How much a disk-backed workspace holds, looked at while a run writes.

use std::time::{Duration, Instant};

use skillbox_model::ByteSize;

use crate::workspace::{Workspace, tree_usage};

/// Watches a workspace that no kernel limit bounds. A look costs what the tree costs; the larger it grows, the
/// rarer it is looked at, so that watching never takes more than a tenth of the time.
#[derive(Debug)]
pub(crate) struct DiskWatch {
    bytes: ByteSize,
    inodes: u64,
    next: Instant,
}

impl DiskWatch {
    pub(crate) fn new(bytes: ByteSize, inodes: u64) -> Self {
        Self {
            bytes,
            inodes,
            next: Instant::now(),
        }
    }

    /// Whether the workspace is over its quota, where it is time to look.
    pub(crate) fn is_over(&mut self, workspace: &Workspace) -> bool {
        let begin = Instant::now();
        if begin < self.next {
            return false;
        }
        let over = self.is_over_now(workspace);
        let end = Instant::now();
        self.next = end + (end - begin).saturating_mul(10).max(Duration::from_millis(50));
        over
    }

    /// The same, whatever the time: a run that is over at once is measured as well.
    pub(crate) fn is_over_now(&self, workspace: &Workspace) -> bool {
        let (bytes, inodes) = tree_usage(workspace.root(), self.inodes);
        bytes > self.bytes.bytes() || inodes > self.inodes
    }
}
