//! Exit codes of the command line.

/// The documented exit codes. From 0 to 123, `skillbox run` returns the exit code of the command.
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
    /// `run`: the base for commands ended by a signal; signal N gives 128 + N.
    pub const SIGNAL_BASE: u8 = 128;
    /// `run`: a limit ended the command.
    pub const LIMIT: u8 = 137;
}
