//! `catalog`: how fast skills are found and refreshed, and how much memory the catalog takes.

mod command;
mod generate;
mod measurements;
pub(crate) mod memory;
mod peers;
mod table;
mod targets;

pub(crate) use command::{Arguments, run};
