//! Batches on many hosts: NATS JetStream hands out the jobs, the object store is the record.

mod batch_name;
mod batch_store;
mod connection;
mod error;
mod follow;
mod job_stream;
mod message;
mod publish;
mod result_files;
mod skill_archive;
mod state;
mod submit;
mod worker;

pub use batch_name::{BatchName, Priority};
pub use batch_store::BatchStore;
pub use connection::{Queue, QueueOptions};
pub use error::QueueError;
pub use follow::{FollowedBatch, follow};
pub use message::{ListedJob, Manifest, ManifestFile, Submission};
pub use result_files::read_result_lines;
pub use state::{BatchState, cancel_batch, read_state};
pub use submit::{SubmitOptions, SubmittedBatch, submit};
pub use worker::{PresentWorker, WorkerOptions, WorkerSummary, work};
