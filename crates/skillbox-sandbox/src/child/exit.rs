//! Ends the child process.
#![expect(unsafe_code, reason = "the child ends without running destructors")]

/// The exit code after a failed step. Programs read the answer instead; the code is for a person who inspects the
/// process.
pub(super) const SETUP_FAILED_EXIT_CODE: i32 = 125;

/// The exit code if the command could not be executed.
pub(super) const EXEC_FAILED_EXIT_CODE: i32 = 127;

/// Ends the process without running destructors: they belong to the state that the clone copied from the spawner.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: ending the process has no preconditions.
    unsafe { libc::_exit(code) }
}
