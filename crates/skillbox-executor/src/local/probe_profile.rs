//! Probes a profile on this host with a real launch of `true`.

use std::time::Duration;

use skillbox_model::{Enforcement, Limits};
use skillbox_sandbox::Profile;

use super::{LocalError, LocalExecutor};
use crate::job::{JobSpec, ProfileBounds, RequestCaps};
use crate::{CancelToken, EventSink, StagedJob};

impl LocalExecutor {
    /// Launches `true` under a profile. Returns what was enforced, or why this host refuses the profile.
    pub fn probe_profile(&self, profile: &Profile) -> Result<Enforcement, LocalError> {
        let limits = Limits {
            wall: Duration::from_secs(20),
            ..profile.limits.default.clone()
        };
        let spec = JobSpec::for_probe(ProfileBounds {
            max_wall: limits.wall,
            limits,
            caps: RequestCaps::default(),
        });
        let workspace = self.create_workspace(profile, &spec.limits)?;
        let job = StagedJob {
            env: profile.initial_environment(|_| None).into_iter().collect(),
            ..StagedJob::empty()
        };
        let cancel = CancelToken::new().map_err(LocalError::Descriptor)?;
        let result = self.run(&spec, profile, job, &workspace, &cancel, &mut EventSink::silent())?;
        Ok(result.enforcement)
    }
}
