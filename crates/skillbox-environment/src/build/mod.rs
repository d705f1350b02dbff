//! Builds an environment as a sandboxed job.

mod failure;
mod installed;
mod job;

pub use failure::BuildError;
pub use job::{BuildHost, build_environment};
