//! The policy for `allowed-tools`: which tool calls the loaded skills allow.

mod allowed_tool;
#[cfg(test)]
mod bash_oracle;
mod check;
mod command_line;
mod command_pattern;
mod shell_lexer;
mod shell_refusal;
mod wildcard;

#[cfg(test)]
mod tests;

pub(crate) use allowed_tool::{AllowedTool, ToolName};
pub(crate) use check::{DeclaredTools, Verdict, check};
pub use check::{PolicyKind, default_always_allowed};
