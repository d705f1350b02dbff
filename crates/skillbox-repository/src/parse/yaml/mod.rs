//! Reads YAML into nodes that keep their position in the source.

mod error;
mod fast_yaml;
mod library_yaml;
mod node;
mod reader;

pub(super) use error::{Problem, YamlError};
pub(super) use node::ScalarStyle;
pub(crate) use node::{Content, Node};
pub(super) use reader::{Document, read_yaml};
