//! Reads YAML into nodes that keep their position in the source.

mod duplicate_keys;
mod error;
mod fast_yaml;
mod library_yaml;
mod node;
mod reader;

pub(super) use error::{YamlError, YamlErrorKind};
pub(crate) use node::{Content, Node};
pub(super) use node::{Document, ScalarStyle};
pub(super) use reader::read_yaml;
