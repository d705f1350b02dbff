//! The runs of one tenant: active runs and recent results.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use skillbox_model::RunId;

use super::record::RunRecord;
use crate::lock::lock;

/// The number of results that are kept.
const MAX_RESULTS: usize = 500;
/// The total size of results that are kept.
const MAX_RESULT_BYTES: usize = 16 << 20;
/// The total size of the files of runs that are kept.
pub(crate) const MAX_KEPT_FILE_BYTES: u64 = 1 << 30;
/// The number of removed runs whose ids are known to be gone.
const MAX_GONE: usize = 10_000;

/// The runs of a tenant.
#[derive(Debug)]
pub(crate) struct RunRegistry {
    /// How long results, files, and the ids of removed runs are kept.
    ttl: Duration,
    state: Mutex<RegistryState>,
}

/// What the registry knows of a run.
#[derive(Debug)]
pub(crate) enum KnownRun {
    Found(Arc<RunRecord>),
    /// It was deleted, or its result has expired.
    Gone,
    Unknown,
}

#[derive(Debug, Default)]
struct RegistryState {
    /// Sorted by ID, and so by start time.
    runs: BTreeMap<RunId, Arc<RunRecord>>,
    /// The finished runs, in the order in which they finished.
    finished: VecDeque<FinishedRun>,
    /// The size of the finished runs.
    bytes: usize,
    /// The size of the files of finished runs.
    file_bytes: u64,
    /// The removed runs, in the order of their removal.
    gone: VecDeque<(RunId, Instant)>,
}

#[derive(Debug)]
struct FinishedRun {
    id: RunId,
    finished_at: Instant,
    bytes: usize,
    file_bytes: u64,
}

impl RunRegistry {
    pub(crate) fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            state: Mutex::default(),
        }
    }

    /// How long results and files are kept.
    pub(crate) fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Adds a new run.
    pub(crate) fn add(&self, record: Arc<RunRecord>) {
        lock(&self.state).runs.insert(record.id.clone(), record);
    }

    /// Records the end of a run, and drops results that are too old or too many.
    pub(crate) fn mark_finished(&self, record: &RunRecord) {
        let finished = FinishedRun {
            id: record.id.clone(),
            finished_at: Instant::now(),
            bytes: record.bytes(),
            file_bytes: record.files().map_or(0, |files| files.bytes),
        };
        let mut state = lock(&self.state);
        if !state.runs.contains_key(&finished.id) {
            // The run was removed in the meantime.
            return;
        }
        state.bytes += finished.bytes;
        state.file_bytes += finished.file_bytes;
        state.finished.push_back(finished);
        state.drop_old_results(self.ttl);
        state.drop_old_files();
    }

    pub(crate) fn find(&self, id: &str) -> KnownRun {
        let Ok(id) = RunId::parse(id) else {
            return KnownRun::Unknown;
        };
        let mut state = lock(&self.state);
        state.drop_old_results(self.ttl);
        match state.runs.get(&id) {
            Some(record) => KnownRun::Found(record.clone()),
            None if state.gone.iter().any(|(gone, _)| *gone == id) => KnownRun::Gone,
            None => KnownRun::Unknown,
        }
    }

    pub(crate) fn remove(&self, id: &RunId) {
        let mut state = lock(&self.state);
        if state.runs.remove(id).is_some() {
            state.gone.push_back((id.clone(), Instant::now()));
        }
        if let Some(index) = state.finished.iter().position(|finished| finished.id == *id)
            && let Some(finished) = state.finished.remove(index)
        {
            state.bytes -= finished.bytes;
            state.file_bytes -= finished.file_bytes;
        }
    }

    /// All runs, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<RunRecord>> {
        let mut state = lock(&self.state);
        state.drop_old_results(self.ttl);
        state.runs.values().cloned().collect()
    }
}

impl RegistryState {
    /// Drops the oldest results beyond the bounds, but never the last one.
    fn drop_old_results(&mut self, ttl: Duration) {
        while self.gone.len() > MAX_GONE || self.gone.front().is_some_and(|(_, removed)| removed.elapsed() >= ttl) {
            self.gone.pop_front();
        }
        while let Some(oldest) = self.finished.front() {
            let is_over_bounds =
                self.finished.len() > MAX_RESULTS || (self.bytes > MAX_RESULT_BYTES && self.finished.len() > 1);
            if !is_over_bounds && oldest.finished_at.elapsed() < ttl {
                return;
            }
            self.bytes -= oldest.bytes;
            self.file_bytes -= oldest.file_bytes;
            self.runs.remove(&oldest.id);
            if let Some(oldest) = self.finished.pop_front() {
                self.gone.push_back((oldest.id, Instant::now()));
            }
        }
    }

    /// Drops the files of the oldest runs beyond the bound. Their results stay.
    fn drop_old_files(&mut self) {
        for finished in &mut self.finished {
            if self.file_bytes <= MAX_KEPT_FILE_BYTES {
                return;
            }
            self.file_bytes -= std::mem::take(&mut finished.file_bytes);
            if let Some(record) = self.runs.get(&finished.id) {
                record.drop_files();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ApiError;

    #[test]
    fn old_results_are_dropped_and_active_runs_are_kept() {
        let registry = RunRegistry::new(Duration::from_secs(900));
        let make = |number: usize| RunRecord::new(RunId::parse(format!("r{number:05}")).unwrap(), "s".into(), None);
        let active = make(0).unwrap();
        registry.add(active.clone());
        for number in 1..=MAX_RESULTS + 10 {
            let run = make(number).unwrap();
            registry.add(run.clone());
            run.finish(Err(ApiError::invalid("x")), None);
            registry.mark_finished(&run);
        }
        let all = registry.all();
        assert_eq!(all.len(), MAX_RESULTS + 1);
        assert_eq!(all[0].id, active.id);
        let is_gone = |id: &str| matches!(registry.find(id), KnownRun::Gone);
        assert!(is_gone("r00001") && matches!(registry.find("../x"), KnownRun::Unknown));
        let last = all.last().unwrap();
        registry.remove(&last.id);
        assert!(is_gone(last.id.as_str()) && matches!(registry.find("r99999"), KnownRun::Unknown));
        assert_eq!(registry.all().len(), MAX_RESULTS);
    }
}
