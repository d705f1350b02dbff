//! Exit codes of the command line.

/// The documented exit codes. `skillbox run` otherwise returns the exit code of the command, which should stay below 124 to
/// be distinguishable from the codes below.
#[derive(Clone, Copy, Debug)]
pub struct ExitCode;

impl ExitCode {
    /// Success.
    pub const OK: u8 = 0;
    /// The checked object is invalid, or the request failed.
    pub const FAILURE: u8 = 1;
    /// The command line is invalid.
    pub const USAGE: u8 = 2;
    /// `run`: the command timed out.
    pub const TIMED_OUT: u8 = 124;
    /// `run`: skillbox refused or failed.
    pub const REFUSED: u8 = 125;
    /// `run`: signal N ended the command, and the exit code is 128 + N.
    pub const SIGNAL_BASE: u8 = 128;
    /// `run`: a limit ended the command.
    pub const LIMIT: u8 = 137;
}
