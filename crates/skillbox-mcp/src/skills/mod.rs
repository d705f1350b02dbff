//! The protocol's extension for skills, `io.modelcontextprotocol/skills`: every file of a skill is a resource.

mod directory;
mod file;
mod index;
mod methods;
mod skill_json;
mod uri;

pub(crate) use file::{read_file, skill_md_resource, to_contents};
pub(crate) use index::{INDEX_URI, index_contents, index_resource};
pub(crate) use methods::{EXTENSION, answer};
pub(crate) use uri::SKILL_SCHEME;
