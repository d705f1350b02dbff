//! The spawner: a small process of one thread that is the parent of every sandbox.

mod clone_child;
mod cloned_child;
mod cpu_affinity;
mod entry;
mod event;
mod launch;
mod mount_namespaces;
mod network;
mod owner_maps;
mod parking;
mod preparation;
mod process;
mod requests;
mod run;
mod run_mounts;
mod sanitize;
mod single_thread;
mod slots;
mod state;
mod step_cache;
mod template;

pub(crate) use cpu_affinity::CpuAffinity;
pub use entry::become_spawner_if_asked;
pub(crate) use entry::{SPAWNER_ARG0, fork_entry};
