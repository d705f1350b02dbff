//! The protocol's extension for skills, `io.modelcontextprotocol/skills`: every file of a skill is a resource.

mod directory;
mod entry;
mod file;
mod index;
mod methods;
mod uri;

pub(crate) use file::{contents, read, skill_md_resource};
pub(crate) use index::{INDEX_URI, index};
pub(crate) use methods::{EXTENSION, answer};
pub(crate) use uri::SCHEME;
