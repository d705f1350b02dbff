//! How much is logged.

/// The least severe event that is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// Nothing.
    #[default]
    Off,
    /// Errors.
    Error,
    /// Also warnings.
    Warn,
    /// Also spans, with their duration.
    Info,
    /// Everything.
    Debug,
}
