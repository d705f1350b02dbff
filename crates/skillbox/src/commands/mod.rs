//! The commands, one verb one file.

mod agent;
mod answer;
mod artifacts;
mod call;
mod command;
mod completions;
mod config;
mod create;
mod demo;
mod demo_disclose;
mod demo_run;
mod docker;
mod doctor;
mod help;
mod info;
mod lenient;
mod list;
mod man;
mod mcp;
mod named_paths;
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
mod unpack;
mod validate;

pub use answer::{Answer, show};
pub use command::{Command, Context, dispatch};
pub use run::RunArgs;
