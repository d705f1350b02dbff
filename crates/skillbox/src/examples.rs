//! The examples below a command's help.

/// Lines of examples under a heading in the style of clap's own.
#[macro_export]
macro_rules! examples {
    ($($line:literal),+ $(,)?) => {
        concat!("\u{1b}[1mExamples:\u{1b}[0m", $("\n  ", $line),+)
    };
}
