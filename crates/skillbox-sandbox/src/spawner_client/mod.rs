//! The server's side of the spawner: start it, send requests, follow the sandboxes that it launches.

mod answers;
mod cpu_sampling;
mod errors;
mod sandbox;
mod spawner;
mod step_cache;

pub use errors::{LaunchError, SpawnerError};
pub use sandbox::{LimitHits, ParkingFailure, Sandbox, SandboxResult, ScriptEnd};
pub use spawner::{LaunchFds, Spawner};
