//! The runs of one tenant: those that go on, and the last that are over.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use skillbox_model::RunId;

use super::record::{RunRecord, locked};

/// A result is kept for so long.
const KEPT: Duration = Duration::from_secs(15 * 60);
/// So many results are kept.
const MAX_ENDED: usize = 500;
/// So many bytes of results are kept.
const MAX_BYTES: usize = 64 << 20;

/// The runs of a tenant.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// By name, which is by time.
    runs: BTreeMap<RunId, Arc<RunRecord>>,
    /// Those that are over, in the order of their ends.
    ended: VecDeque<Ended>,
    /// What the ended ones take in memory.
    bytes: usize,
}

#[derive(Debug)]
struct Ended {
    id: RunId,
    when: Instant,
    bytes: usize,
}

impl Registry {
    /// Remembers a run that begins.
    pub(crate) fn add(&self, record: Arc<RunRecord>) {
        locked(&self.0).runs.insert(record.id.clone(), record);
    }

    /// A run is over; results whose time has passed, or that are too many, are forgotten.
    pub(crate) fn note_end(&self, record: &RunRecord) {
        let ended = Ended {
            id: record.id.clone(),
            when: Instant::now(),
            bytes: record.bytes(),
        };
        let mut known = locked(&self.0);
        if !known.runs.contains_key(&ended.id) {
            // Removed meanwhile.
            return;
        }
        known.bytes += ended.bytes;
        known.ended.push_back(ended);
        known.forget();
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<RunRecord>> {
        let id = RunId::parse(id).ok()?;
        let mut known = locked(&self.0);
        known.forget();
        known.runs.get(&id).cloned()
    }

    pub(crate) fn remove(&self, id: &RunId) {
        let mut known = locked(&self.0);
        known.runs.remove(id);
        if let Some(place) = known.ended.iter().position(|ended| ended.id == *id)
            && let Some(ended) = known.ended.remove(place)
        {
            known.bytes -= ended.bytes;
        }
    }

    /// Every run that is known, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<RunRecord>> {
        let mut known = locked(&self.0);
        known.forget();
        known.runs.values().cloned().collect()
    }
}

impl Known {
    /// The newest are kept, and the very last always.
    fn forget(&mut self) {
        while let Some(oldest) = self.ended.front() {
            let is_too_much = self.ended.len() > MAX_ENDED || (self.bytes > MAX_BYTES && self.ended.len() > 1);
            if !is_too_much && oldest.when.elapsed() < KEPT {
                return;
            }
            self.bytes -= oldest.bytes;
            self.runs.remove(&oldest.id);
            self.ended.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ApiError;

    #[test]
    fn old_results_make_room_and_what_goes_on_is_never_forgotten() {
        let registry = Registry::default();
        let make = |number: usize| RunRecord::new(RunId::parse(format!("r{number:05}")).unwrap(), "s".into(), None);
        let going = make(0).unwrap();
        registry.add(going.clone());
        for number in 1..=MAX_ENDED + 10 {
            let run = make(number).unwrap();
            registry.add(run.clone());
            run.finish(Err(ApiError::invalid("x")));
            registry.note_end(&run);
        }
        let all = registry.all();
        assert_eq!(all.len(), MAX_ENDED + 1);
        assert_eq!(all[0].id, going.id);
        assert!(registry.get("r00001").is_none() && registry.get("../x").is_none());
        let last = all.last().unwrap();
        registry.remove(&last.id);
        assert!(registry.get(last.id.as_str()).is_none());
        assert_eq!(registry.all().len(), MAX_ENDED);
    }
}
