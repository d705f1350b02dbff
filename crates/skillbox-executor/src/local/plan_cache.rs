//! A cache of launch plans. Runs of a server mostly differ only in their command, and planning computes about sixty
//! steps.

use std::sync::{Mutex, PoisonError};

use skillbox_model::Limits;
use skillbox_sandbox::{HostFacts, Job, LaunchPlan, PlanError, Profile};

/// Enough for a server with a few skills.
const CACHE_CAPACITY: usize = 8;

/// The cached plans of one launcher. Its facts never change.
#[derive(Debug, Default)]
pub(super) struct PlanCache {
    /// Ordered by use: the most recently used plan is the last one.
    entries: Mutex<Vec<CachedPlan>>,
}

#[derive(Debug)]
struct CachedPlan {
    profile: Profile,
    limits: Limits,
    /// Without argv and environment, which may contain secrets.
    job: Job,
    plan: LaunchPlan,
}

impl CachedPlan {
    fn matches(&self, profile: &Profile, limits: &Limits, job: &Job) -> bool {
        let cached = &self.job;
        cached.cwd == job.cwd
            && cached.binds == job.binds
            && cached.workspace == job.workspace
            && cached.workspace_target == job.workspace_target
            && cached.writable_skill == job.writable_skill
            && cached.unconfined == job.unconfined
            && cached.listening_ports == job.listening_ports
            && self.limits == *limits
            && self.profile == *profile
    }
}

impl PlanCache {
    /// Returns the plan of this job: a cached one with the new command, or a new one.
    pub(super) fn plan(
        &self,
        profile: &Profile,
        limits: &Limits,
        facts: &HostFacts,
        mut job: Job,
    ) -> Result<LaunchPlan, PlanError> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = entries.iter().position(|entry| entry.matches(profile, limits, &job)) {
            let found = entries.remove(index);
            let plan = found.plan.with_command_of(&job);
            entries.push(found);
            return plan;
        }
        drop(entries);
        let plan = skillbox_sandbox::plan(profile, limits, facts, &job)?;
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= CACHE_CAPACITY {
            entries.remove(0);
        }
        job.argv.clear();
        job.env.clear();
        entries.push(CachedPlan {
            profile: profile.clone(),
            limits: limits.clone(),
            job,
            plan: plan.without_command(),
        });
        Ok(plan)
    }
}
