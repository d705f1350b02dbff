//! YAML as two Python tools read it: PyYAML, and the reference tool, which reads a subset with rules of its own.

mod flow;
mod parser;
mod possible_keys;
mod rules;
mod scalar;
mod scanner;

pub(crate) use parser::{parse_like_pyyaml, parse_reference_yaml};
pub(crate) use scanner::PythonYamlError;
