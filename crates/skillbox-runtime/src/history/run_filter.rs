//! Which runs a caller wants to see.

use skillbox_model::{RunId, TenantName};

use super::past_run::RunSummary;

/// The tenants whose runs are selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TenantFilter {
    /// All runs of the state directory.
    #[default]
    All,
    /// The runs of one tenant; without a name, those of the host's own user.
    Only(Option<TenantName>),
}

/// Selects runs.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// The tenants.
    pub tenant: TenantFilter,
    /// Only runs of this skill.
    pub skill: Option<String>,
    /// Only runs that failed, were refused or lost.
    pub failed: bool,
    /// Only runs that started at this time or later, in milliseconds since 1970.
    pub since_ms: u64,
    /// Only runs before this one: the last of the page before.
    pub before: Option<RunId>,
    /// The maximum number of runs; the newest are selected.
    pub limit: Option<usize>,
}

impl RunFilter {
    /// Whether the run is selected, whatever the number of runs.
    pub fn matches(&self, run: &RunSummary) -> bool {
        let is_of_tenant = match &self.tenant {
            TenantFilter::All => true,
            TenantFilter::Only(tenant) => run.tenant == *tenant,
        };
        is_of_tenant
            && self.skill.as_ref().is_none_or(|skill| run.skill == *skill)
            && (!self.failed || run.is_failed())
            && run.started_ms >= self.since_ms
            && self.before.as_ref().is_none_or(|before| run.run_id < *before)
    }
}
