//! What an installation reports.

use serde::Deserialize;

use crate::lock::{InterpreterBuild, LockedPackage};

/// The result that an installing script writes.
#[derive(Debug, Deserialize)]
pub(super) struct Installed {
    pub packages: Vec<LockedPackage>,
    pub interpreter: InterpreterBuild,
    pub platform: String,
    pub tool: String,
}
