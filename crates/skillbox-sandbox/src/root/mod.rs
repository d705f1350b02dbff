//! The root of the script: a skeleton, built once per profile, and the mounts that each sandbox adds to it.

mod per_run;
mod skeleton;
mod target;
mod workspace;

pub(crate) use per_run::{
    cover_outer_proc, mask_file, mount_fresh_proc, mount_shared_memory, open_mount_target, run_mount_attributes,
};
pub(crate) use skeleton::{Devices, HOST_BIND_ATTRIBUTES, Skeleton};
pub(crate) use workspace::create_workspace_filesystem;
