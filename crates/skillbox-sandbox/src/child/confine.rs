//! The irreversible restrictions of a process: capabilities, no_new_privs, Landlock, seccomp.

use std::io;

use super::capabilities;
use super::landlock::{PendingRuleset, restrict_self};
use super::op_error::OpError;
use crate::plan::{ConfineOp, LandlockRule};

/// A Landlock ruleset that a parked sandbox created before its run.
pub(super) struct PreparedLandlock {
    pub ruleset: PendingRuleset,
    /// The rules for paths that the run mounts. They are added once the paths exist.
    pub run_mount_rules: Vec<LandlockRule>,
}

/// Applies one operation to this process.
pub(super) fn confine(op: &ConfineOp) -> Result<(), OpError> {
    match op {
        ConfineOp::DropCapabilities => capabilities::drop_capabilities().map_err(OpError::during("drop capabilities")),
        ConfineOp::NoNewPrivileges => {
            rustix::thread::set_no_new_privs(true).map_err(OpError::during("set no_new_privs"))
        }
        ConfineOp::Landlock {
            abi,
            files,
            refuse_tcp,
            tcp_ports,
            scope,
        } => restrict_self(*abi, files.as_deref(), refuse_tcp.then_some(tcp_ports), *scope).map_err(landlock_error()),
        ConfineOp::Seccomp { program, .. } => crate::seccomp::load(program).map_err(OpError::during("load the filter")),
    }
}

/// Applies one operation to this process. A Landlock operation uses the prepared ruleset, if there is one.
pub(super) fn confine_with_ruleset(
    op: &ConfineOp,
    landlock: Option<io::Result<PreparedLandlock>>,
) -> Result<(), OpError> {
    match (op, landlock) {
        (ConfineOp::Landlock { .. }, Some(landlock)) => landlock
            .and_then(|prepared| prepared.ruleset.add_rules(&prepared.run_mount_rules))
            .and_then(PendingRuleset::enforce)
            .map_err(landlock_error()),
        (op, _) => confine(op),
    }
}

fn landlock_error() -> impl FnOnce(io::Error) -> OpError {
    OpError::during("apply Landlock")
}
