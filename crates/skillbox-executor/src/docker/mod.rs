//! Runs a job in its own hardened container.
//!
//! One thread does all communication with the daemon. The thread of a run communicates only with the runner, which is
//! pid 1 of its container, over a socket.

mod abandoned;
mod configuration;
mod container;
mod daemon;
mod daemon_findings;
mod enforcement;
mod error;
mod executor;
mod fetch;
mod image;
mod labels;
mod pool;
mod runner_connection;
mod send_job;
mod skills_root;
mod supervise;
mod tar;

pub use daemon_findings::{DaemonFindings, ImageFindings};
pub use error::DockerError;
pub use executor::{DockerExecutor, DockerOptions};
pub use fetch::FilesToFetch;
pub use image::{BuildOptions, DOCKERFILE};
