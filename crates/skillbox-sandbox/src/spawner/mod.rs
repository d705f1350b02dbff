//! The spawner: a small process of one thread that is the parent of every sandbox.

mod beside;
mod birth;
mod handle;
mod known_steps;
mod launch;
mod network;
mod owner_maps;
mod process;
pub(crate) mod protocol;
mod sampling;
mod sandbox;
mod sanitize;
mod set_up;
mod slots;
mod sources;
mod stage;
mod template;

pub use handle::{LaunchError, LaunchFds, Spawner, SpawnerError, SpawnerKind, SpawnerOptions, become_spawner_if_asked};
pub use sandbox::{Ended, LimitHits, Sandbox, ScriptEnd};
pub(crate) use sanitize::reset_signals;
pub(crate) use stage::write_id_maps;
