//! The commands, one verb one file.

mod command;
mod completions;
mod help;
mod man;

pub use command::{Command, Context, run};
