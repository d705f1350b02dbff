//! The spawner: a small process of one thread that is the parent of every sandbox.

mod handle;
mod launch;
mod process;
pub(crate) mod protocol;
mod sandbox;
mod sanitize;
mod stage;

pub use handle::{LaunchError, LaunchFds, Spawner, SpawnerError, SpawnerOptions, become_spawner_if_asked};
pub use sandbox::{Ended, LimitHits, Sandbox, ScriptEnd};
pub(crate) use stage::{DEVICES, ROOT_MOUNT_POINT, write_id_maps};
