//! Running a job as a process of this host, in the kernel's sandbox.

mod disk_watch;
mod error;
mod executor;
mod housekeeping;
mod in_the_open;
mod plans;
mod supervise;
mod trial;
mod verdict;

pub use error::LocalError;
pub use executor::{Launcher, LocalExecutor};
pub(crate) use supervise::Killed;
pub(crate) use verdict::{Evidence, decide};
