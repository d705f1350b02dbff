//! The end of the child.
#![expect(unsafe_code, reason = "the child ends without running destructors")]

/// The exit code when a step failed, for a person who looks at the process instead of the answer.
pub(super) const SETUP_FAILED: i32 = 125;

/// The exit code when the command could not be executed.
pub(super) const NOT_EXECUTED: i32 = 127;

/// Ends the process at once, without the destructors of the state that was copied from the spawner.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: ending the process has no preconditions.
    unsafe { libc::_exit(code) }
}
