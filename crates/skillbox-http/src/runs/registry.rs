//! The runs of one tenant: active runs and recent results.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use skillbox_model::RunId;

use super::record::RunRecord;
use crate::lock::lock;

/// How long results are kept.
const RESULT_TTL: Duration = Duration::from_secs(15 * 60);
/// The number of results that are kept.
const MAX_RESULTS: usize = 500;
/// The total size of results that are kept.
const MAX_RESULT_BYTES: usize = 64 << 20;

/// The runs of a tenant.
#[derive(Debug, Default)]
pub(crate) struct RunRegistry(Mutex<RegistryState>);

#[derive(Debug, Default)]
struct RegistryState {
    /// Sorted by ID, and so by start time.
    runs: BTreeMap<RunId, Arc<RunRecord>>,
    /// The finished runs, in the order in which they finished.
    finished: VecDeque<FinishedRun>,
    /// The size of the finished runs.
    bytes: usize,
}

#[derive(Debug)]
struct FinishedRun {
    id: RunId,
    finished_at: Instant,
    bytes: usize,
}

impl RunRegistry {
    /// Adds a new run.
    pub(crate) fn add(&self, record: Arc<RunRecord>) {
        lock(&self.0).runs.insert(record.id.clone(), record);
    }

    /// Records the end of a run, and drops results that are too old or too many.
    pub(crate) fn mark_finished(&self, record: &RunRecord) {
        let finished = FinishedRun {
            id: record.id.clone(),
            finished_at: Instant::now(),
            bytes: record.bytes(),
        };
        let mut state = lock(&self.0);
        if !state.runs.contains_key(&finished.id) {
            // The run was removed in the meantime.
            return;
        }
        state.bytes += finished.bytes;
        state.finished.push_back(finished);
        state.drop_old_results();
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<RunRecord>> {
        let id = RunId::parse(id).ok()?;
        let mut state = lock(&self.0);
        state.drop_old_results();
        state.runs.get(&id).cloned()
    }

    pub(crate) fn remove(&self, id: &RunId) {
        let mut state = lock(&self.0);
        state.runs.remove(id);
        if let Some(index) = state.finished.iter().position(|finished| finished.id == *id)
            && let Some(finished) = state.finished.remove(index)
        {
            state.bytes -= finished.bytes;
        }
    }

    /// All runs, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<RunRecord>> {
        let mut state = lock(&self.0);
        state.drop_old_results();
        state.runs.values().cloned().collect()
    }
}

impl RegistryState {
    /// Drops the oldest results beyond the bounds, but never the last one.
    fn drop_old_results(&mut self) {
        while let Some(oldest) = self.finished.front() {
            let is_over_bounds =
                self.finished.len() > MAX_RESULTS || (self.bytes > MAX_RESULT_BYTES && self.finished.len() > 1);
            if !is_over_bounds && oldest.finished_at.elapsed() < RESULT_TTL {
                return;
            }
            self.bytes -= oldest.bytes;
            self.runs.remove(&oldest.id);
            self.finished.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ApiError;

    #[test]
    fn old_results_are_dropped_and_active_runs_are_kept() {
        let registry = RunRegistry::default();
        let make = |number: usize| RunRecord::new(RunId::parse(format!("r{number:05}")).unwrap(), "s".into(), None);
        let active = make(0).unwrap();
        registry.add(active.clone());
        for number in 1..=MAX_RESULTS + 10 {
            let run = make(number).unwrap();
            registry.add(run.clone());
            run.finish(Err(ApiError::invalid("x")));
            registry.mark_finished(&run);
        }
        let all = registry.all();
        assert_eq!(all.len(), MAX_RESULTS + 1);
        assert_eq!(all[0].id, active.id);
        assert!(registry.get("r00001").is_none() && registry.get("../x").is_none());
        let last = all.last().unwrap();
        registry.remove(&last.id);
        assert!(registry.get(last.id.as_str()).is_none());
        assert_eq!(registry.all().len(), MAX_RESULTS);
    }
}
