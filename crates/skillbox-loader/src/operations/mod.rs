//! The operations behind the tools, one file per operation.

mod check_run;
mod disable;
mod list;
mod list_docs;
mod load;
mod load_text;
mod loaded_bodies;
mod rank;
mod read;
mod resolve_skill;
mod search;
mod select_docs;
mod substitute_arguments;
mod unload;

pub(crate) use load::scan_resources;
