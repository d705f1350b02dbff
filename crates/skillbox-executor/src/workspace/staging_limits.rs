//! The limits of staging: the quota of the workspace, the deadline of the run and its cancellation.

use std::time::Instant;

use skillbox_model::{Limits, RelPath};

use super::{Workspace, WorkspaceError};
use crate::CancelToken;

/// What staging may still use. File systems with limits of their own refuse the rest as well.
#[derive(Debug)]
pub struct StagingLimits<'a> {
    bytes_left: u64,
    entries_left: u64,
    deadline: Option<Instant>,
    cancel: Option<&'a CancelToken>,
}

impl<'a> StagingLimits<'a> {
    /// The limits of a run whose inputs are staged from now on.
    pub fn new(limits: &Limits, workspace: &Workspace, cancel: &'a CancelToken) -> Self {
        let used = workspace.used_bytes(limits.workspace_inodes);
        Self {
            bytes_left: limits.workspace.bytes().saturating_sub(used),
            entries_left: limits.workspace_inodes,
            deadline: Instant::now().checked_add(limits.wall),
            cancel: Some(cancel),
        }
    }

    /// No limits, for files that were measured before.
    pub fn none() -> Self {
        Self {
            bytes_left: u64::MAX,
            entries_left: u64::MAX,
            deadline: None,
            cancel: None,
        }
    }

    /// Counts an entry of the workspace, and checks deadline and cancellation.
    pub(super) fn reserve_entry(&mut self, to: &RelPath) -> Result<(), WorkspaceError> {
        self.check_time()?;
        self.entries_left = self
            .entries_left
            .checked_sub(1)
            .ok_or_else(|| WorkspaceError::OverQuota { path: to.to_string() })?;
        Ok(())
    }

    /// How many of these bytes may be written, at least one.
    pub(super) fn allow_bytes(&self, to: &RelPath, wanted: u64) -> Result<u64, WorkspaceError> {
        self.check_time()?;
        match self.bytes_left.min(wanted) {
            0 => Err(WorkspaceError::OverQuota { path: to.to_string() }),
            allowed => Ok(allowed),
        }
    }

    /// Counts written bytes.
    pub(super) fn use_bytes(&mut self, count: u64) {
        self.bytes_left = self.bytes_left.saturating_sub(count);
    }

    /// Returns the bytes of a file that was replaced.
    pub(super) fn return_bytes(&mut self, count: u64) {
        self.bytes_left = self.bytes_left.saturating_add(count);
    }

    fn check_time(&self) -> Result<(), WorkspaceError> {
        if self.cancel.is_some_and(CancelToken::is_cancelled) {
            return Err(WorkspaceError::Cancelled);
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(WorkspaceError::TimedOut);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::time::Duration;

    use skillbox_model::{ByteSize, InputMode};

    use super::super::{Backing, InputSource, OpenInput, stage_inputs};
    use super::*;

    fn stage(reader: Box<dyn Read + Send>, cancel: &CancelToken, wall: Duration) -> WorkspaceError {
        let directory = tempfile::tempdir().unwrap();
        let root = File::open(directory.path()).unwrap();
        let workspace = Workspace::new(root.into(), None, Backing::Disk);
        let limits = Limits {
            wall,
            cpu: wall,
            cpu_quota_millis: None,
            memory: ByteSize(64 << 20),
            pids: 16,
            open_files: 64,
            file: ByteSize(64 << 20),
            workspace: ByteSize(64 << 20),
            workspace_inodes: 100,
            output: ByteSize(64 << 10),
        };
        let input = OpenInput {
            from: "artifact://x".to_owned(),
            to: RelPath::parse("work/x").unwrap(),
            mode: InputMode::Copy,
            source: InputSource::Reader(reader),
        };
        let limits = StagingLimits::new(&limits, &workspace, cancel);
        let error = stage_inputs(&workspace, vec![input], limits).unwrap_err().source;
        assert!(
            !directory.path().join("work/x").exists(),
            "the unfinished file is removed"
        );
        error
    }

    #[test]
    fn staging_ends_at_the_quota_at_the_deadline_and_when_it_is_cancelled() {
        let endless = || std::io::repeat(1);
        let cancel = CancelToken::new().unwrap();
        let error = stage(Box::new(endless()), &cancel, Duration::from_secs(60));
        assert!(matches!(error, WorkspaceError::OverQuota { .. }), "{error}");
        assert!(error.is_full());
        let error = stage(Box::new(endless()), &cancel, Duration::ZERO);
        assert!(matches!(error, WorkspaceError::TimedOut), "{error}");
        cancel.cancel();
        let error = stage(Box::new(endless()), &cancel, Duration::from_secs(60));
        assert!(matches!(error, WorkspaceError::Cancelled), "{error}");
    }
}
