//! The end of a sandbox that cannot park.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::exit::{SETUP_FAILED, exit};
use crate::protocol::{StepFailure, send_parking_failure};

/// Reports to the spawner why this sandbox cannot park, and ends it. The launch that finds the slot dead passes the
/// report on to the server.
pub(crate) fn abandon_parking(run_socket: &OwnedFd, failure: &StepFailure) -> ! {
    // Without the report the spawner still finds the slot dead.
    let _: io::Result<()> = send_parking_failure(run_socket.as_fd(), failure);
    exit(SETUP_FAILED)
}
