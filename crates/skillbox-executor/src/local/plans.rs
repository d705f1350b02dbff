//! Plans that were made before. Runs of a server mostly differ in their command alone, and a plan has some sixty steps.

use std::sync::{Mutex, PoisonError};

use skillbox_model::Limits;
use skillbox_sandbox::{HostFacts, Job, LaunchPlan, PlanError, Profile};

/// As many as a server with a few skills has use for.
const MOST: usize = 8;

/// The plans of one launcher, whose facts never change.
#[derive(Debug, Default)]
pub(super) struct Plans {
    /// The one that was used last stands at the end.
    kept: Mutex<Vec<Kept>>,
}

#[derive(Debug)]
struct Kept {
    profile: Profile,
    limits: Limits,
    /// Without its command, which may hold what is nobody else's business.
    job: Job,
    plan: LaunchPlan,
}

impl Kept {
    fn is_for(&self, profile: &Profile, limits: &Limits, job: &Job) -> bool {
        let known = &self.job;
        known.cwd == job.cwd
            && known.binds == job.binds
            && known.workspace == job.workspace
            && known.workspace_target == job.workspace_target
            && known.unconfined == job.unconfined
            && self.limits == *limits
            && self.profile == *profile
    }
}

impl Plans {
    /// The plan of this job, made anew where nothing like it was planned before.
    pub(super) fn plan(
        &self,
        profile: &Profile,
        limits: &Limits,
        facts: &HostFacts,
        mut job: Job,
    ) -> Result<LaunchPlan, PlanError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = kept.iter().position(|kept| kept.is_for(profile, limits, &job)) {
            let found = kept.remove(index);
            let plan = found.plan.with_command_of(&job);
            kept.push(found);
            return plan;
        }
        drop(kept);
        let plan = skillbox_sandbox::plan(profile, limits, facts, &job)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST {
            kept.remove(0);
        }
        job.argv.clear();
        job.env.clear();
        kept.push(Kept {
            profile: profile.clone(),
            limits: limits.clone(),
            job,
            plan: plan.without_command(),
        });
        Ok(plan)
    }
}
