//! The policy for `allowed-tools`: which tool calls pass while which skills are loaded.

#[cfg(test)]
mod bash_oracle;
mod check;
mod command;
mod entry;
mod shell;
mod shell_words;
mod wildcard;

#[cfg(test)]
mod tests;

pub(crate) use check::{Grant, Verdict, check};
pub use check::{PolicyKind, default_always_allowed};
pub(crate) use entry::{Entry, ToolName};
