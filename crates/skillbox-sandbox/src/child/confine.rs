//! The steps that confine a process for good: capabilities, privileges, Landlock, seccomp.

use std::io;

use super::capabilities;
use super::landlock::{PendingRuleset, restrict_self};
use super::step_error::StepError;
use crate::plan::{ConfineOp, LandlockRule};

/// A Landlock ruleset that a parked sandbox created ahead.
pub(super) struct PreparedLandlock {
    pub ruleset: PendingRuleset,
    /// The rules for paths that the run mounts.
    pub late_rules: Vec<LandlockRule>,
}

/// Applies one operation to this process.
pub(super) fn confine(op: &ConfineOp) -> Result<(), StepError> {
    match op {
        ConfineOp::DropCapabilities => {
            capabilities::drop_capabilities().map_err(StepError::during("drop capabilities"))
        }
        ConfineOp::NoNewPrivileges => {
            rustix::thread::set_no_new_privs(true).map_err(StepError::during("set no_new_privs"))
        }
        ConfineOp::Landlock {
            abi,
            files,
            refuse_tcp,
            scope,
        } => restrict_self(*abi, files.as_deref(), *refuse_tcp, *scope).map_err(landlock_error()),
        ConfineOp::Seccomp { program, .. } => {
            crate::seccomp::load(program).map_err(StepError::during("load the filter"))
        }
    }
}

/// Applies one operation to this process, with the ruleset that was created ahead.
pub(super) fn confine_with(op: &ConfineOp, landlock: Option<io::Result<PreparedLandlock>>) -> Result<(), StepError> {
    match (op, landlock) {
        (ConfineOp::Landlock { .. }, Some(landlock)) => landlock
            .and_then(|prepared| prepared.ruleset.grant(&prepared.late_rules))
            .and_then(PendingRuleset::enforce)
            .map_err(landlock_error()),
        (op, _) => confine(op),
    }
}

fn landlock_error() -> impl FnOnce(io::Error) -> StepError {
    StepError::during("apply Landlock")
}
