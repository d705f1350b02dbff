//! Stages, runs and collects one job: from a parsed request to its result and output files.
//!
//! `job` parses the request; `snapshot` stores frozen skills; `workspace` stages inputs and collects outputs; `local`
//! runs the job in the kernel's sandbox and `docker` in a container. Each step takes the value of the previous one.
//! This crate does not interpret skills, decides no policy and prints nothing.

mod cancel;
mod capture;
pub mod docker;
mod embedded_runner;
mod event_sink;
mod execution_result;
mod executor;
pub mod job;
mod layout;
mod local;
mod network_access;
mod outcome;
mod output_stream;
mod process_identity;
pub mod snapshot;
mod staged_job;
pub mod workspace;

pub use cancel::CancelToken;
pub use capture::{CapturedOutput, OutputCapture};
pub use docker::{DockerError, DockerExecutor, DockerOptions, FilesToFetch};
pub use embedded_runner::start_spawner;
pub use event_sink::EventSink;
pub use execution_result::ExecutionResult;
pub use executor::{Executor, ExecutorError, RunParams};
pub use local::{Launcher, LocalError, LocalExecutor};
pub use network_access::{NetworkAccess, NetworkAccessError};
pub use skillbox_egress::{AddressSource, Egress, EgressLimits, FixedAddress, Redactor, RedactorError, TlsRoots};
pub use staged_job::{PackageMounts, StagedJob};
