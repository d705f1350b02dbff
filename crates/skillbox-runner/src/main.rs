//! Pid 1 of a run's container: it writes the files that the executor sends, runs one command, and sends the outputs back.
//! Started under another name, it is the spawner of sandboxes on the host.
//!
//! It communicates with the executor over its own standard streams and exits when they close. The kernel then kills every
//! other process of the container. It has no secrets, reads no environment and passes none of its descriptors to the command.

mod program;

use std::process::ExitCode;

/// The exit code after a failure of the connection: `EX_SOFTWARE` of sysexits(3).
const INTERNAL_ERROR: u8 = 70;

fn main() -> ExitCode {
    skillbox_sandbox::become_spawner_if_asked();
    match program::run_container() {
        Ok(()) => ExitCode::SUCCESS,
        // The executor sees the stream end; the code is for a person who inspects the container.
        Err(_) => ExitCode::from(INTERNAL_ERROR),
    }
}
