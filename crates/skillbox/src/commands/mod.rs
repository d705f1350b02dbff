//! The commands, one file for each.

mod agent_session;
mod artifacts;
mod call;
mod command;
mod completions;
mod config;
mod create;
mod demo;
mod docker;
mod doctor;
mod help;
mod help_settings;
mod info;
mod list;
mod man;
mod mcp;
mod output;
mod path_arguments;
mod profiles;
mod prompt;
mod read_properties;
mod run;
mod run_request;
mod run_summary;
mod search;
mod serve;
mod session;
mod to_prompt;
mod tools;
mod validate;
mod validate_lenient;

pub use command::{Command, dispatch};
pub use run::RunArgs;
