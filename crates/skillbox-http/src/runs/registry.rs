//! The runs of one tenant: those that go on, and the last that are over.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use skillbox_model::RunId;

use super::record::{RunRecord, locked};

/// A result is kept for so long.
const KEPT: Duration = Duration::from_secs(15 * 60);
/// So many results are kept.
const MAX_ENDED: usize = 500;
/// So many bytes of results are kept.
const MAX_BYTES: usize = 64 << 20;

/// By name, which is by time.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<BTreeMap<RunId, Arc<RunRecord>>>);

impl Registry {
    /// Remembers a run, and forgets those whose time has passed.
    pub(crate) fn add(&self, record: Arc<RunRecord>) {
        let mut runs = locked(&self.0);
        runs.insert(record.id.clone(), record);
        forget(&mut runs);
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<RunRecord>> {
        let id = RunId::parse(id).ok()?;
        locked(&self.0).get(&id).cloned()
    }

    pub(crate) fn remove(&self, id: &RunId) {
        locked(&self.0).remove(id);
    }

    /// Every run that is known, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<RunRecord>> {
        let mut runs = locked(&self.0);
        forget(&mut runs);
        runs.values().cloned().collect()
    }
}

fn forget(runs: &mut BTreeMap<RunId, Arc<RunRecord>>) {
    runs.retain(|_, run| run.ended_at().is_none_or(|ended| ended.elapsed() < KEPT));
    let (mut count, mut bytes) = (0, 0);
    let mut too_much = Vec::new();
    // The newest are kept.
    for (id, run) in runs.iter().rev().filter(|(_, run)| run.ended_at().is_some()) {
        count += 1;
        bytes += run.bytes();
        if count > MAX_ENDED || (bytes > MAX_BYTES && count > 1) {
            too_much.push(id.clone());
        }
    }
    for id in too_much {
        runs.remove(&id);
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
            run.finish(Err(ApiError::invalid("x")));
            registry.add(run);
        }
        let all = registry.all();
        assert_eq!(all.len(), MAX_ENDED + 1);
        assert_eq!(all[0].id, going.id);
        assert!(registry.get("r00001").is_none() && registry.get("../x").is_none());
    }
}
