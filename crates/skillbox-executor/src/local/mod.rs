//! Running a job as a process of this host, in the kernel's sandbox.

mod disk_watch;
mod error;
mod executor;
mod supervise;
mod trial;
mod verdict;

pub use error::LocalError;
pub use executor::LocalExecutor;
pub(crate) use supervise::Killed;
pub(crate) use verdict::{Evidence, decide};
