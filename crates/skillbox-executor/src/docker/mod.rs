//! Running a job in a hardened container of its own.
//!
//! The daemon is spoken to on a thread of its own; a run itself is one thread that talks to pid 1 of its container over
//! a socket and knows nothing of the daemon.

mod configuration;
mod container;
mod daemon;
mod enforcement;
mod error;
mod examine;
mod executor;
mod fetch;
mod image;
mod line;
mod owner;
mod pool;
mod scratch;
mod ship;
mod supervise;
mod sweep;
mod tar;

pub use error::DockerError;
pub use examine::{DaemonFindings, ImageFindings};
pub use executor::{DockerExecutor, DockerOptions};
pub use fetch::Bring;
pub use image::{BuildOptions, DOCKERFILE};
pub(crate) use scratch::Scratch;
