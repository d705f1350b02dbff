//! The path of the workspace in the container.

/// The directory with the skills, inputs and outputs of the run.
pub const WORKSPACE: &str = "/workspace";
