//! The commands of the reference tool, skills-ref, with the same verdicts and messages.
//!
//! The results equal those of skills-ref 0.1.1 in every recorded case, except for the differences listed in
//! tests/parity/DIFFERENCES.md. Character properties come from a newer Unicode version than that of the reference tool.
//! For all code points of Unicode 14 (Python 3.11), letters, digits, lower case, NFKC and printability are the same.
//! Code points that were added later are unassigned in the reference tool, but not here.

mod prompt;
mod properties;
mod python_format;
mod skill_md;
mod validate;
mod value;

pub use prompt::to_prompt;
pub use properties::read_properties;
pub use python_format::strip_terminal_escapes;
pub use skill_md::skill_directory;
pub use validate::{validate, validate_text};
