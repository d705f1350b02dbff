//! How much is logged.

/// The least severe event that is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// Nothing.
    #[default]
    Off,
    /// Failures.
    Error,
    /// Also what was refused or left out.
    Warn,
    /// Also every step, with its duration.
    Info,
    /// Everything.
    Debug,
}
