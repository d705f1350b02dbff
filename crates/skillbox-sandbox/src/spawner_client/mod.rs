//! The client side of the spawner: starts it, sends requests, and observes the sandboxes that it launches.

mod answers;
mod cpu_sampling;
mod errors;
mod nameless_files;
mod sandbox;
mod spawner;
mod step_cache;

pub use errors::{LaunchError, SpawnerError};
pub use sandbox::{CommandEnd, LimitHits, ParkingFailure, Sandbox, SandboxResult};
pub use spawner::{LaunchFds, Spawner};
