//! The directory of the run in the container.

/// The workspace: skills, inputs and outputs.
pub const WORKSPACE: &str = "/workspace";
