//! The script's root: its skeleton, made once per profile, and what each run mounts on it.

mod per_run;
mod skeleton;
mod target;
mod workspace;

pub(crate) use per_run::{attributes_of, cover_proc, fresh_proc, mask, mount_point, shared_memory};
pub(crate) use skeleton::{Devices, OF_HOST, Skeleton};
pub(crate) use workspace::new_workspace;
