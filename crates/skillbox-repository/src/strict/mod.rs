//! The reference tool's verdicts, texts and bytes.
//!
//! Equal to skills-ref 0.1.1 on every recorded case but for the differences that tests/parity/DIFFERENCES.md lists.
//! Character properties are those of a newer Unicode than the reference's Python has: over all code points that
//! Unicode 14 (Python 3.11) assigns, letters, digits, lower case, NFKC and printability are the same; a name in a
//! script that was added later is judged by its real properties here and as unassigned there.

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
