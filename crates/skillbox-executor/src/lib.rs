//! Stages, runs and collects one job: from a parsed request to what came back.
//!
//! `job` turns the request into types; `snapshot` freezes the skill; `workspace` is where inputs go in and outputs
//! come out; `local` runs it in the kernel's sandbox, `docker` in a container. Every step takes the value of the one
//! before. This crate
//! does not know what a skill means, decides no policy and prints nothing.

mod cancel;
mod capture;
pub mod docker;
mod embedded_program;
mod event_sink;
mod executor;
mod finished;
pub mod job;
mod local;
mod placement;
pub mod snapshot;
pub mod workspace;

pub use cancel::Cancel;
pub use capture::{Capture, Captured};
pub use docker::{Bring, DockerError, DockerExecutor, DockerOptions};
pub use embedded_program::start_spawner;
pub use event_sink::EventSink;
pub use executor::{Executor, ExecutorError, Run};
pub use finished::Finished;
pub use local::{Launcher, LocalError, LocalExecutor};
pub use placement::Placement;
