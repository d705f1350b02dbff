//! The spawner: a small, single-threaded process that is the parent of every sandbox.

mod clone_child;
mod clone_spawner;
mod cloned_child;
mod cpu_affinity;
mod entry;
mod events;
mod launch;
mod listening_sockets;
mod main_loop;
mod mount_namespaces;
mod network;
mod owner_idmaps;
mod parked_sandboxes;
mod parking;
mod preparation;
mod requests;
mod run;
mod run_mounts;
mod sanitize;
mod state;
mod step_cache;
mod template;

pub(crate) use cpu_affinity::CpuAffinity;
pub use entry::run_spawner_if_requested;
pub(crate) use entry::{SPAWNER_ARG0, run_forked_spawner};
