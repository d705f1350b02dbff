//! Ends a sandbox that cannot be parked.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::exit::{SETUP_FAILED_EXIT_CODE, exit};
use crate::protocol::{StepFailure, send_parking_failure};

/// Reports to the spawner why this sandbox cannot be parked, and ends this process. The spawner forwards the report to
/// the server with the next launch that would have used the sandbox.
pub(crate) fn abandon_parking(run_socket: &OwnedFd, failure: &StepFailure) -> ! {
    // Without the report the spawner still notices that the sandbox is dead.
    let _: io::Result<()> = send_parking_failure(run_socket.as_fd(), failure);
    exit(SETUP_FAILED_EXIT_CODE)
}
