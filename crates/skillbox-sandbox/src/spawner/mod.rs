//! The spawner: a small process of one thread that is the parent of every sandbox.

mod beside;
mod birth;
mod errors;
mod handle;
mod known_steps;
mod launch;
mod network;
mod options;
mod owner_maps;
mod process;
pub(crate) mod protocol;
mod requests;
mod runs;
mod sampling;
mod sandbox;
mod sanitize;
mod set_up;
mod slots;
mod sources;
mod stage;
mod template;

pub use errors::{LaunchError, SpawnerError};
pub use handle::{LaunchFds, Spawner, become_spawner_if_asked};
pub use options::{SpawnerKind, SpawnerOptions};
pub use sandbox::{Ended, LimitHits, Sandbox, ScriptEnd};
pub(crate) use sanitize::reset_signals;
pub(crate) use stage::write_id_maps;
