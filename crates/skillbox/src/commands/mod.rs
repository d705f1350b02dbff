//! The commands, one verb one file.

mod answer;
mod command;
mod completions;
mod create;
mod demo;
mod help;
mod info;
mod lenient;
mod list;
mod man;
mod named_paths;
mod read_properties;
mod search;
mod to_prompt;
mod validate;

pub use answer::{Answer, show};
pub use command::{Command, Context, run};
