//! Pid 1 of a run's container: places what is sent, runs one command, sends back what came of it. Started as such, it is
//! also the spawner of sandboxes on the host.
//!
//! It speaks with the executor over its own standard streams and ends when they end; the kernel then ends everything
//! else in the container. It holds no secret, reads no environment and gives the command none of its descriptors.

mod program;

use std::process::ExitCode;

fn main() -> ExitCode {
    skillbox_sandbox::become_spawner_if_asked();
    match program::converse() {
        Ok(()) => ExitCode::SUCCESS,
        // The executor sees the stream end; the code is for a person who looks at the container.
        Err(_) => ExitCode::from(70),
    }
}
