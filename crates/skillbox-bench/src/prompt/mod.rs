//! `prompt`: the cost of listing skills in a prompt, checking a tool call against the policy, and loading a skill.

mod command;
mod deepagents;
mod row;
mod sessions;
mod table;

pub(crate) use command::{Arguments, run};
