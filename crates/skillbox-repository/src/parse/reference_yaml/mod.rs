//! The YAML subset of the reference tool, with its own rules for tabs, line breaks and quoted text.

mod parser;
mod scalar;
mod scanner;

pub(crate) use parser::parse_reference_yaml;
pub(crate) use scanner::ReferenceYamlError;
