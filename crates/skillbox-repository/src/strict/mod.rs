//! The reference tool's verdicts, texts and bytes.

mod parser;
mod prompt;
mod properties;
pub(crate) mod python;
mod scalar;
mod scanner;
mod skill_file;
mod validate;
mod value;

pub(crate) use parser::parse;
pub use prompt::to_prompt;
pub use properties::read_properties;
pub use python::without_escapes;
pub use skill_file::skill_path;
pub use validate::{validate, validate_text};
