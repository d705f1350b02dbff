//! Applies the steps of pid 1 that depend only on the profile and the limits.

use std::io;
use std::os::fd::AsFd;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use super::fds::ChildFds;
use super::op_error::{ClassifiedFailure, OpError};
use super::reaper::Descendants;
use super::{capabilities, identity};
use crate::host::UidGid;
use crate::id_maps::write_id_maps;
use crate::plan::{PrepareOp, Step, prepare_steps};
use crate::protocol::StepFailure;
use crate::root;

/// A prepared sandbox.
#[derive(Default)]
pub(super) struct PreparedSandbox {
    /// The descendants to kill when the run ends; none in a pid namespace, where the kernel kills them.
    pub descendants: Option<Descendants>,
    /// Preferred steps that failed.
    pub failed_preferred_steps: Vec<StepFailure>,
}

/// Applies every [`PrepareOp`], or returns the step that ends the launch.
pub(super) fn prepare(steps: &[Step], fds: &ChildFds) -> Result<PreparedSandbox, StepFailure> {
    let mut prepared = PreparedSandbox::default();
    for (step, op) in prepare_steps(steps) {
        if let Err(error) = apply(op, fds, &mut prepared) {
            match error.classify(step) {
                ClassifiedFailure::LaunchContinues(failure) => prepared.failed_preferred_steps.push(failure),
                ClassifiedFailure::LaunchEnds(failure) => return Err(failure),
            }
        }
    }
    Ok(prepared)
}

fn apply(op: &PrepareOp, fds: &ChildFds, prepared: &mut PreparedSandbox) -> Result<(), OpError> {
    match op {
        PrepareOp::NewSession => identity::new_session().map_err(OpError::during("setsid")),
        PrepareOp::MapIds { inside, outside } => {
            map_ids(fds, *inside, *outside).map_err(OpError::during("write the id maps"))
        }
        PrepareOp::BecomeUser(ids) => identity::become_user(*ids).map_err(OpError::during("set the ids")),
        PrepareOp::DieWithSpawner => {
            identity::die_with_spawner(fds.spawner.as_ref()).map_err(OpError::during("set the parent-death signal"))
        }
        PrepareOp::AdoptOrphans => {
            let descendants = Descendants::adopt(fds.proc.as_ref()).map_err(OpError::during("adopt orphans"))?;
            prepared.descendants = Some(descendants);
            Ok(())
        }
        PrepareOp::UnshareCgroupNamespace => {
            identity::unshare_cgroup_namespace().map_err(OpError::during("unshare the cgroup namespace"))
        }
        PrepareOp::Hostname(name) => {
            rustix::system::sethostname(name.as_bytes()).map_err(OpError::during("set the host name"))
        }
        PrepareOp::SharedMemory { bytes } => {
            root::mount_shared_memory(*bytes).map_err(OpError::during("mount /dev/shm"))
        }
        PrepareOp::Terminals { max } => root::mount_terminals(*max).map_err(OpError::during("mount /dev/pts")),
        PrepareOp::Proc => mount_fresh_proc(),
        PrepareOp::Mask { path } => root::mask_file(path).map_err(OpError::during("mask")),
        PrepareOp::EmptyBoundingSet => {
            capabilities::empty_bounding_set().map_err(OpError::during("empty the bounding set"))
        }
        PrepareOp::Undumpable => {
            set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(OpError::during("become undumpable"))
        }
    }
}

fn map_ids(fds: &ChildFds, inside: UidGid, outside: UidGid) -> io::Result<()> {
    let proc = fds
        .proc
        .as_ref()
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
    write_id_maps(proc.as_fd(), inside, outside)
}

/// Mounts a fresh `/proc`, or covers the outer one with an empty directory: the outer one must never stay visible.
fn mount_fresh_proc() -> Result<(), OpError> {
    root::mount_fresh_proc().map_err(|error| match root::cover_outer_proc() {
        Ok(()) => OpError::during("mount a fresh /proc")(error),
        Err(error) => OpError::fatal_during("cover the outer /proc")(error),
    })
}
