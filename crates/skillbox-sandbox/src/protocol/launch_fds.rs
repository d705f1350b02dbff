//! The descriptors of a launch request, in the order of the message.

use std::io;
use std::os::fd::OwnedFd;

use super::child_plan::ChildPlan;
use crate::plan::{RunOp, run_steps};

/// The descriptors that the spawner receives with a launch request.
pub(crate) struct ReceivedLaunchFds {
    pub answers: OwnedFd,
    pub stdio: [OwnedFd; 3],
    pub workspace: Option<OwnedFd>,
    pub binds: Vec<OwnedFd>,
}

impl ReceivedLaunchFds {
    /// Assigns the descriptors of a message to their purposes.
    pub fn from_message(descriptors: Vec<OwnedFd>, plan: &ChildPlan<'_>) -> io::Result<Self> {
        let mut descriptors = descriptors.into_iter();
        let mut next = || {
            descriptors
                .next()
                .ok_or_else(|| io::Error::from_raw_os_error(libc::EBADMSG))
        };
        let answers = next()?;
        let stdio = [next()?, next()?, next()?];
        let mounts_workspace = run_steps(&plan.steps).any(|(_, op)| matches!(op, RunOp::MountWorkspace { .. }));
        let workspace = if mounts_workspace { Some(next()?) } else { None };
        Ok(Self {
            answers,
            stdio,
            workspace,
            binds: descriptors.collect(),
        })
    }
}
