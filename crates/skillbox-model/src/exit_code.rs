//! The exit codes of the command line.

/// Documented exit codes; everything from 0 to 123 of `skillbox run` is the command's own.
#[derive(Clone, Copy, Debug)]
pub struct ExitCode;

impl ExitCode {
    /// All is well.
    pub const OK: u8 = 0;
    /// The thing asked about is bad.
    pub const BAD: u8 = 1;
    /// The command line itself is wrong.
    pub const USAGE: u8 = 2;
    /// `run`: the deadline passed.
    pub const TIMED_OUT: u8 = 124;
    /// `run`: skillbox refused or failed.
    pub const REFUSED: u8 = 125;
    /// `run`: ended by signal N is 128 + N.
    pub const SIGNAL_BASE: u8 = 128;
    /// `run`: a limit ended it.
    pub const LIMIT: u8 = 137;
}
