//! The operations behind the tools: one file per operation, and files for what several operations share.

mod check_run;
mod disable;
mod list;
mod list_docs;
mod load;
mod load_text;
mod loaded_texts;
mod rank;
mod read;
mod register_tools;
mod resolve_skill;
mod scan_resources;
mod search;
mod select_docs;
mod substitute_arguments;
mod unload;

pub(crate) use scan_resources::scan_resources;
