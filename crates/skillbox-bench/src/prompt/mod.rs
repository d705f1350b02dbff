//! `prompt`: the cost of disclosure in every model call and every tool call.

mod command;
mod deepagents;
mod row;
mod sessions;
mod table;

pub(crate) use command::{Arguments, run};
