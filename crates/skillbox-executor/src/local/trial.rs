//! Trying a profile on this host by doing: a real launch of a command that does nothing.

use std::time::Duration;

use skillbox_model::{Enforcement, Limits};
use skillbox_sandbox::Profile;

use super::{LocalError, LocalExecutor};
use crate::job::{JobSpec, ProfileBounds};
use crate::{Cancel, EventSink, Placement};

impl LocalExecutor {
    /// Launches `true` under a profile and gives what was enforced, or why it is refused here.
    pub fn trial(&self, profile: &Profile) -> Result<Enforcement, LocalError> {
        let limits = Limits {
            wall: Duration::from_secs(20),
            ..profile.limits.default.clone()
        };
        let spec = JobSpec::trial(ProfileBounds {
            max_wall: limits.wall,
            limits,
        });
        let workspace = self.create_workspace(profile, &spec.limits)?;
        let placement = Placement {
            env: profile.environment(|_| None).into_iter().collect(),
            ..Placement::empty()
        };
        let cancel = Cancel::new().map_err(LocalError::Pipe)?;
        let finished = self.run(&spec, profile, placement, &workspace, &cancel, &mut EventSink::silent())?;
        Ok(finished.enforcement)
    }
}
