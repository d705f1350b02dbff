//! The operations behind the tools, one verb one file.

mod bodies;
mod disable;
mod doc_names;
mod list;
mod load;
mod load_text;
mod pointer;
mod rank;
mod read;
mod run;
mod search;
mod select_docs;
mod unload;

pub(crate) use load::scan_resources;
