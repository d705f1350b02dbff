//! Batches: many runs from one list of jobs, with results that survive a crash.
//!
//! A front end of the runtime, which decides everything about a single run. Data moves in one direction: a job list
//! ([`JobList`]: lines of JSON, or files and a template) → the jobs without a durable result → the schedule → runs →
//! one result line for each job in the [`ResultDirectory`] → the [`Summary`]. A job counts as done only when its line is
//! on stable storage. Nothing here prints.

mod batch;
mod cause;
mod error;
mod file_glob;
mod halt;
mod job_lines;
mod job_list;
mod outcome;
mod placeholder;
mod plan;
mod progress;
mod queue;
mod result_directory;
mod result_line;
mod result_writer;
mod retry;
mod run;
mod schedule;
mod shell_text;
mod summary;
mod template;

pub use batch::{BatchOptions, BatchRun};
pub use cause::FailureCause;
pub use error::{BadLine, BatchError};
pub use file_glob::{FoundFile, FoundFiles, find_files};
pub use halt::{HaltReason, HaltRule};
pub use job_list::{BadLines, Job, JobList};
pub use plan::{Plan, plan};
pub use progress::Progress;
pub use queue::{
    BatchName, BatchState, BatchStore, FollowedBatch, ListedJob, Manifest, ManifestFile, PresentWorker, Priority,
    Queue, QueueError, QueueOptions, Submission, SubmitOptions, SubmittedBatch, WorkerOptions, WorkerSummary,
    cancel_batch, follow, read_result_lines, read_state, submit, work,
};
pub use result_directory::{BatchRecord, ExistingResults, ResultDirectory, read_existing, read_results};
pub use result_line::{JobStatus, ResultHead};
pub use retry::RetryPolicy;
pub use run::{CompletedBatch, run_batch};
pub use summary::{FailedJob, SlowJob, Summary};
pub use template::JobTemplate;
