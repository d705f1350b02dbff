//! The worker: takes jobs from the queue, runs them here, and records their results in the object store.

mod fetched_inputs;
mod fetched_skills;
mod held_jobs;
pub(super) mod presence;
mod puller;
mod run_job;
mod work;

pub use presence::PresentWorker;
pub use work::{WorkerOptions, WorkerSummary, work};
