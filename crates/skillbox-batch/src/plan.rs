//! Which jobs of a batch have to run: all but those with a durable result under their current key.

use std::collections::HashSet;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use skillbox_executor::CancelToken;
use skillbox_model::{Digest, JobId, RunRequest};
use skillbox_repository::Catalog;
use skillbox_runtime::RequestDigests;

use crate::batch::BatchRun;
use crate::result_directory::ExistingResults;
use crate::result_line::JobStatus;

/// Which jobs have to run.
#[derive(Debug, Default)]
pub struct Plan {
    /// The indexes of these jobs.
    pub pending: Vec<usize>,
    /// Jobs whose results are older than the request, or failed and run again.
    pub(crate) superseded: HashSet<JobId>,
    /// Jobs with results that are not in the list.
    pub(crate) unlisted: HashSet<JobId>,
}

/// Subtracts the jobs with a durable result under their current key from the list.
pub fn plan(batch: BatchRun<'_>, existing: &ExistingResults) -> Plan {
    if existing.is_empty() {
        return Plan {
            pending: (0..batch.jobs.len()).collect(),
            ..Plan::default()
        };
    }
    let digests = RequestDigests::new(batch.runtime);
    let catalog = batch.runtime.catalog();
    let next = AtomicUsize::new(0);
    let compare = || {
        let (mut pending, mut found) = (Vec::new(), Vec::new());
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = batch.jobs.get(index) else {
                return (pending, found);
            };
            let result = existing.by_id.get(&job.id);
            let is_done = result.is_some_and(|(key, status)| {
                let is_final = *status == JobStatus::Ok || !batch.options.rerun_failed;
                is_final
                    && *key == current_key(&digests, &batch.prepare(job.request), &catalog, batch.cancel)
                    && key.is_some()
            });
            if !is_done {
                pending.push(index);
            }
            if result.is_some() {
                found.push((job.id, is_done));
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let parts: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(compare)).collect();
        let joined = workers.into_iter().map(thread::ScopedJoinHandle::join);
        joined
            .map(|part| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut plan = Plan {
        unlisted: existing.by_id.keys().cloned().collect(),
        ..Plan::default()
    };
    for (pending, found) in parts {
        plan.pending.extend(pending);
        for (id, is_done) in found {
            plan.unlisted.remove(&id);
            if !is_done {
                plan.superseded.insert(id);
            }
        }
    }
    plan.pending.sort_unstable();
    plan
}

fn current_key(
    digests: &RequestDigests<'_>,
    request: &RunRequest,
    catalog: &Catalog,
    cancel: &CancelToken,
) -> Option<Digest> {
    let digest = digests.digest(request, catalog, cancel).ok()?;
    Some(digest.key)
}
