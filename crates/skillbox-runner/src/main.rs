//! The runner, which is pid 1 of a run's container: it writes the files that the executor sends, runs one command, and
//! sends the outputs back. Started with the `argv[0]` of a spawner, the same binary is the spawner of sandboxes on the
//! host.
//!
//! The runner communicates with the executor over its standard streams, and exits when they close. The kernel then
//! kills every other process of the container. The runner has no secrets, reads no environment variable, and passes
//! none of its descriptors to the command.

mod program;

use std::process::ExitCode;

/// The exit code after a failure of the connection: `EX_SOFTWARE` in sysexits(3).
const INTERNAL_ERROR_EXIT_CODE: u8 = 70;

fn main() -> ExitCode {
    skillbox_sandbox::run_spawner_if_requested();
    match program::run_container() {
        Ok(()) => ExitCode::SUCCESS,
        // The executor notices the end of the stream; the code is for a person who inspects the container.
        Err(_) => ExitCode::from(INTERNAL_ERROR_EXIT_CODE),
    }
}
